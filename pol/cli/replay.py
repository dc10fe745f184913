"""``pol replay DIR``: a recorded dispute again, move by move, off chain, by the same rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from pol.cli.report import describe_position, shown
from pol.commitments.program import ProgramCommitment
from pol.dispute.arbitration import execute_instruction
from pol.dispute.header import Header
from pol.dispute.moves import Ended, ProveStep
from pol.dispute.position import Level, replay_start
from pol.dispute.record import Record
from pol.errors import OperationalError, ProtocolError
from pol.graph.names import Names
from pol.training.canonical_json import parse
from pol.training.learning_proof import LearningProof
from pol.training.learning_proof import load as load_proof
from pol.training.store import Store
from pol.training.task import LoadedTask, load


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--false-dispute", is_flag=True, help="Replay the challenge to the honest verdict instead.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def replay(folder: Path, false_dispute: bool, as_json: bool) -> None:
    """Replay the dispute that `pol demo --out DIR` kept: claim, task and proof must agree, every rule is checked."""
    record = Record.from_dict(read_json(folder / ("false_dispute.json" if false_dispute else "dispute.json")))
    kept = read_json(folder / "task.json")
    store = Store(f"file://{(folder / 'store').resolve()}")
    try:
        task = load(store, kept["document"])
        proof = load_proof(store, kept["proofs"][1 if false_dispute else 0], task)
    except (KeyError, TypeError, IndexError) as error:
        raise ProtocolError(f"{folder / 'task.json'} doesn't name a task and its proofs: {error!r}") from error
    require_about(record, task, proof)
    document = walk(record, task.names, None if as_json else Console())
    if as_json:
        print(json.dumps(document, indent=2))


def require_about(record: Record, task: LoadedTask, proof: LearningProof) -> None:
    """Check that a dispute is about a segment of this task that begins where the learning proof says.

    Raises:
        ProtocolError: it isn't.
    """
    start, interval = record.start, task.document.interval
    expected = (task.document.program_hash, task.document.constants_root)
    if (record.claim.program, record.claim.constants) != expected:
        raise ProtocolError("the recorded dispute is about another program or other data than the task beside it")
    commitment = ProgramCommitment.of(task.program)
    header = Header.decode(commitment.header, commitment.hash)
    segment = start.lo // interval
    if not 0 <= segment < task.document.segments:
        raise ProtocolError("the recorded dispute is about steps that the task doesn't have")
    begins = proof.checkpoints[segment].state_root
    replay = replay_start(header.nodes, header.nodes_tree, segment * interval, interval, begins, start.claimed)
    if start != replay:
        raise ProtocolError("the recorded dispute doesn't begin at a checkpoint of the learning proof beside it")


def walk(record: Record, names: Names, console: Console | None) -> dict[str, Any]:
    """Apply all moves; returns what happened, and tells it on ``console`` if there is one.

    Raises:
        ProtocolError: a move is illegal, or the record ends before the dispute does.
    """
    moves: list[dict[str, Any]] = []
    for number, (position, move, after) in enumerate(record.walk(), 1):
        line = describe_position(position, move)
        moves.append({"level": position.level.name, "move": type(move).__name__, "says": line})
        if console is not None:
            console.print(f"{number:>3}  {line}", highlight=False, markup=False)
            if position.level in (Level.NODE, Level.ONE_STEP):
                node = names.nodes[position.node]
                console.print(f"     {node.name}  {node.source}", highlight=False, markup=False)
        if isinstance(move, ProveStep):
            instance = execute_instruction(position, move, record.claim)
            words = ", ".join(shown(word, instance.op.name) for word in instance.operands)
            text = f"{instance.op.name}({words}) = {shown(instance.computed, instance.op.name)}"
            moves[-1]["one_step"] = text
            if console is not None:
                console.print(f"     {text}; claimed {shown(instance.claimed, instance.op.name)}", highlight=False)
        if isinstance(after, Ended):
            winner = "asserter" if after.asserter_won else "challenger"
            if console is not None:
                console.print(f"The {winner} wins: {after.detail}.", highlight=False)
            return {"winner": winner, "detail": after.detail, "moves": moves}
    raise ProtocolError("the record ends before the dispute does; it was cut off")


def read_json(path: Path) -> Any:
    """The document in a file.

    Raises:
        OperationalError: it can't be read.
        ProtocolError: it is no JSON.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise OperationalError(f"can't read {path}: {error}; make it with: pol demo --out {path.parent}") from error
    return parse(data, str(path))
