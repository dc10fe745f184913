"""Demands for data that solvers have committed to (contracts/market/IDataDemands.sol)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass

from eth_typing import ChecksumAddress
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.contract.leaf_demands import LeafDemand, LeafDemands
from pol.chain.contract.structs import decoded
from pol.commitments.state_leaf import StatePiece


@dataclass(frozen=True)
class DataDemand(LeafDemand):
    """A demand for one leaf of one state of a solver's log."""

    ABI_TYPE = "(bytes32,uint64,uint64,uint32,uint32,address,uint64,uint256)"

    task_id: bytes
    began: int
    """When the solver of this log was chosen."""
    entry: int
    position: int
    leaf: int
    demander: ChecksumAddress
    deadline: int
    bond: int


@dataclass(frozen=True)
class ShownData:
    """A checked answer: a leaf, its state root, and that root's inclusion path in the log."""

    key: bytes
    answerer: ChecksumAddress
    root: bytes
    leaf: bytes
    log_path: tuple[bytes, ...]


class DataDemands(LeafDemands[DataDemand]):
    """The desk of demands for data; a solver that doesn't answer in time loses stake and task."""

    DEMAND = DataDemand
    OWNER = "taskId"

    def bond(self) -> int:
        """Present bond of a demand."""
        return int(self.read("bondOf"))

    def window(self) -> int:
        """Seconds for an answer; the first half is the solver's own."""
        return int(self.read("window"))

    def demand(self, wallet: Wallet, task_id: bytes, entry: int, position: int, leaf: int) -> DataDemand:
        """Demand a leaf for the present bond, or up to twice as much: gas prices move.

        Raises:
            Reverted: no proof is committed or it is too late, no such entry, or the vault holds too little.
        """
        return self._demanded(self.transact(wallet, "demand", task_id, entry, position, leaf, 2 * self.bond()))

    def answers(self, task_id: bytes) -> list[ShownData]:
        """All answers about a task's logs, in order."""
        members = ("key", "answerer", "root", "leaf", "logPath")
        return [decoded(ShownData, [e[name] for name in members]) for e in self.events("Answered", taskId=task_id)]

    def open(self, task_id: bytes) -> int:
        """Number of open demands for the task's present log."""
        return int(self.read("open", task_id, about=task_id))

    def answer(self, wallet: Wallet, demand: DataDemand, piece: StatePiece, log_path: Sequence[bytes]) -> TxReceipt:
        """Answer a demand; ``log_path`` is the inclusion path of the state's root in the committed log.

        Raises:
            Reverted: too late, another leaf, or it is still the solver's turn.
        """
        return self.transact(wallet, "answer", astuple(demand), (*astuple(piece), list(log_path)))
