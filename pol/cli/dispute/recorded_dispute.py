"""The dispute that `pol demo --out DIR` recorded, checked against the task and the learning proof beside it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pol.commitments.canonical_json import parse
from pol.dispute.dispute_record import DisputeRecord
from pol.dispute.disputed_claim import ReceiptClaim, ReplayClaim
from pol.dispute.position import Position, Side, state_hash
from pol.errors import OperationalError, ProtocolError, reason_of
from pol.graph.node_names import ProgramNames
from pol.report.disputes.dispute_entries import DisputeEntry, entries, given_up
from pol.training.storage.store import Store
from pol.training.task.learning_proof import LearningProof
from pol.training.task.learning_proof import load as load_proof
from pol.training.task.published_task import load
from pol.training.task.task_document import LoadedTask

RECORDED = ("dispute", "false_dispute", "objection")
"""The disputes that the demo keeps: about a lying verdict, about an honest one, about a segment of a solver's log."""


@dataclass(frozen=True)
class Recorded:
    """A dispute, and how it went on chain."""

    record: DisputeRecord
    names: ProgramNames
    ended_by: str
    gas: tuple[int, ...]
    """The gas of every transaction; empty if it isn't known."""

    def entries(self) -> list[DisputeEntry]:
        """All transactions of the dispute, every rule checked on the way.

        Raises:
            ProtocolError: a move is illegal, or the record ends before the dispute does.
        """
        found = list(entries(self.record, self.names, self.gas_of))
        if found[-1].outcome is None:
            if self.ended_by == "proof":
                raise ProtocolError("the record ends before the dispute does; it was cut off")
            found.append(given_up(self.record, self.names, self.ended_by, self.gas_of(len(found))))
        return found

    def gas_of(self, number: int) -> int | None:
        """Gas of a transaction, counted from 1, if it is known."""
        return self.gas[number - 1] if number <= len(self.gas) else None


def read(folder: Path, name: str) -> Recorded:
    """One of the `RECORDED` disputes in a folder."""
    document = read_json(folder / f"{name}.json")
    record, kept = DisputeRecord.from_dict(document), read_json(folder / "task.json")
    store = Store(f"file://{(folder / 'store').resolve()}")
    try:
        task = load(store, kept["document"])
        proof = load_proof(store, kept["proofs"][name], task)
    except (KeyError, TypeError, IndexError) as error:
        raise ProtocolError(f"{folder / 'task.json'} doesn't name a task and its proofs: {error!r}") from error
    require_about(record, task, proof)
    try:
        heads, players = ([bytes.fromhex(value) for value in document[name]] for name in ("heads", "players"))
        ended_by, gas = str(document["ended_by"]), tuple(int(used) for used in document["gas"])
    except (KeyError, TypeError, ValueError) as error:
        raise ProtocolError(f"the record doesn't say how the dispute went on chain: {error!r}") from error
    require_heads(record, heads, players)
    return Recorded(record, task.names, ended_by, gas)


def require_heads(record: DisputeRecord, heads: list[bytes], players: list[bytes]) -> None:
    """Check that the moves lead to the state hashes that the chain held."""
    positions = [record.start, *(after for _, _, after in record.walk() if isinstance(after, Position))]
    sides = {Side.ASSERTER: 0, Side.CHALLENGER: 1}
    if len(players) != len(sides) or [state_hash(p, players[sides[p.turn]]) for p in positions] != heads:
        raise ProtocolError("the recorded moves don't lead to what the chain held before each of them; it was changed")


def require_about(record: DisputeRecord, task: LoadedTask, proof: LearningProof) -> None:
    """Check that a dispute is about a segment of this task that begins where the learning proof says."""
    claim, interval = record.claim, task.document.interval
    if not isinstance(claim, ReplayClaim):
        what = "receipt" if isinstance(claim, ReceiptClaim) else "distance"
        raise ProtocolError(f"the recorded dispute is about a {what}; only disputes about a replay are checked here")
    if (claim.program, claim.constants) != (task.document.program_hash, task.document.constants_root):
        raise ProtocolError("the recorded dispute is about another program or other data than the task beside it")
    segment = claim.first_step // interval
    if not 0 <= segment < task.document.segments:
        raise ProtocolError("the recorded dispute is about steps that the task doesn't have")
    begins = proof.checkpoints[segment].state_root
    # A receipt of execution names the state before the last step, too.
    if claim.first_step != segment * interval or claim.steps not in (interval, interval - 1) or claim.start != begins:
        raise ProtocolError("the recorded dispute doesn't begin at a checkpoint of the learning proof beside it")


def read_json(path: Path) -> Any:
    """The document in a file."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise OperationalError(
            f"can't read {path}: {reason_of(error)}; make it with: pol demo --out {path.parent}"
        ) from error
    return parse(data, str(path))
