"""Data that solvers have committed to, on demand (contracts/market/IDataDemands.sol)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass

from eth_abi.abi import encode
from eth_typing import ChecksumAddress
from web3.logs import DISCARD
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.contract.contract import Binding
from pol.chain.contract.leaf_demands import decoded, open_demands
from pol.chain.node.connection import Connection
from pol.commitments.keccak import keccak256
from pol.commitments.state_leaf import StatePiece

DEMAND = "(bytes32,uint64,uint64,uint32,uint32,address,uint64,uint256)"


@dataclass(frozen=True)
class DataDemand:
    """One leaf of one state of a solver's log that somebody wants to see."""

    task_id: bytes
    began: int
    """When the solver was chosen whose log it is."""
    entry: int
    position: int
    leaf: int
    demander: ChecksumAddress
    deadline: int
    bond: int

    @property
    def key(self) -> bytes:
        """The hash by which the contract knows it."""
        return keccak256(encode([DEMAND], [astuple(self)]))


@dataclass(frozen=True)
class Answer:
    """What the chain has checked of an answer: a leaf, its state root, and that root's inclusion path in the log."""

    key: bytes
    answerer: ChecksumAddress
    root: bytes
    leaf: bytes
    log_path: tuple[bytes, ...]


class DataDemands(Binding):
    """One function per verb; those that send take the sender's wallet."""

    def __init__(self, connection: Connection, address: ChecksumAddress) -> None:
        super().__init__(connection, "DataDemands", address)

    def bond(self) -> int:
        """What a demand locks now."""
        return int(self.read("bondOf"))

    def window(self) -> int:
        """Seconds for an answer; the first half is the solver's own."""
        return int(self.read("window"))

    def demand(self, wallet: Wallet, task_id: bytes, entry: int, position: int, leaf: int) -> DataDemand:
        """Demand a leaf for the bond of the moment, or up to twice as much: gas moves.

        Raises:
            Reverted: no proof is committed or it is too late, no such entry, or the vault holds too little.
        """
        receipt = wallet.send(self.function("demand", task_id, entry, position, leaf, 2 * self.bond()))
        (event,) = self.contract.events.Demanded().process_receipt(receipt, errors=DISCARD)
        return decoded(DataDemand, event["args"]["demand"])

    def demands(self, task_id: bytes) -> list[DataDemand]:
        """All demands of a task that are neither answered nor expired, the most urgent one first."""
        return sorted(open_demands(self, DataDemand, taskId=task_id), key=lambda d: d.deadline)

    def answers(self, task_id: bytes) -> list[Answer]:
        """Everything that was shown of a task's logs, in order."""
        return [
            Answer(
                bytes(e["key"]),
                e["answerer"],
                bytes(e["root"]),
                bytes(e["leaf"]),
                tuple(bytes(hash_) for hash_ in e["logPath"]),
            )
            for e in self.events("Answered", taskId=task_id)
        ]

    def open(self, task_id: bytes) -> int:
        """How many demands for the task's present log wait for answers."""
        return int(self.read("open", task_id))

    def answer(self, wallet: Wallet, demand: DataDemand, piece: StatePiece, log_path: Sequence[bytes]) -> TxReceipt:
        """Answer a demand; ``log_path`` is the inclusion path of the state's root in the committed log.

        Raises:
            Reverted: too late, not what was demanded, or it is still the solver's turn.
        """
        shown = (
            piece.header,
            piece.slot,
            list(piece.slot_branch),
            piece.leaf,
            list(piece.branch),
            list(piece.tensor_branch),
            list(log_path),
        )
        return wallet.send(self.function("answer", astuple(demand), shown))

    def expire(self, wallet: Wallet, demand: DataDemand) -> TxReceipt:
        """End a demand that wasn't answered in time: its solver loses stake and task. A moot one ends at any time.

        Raises:
            Reverted: its time isn't over, or a verdict is on its way.
        """
        return wallet.send(self.function("expire", astuple(demand)))
