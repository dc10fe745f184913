"""Objections to segments of exact trainings (contracts/market/IObjections.sol)."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from functools import cached_property

from eth_abi.abi import encode
from eth_utils.crypto import keccak

from pol.chain.account.wallet import Wallet
from pol.chain.desks.dispute_desk import DeskDispute, Disputable, DisputeDesk, DisputeEvents, Ending
from pol.chain.desks.task_registry import MarketTask, Status, TaskRegistry

DISPUTABLE = frozenset({Status.COMMITTED, Status.VERIFYING, Status.WATCHED, Status.CONTESTED})
"""Statuses in which the solver's log may be disputed."""


@dataclass(frozen=True)
class CommittedSegment:
    """A segment of a committed log: its two ends, and the proofs that they are in the log."""

    index: int
    start: bytes
    end: bytes
    log_proof: tuple[list[bytes], list[bytes]]
    """Inclusion paths of entries ``index`` and ``index + 1``."""


@dataclass(frozen=True)
class ObjectionCount:
    """Objections to the log of one solver."""

    began: int
    """When that solver was chosen."""
    objections: int
    """All of them."""
    open: int
    """Those that aren't settled."""
    fell: bool
    """A segment is false: the proof is rejected."""


class Objections(DisputeDesk):
    """The desk of objections to segments that nobody has to draw; the solver is the asserter."""

    EVENTS = DisputeEvents("Objected", "ObjectionSettled", "ObjectionMoot", "number", "began", "objector")

    def object(self, wallet: Wallet, task_id: bytes, segment: CommittedSegment, header: bytes, payload: bytes) -> int:
        """Object to a segment for the bond of the moment; returns the number of the dispute.

        header: of the task's program. payload: the state roots of the objector's own execution, its first move. The
        objection is announced a block before, so that nobody copies it.

        Raises:
            Reverted: the contract refuses the objection, or the vault holds too little of the wallet's.
        """
        call = self.function("object", task_id, astuple(segment), self._opening(task_id, header, payload))
        return self._challenged(wallet, task_id, objection_evidence(segment.index, payload), call)

    def object_to_zero(self, wallet: Wallet, task_id: bytes, entry: int, path: list[bytes]) -> int:
        """Show that an entry of the log is zero, and so no state: the proof is rejected at once. Returns the gas.

        Raises:
            Reverted: it is a root, or the proof has fallen already.
        """
        self.announce_evidence(wallet, task_id, keccak(encode(["uint64"], [entry])))
        return int(self.transact(wallet, "objectToZero", task_id, entry, path)["gasUsed"])

    def settle_by_proof(self, wallet: Wallet, number: int, segment: CommittedSegment, shown: bytes) -> int:
        """End a dispute whose segment is proved to lead to the state ``shown``; returns the gas.

        Raises:
            Reverted: it isn't proved, or it is another dispute's segment.
        """
        return int(self.transact(wallet, "settleByProof", number, astuple(segment), shown)["gasUsed"])

    def dispute(self, number: int) -> DeskDispute:
        """An objection."""
        task_id, objector, began, _, ending, bond = self.read("objection", number, about=number)
        return DeskDispute(task_id, objector, began, Ending(ending), bond)

    def segment(self, number: int) -> int:
        """The segment that a dispute is about. Raises OperationalError: the node has no record of it."""
        return int(self.last_event(f"objection {number}", "Objected", number=number)["segment"])

    def objected(self, task_id: bytes) -> ObjectionCount:
        """Objections to the log of the current solver, by equal roots or by thresholds."""
        return self.read_as(ObjectionCount, "objected", task_id, about=task_id)

    def disputable(self, task_id: bytes) -> Disputable:
        """The log that can be objected to."""
        task, count = self._registry.task(task_id), self.objected(task_id)
        return Disputable(task.began if task.status in DISPUTABLE else None, count.open, count.fell)

    def is_open(self, task: MarketTask, now: int) -> bool:
        """Whether objections to a task's log are taken at chain time ``now``."""
        return task.status in DISPUTABLE and (task.status is not Status.CONTESTED or now <= task.deadline)

    @cached_property
    def _registry(self) -> TaskRegistry:
        return TaskRegistry(self.connection, self.read("registry"))


def objection_evidence(segment: int, payload: bytes) -> bytes:
    """The evidence of an objection whose opening has this ``payload`` (`announcements.announcement`)."""
    return keccak(encode(["uint32", "bytes32"], [segment, keccak(payload)]))
