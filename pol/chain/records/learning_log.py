"""Learning records on chain: heads, demands for data, answers (contracts/commitments/ILearningLog.sol)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from enum import IntEnum

from eth_typing import ChecksumAddress
from web3.types import TxReceipt

from pol.chain.account.typed_data import signed_struct
from pol.chain.account.wallet import Wallet
from pol.chain.contract.binding import deploy_contract
from pol.chain.contract.leaf_demands import LeafDemand, LeafDemands
from pol.commitments.array import ArrayType
from pol.commitments.complete_state import DOCUMENT_TAG, ChunkProof
from pol.commitments.tensor import TENSOR_TAG

HEAD_TYPE = signed_struct("Head", "bytes32 id, uint64 size, bytes32 logRoot")
"""The signed form of a head that somebody else posts."""


class RunStatus(IntEnum):
    """The status of a run; the last two are final."""

    NONE = 0
    OPEN = 1
    WITHHELD = 2
    CLOSED = 3


@dataclass(frozen=True)
class PostedRun:
    """A posted run; times in seconds, amounts in wei."""

    publisher: ChecksumAddress
    size: int
    window: int
    root: bytes
    stake: int
    posted: int
    exit_delay: int
    open: int
    status: RunStatus
    price: int


@dataclass(frozen=True)
class RecordDemand(LeafDemand):
    """A demand for one leaf of a checkpoint; position and leaf count on from 0 past the last one."""

    ABI_TYPE = "(bytes32,bytes32,uint64,uint64,uint32,uint64,address,uint64,uint256)"

    id: bytes
    root: bytes
    size: int
    index: int
    position: int
    leaf: int
    demander: ChecksumAddress
    deadline: int
    bond: int


@dataclass(frozen=True)
class ShownLeaf:
    """A checked answer: a leaf, its entry, and the state's root.

    The contract doesn't check names: bytes that aren't UTF-8 are shown as escapes.
    """

    key: bytes
    answerer: ChecksumAddress
    root: bytes
    name: str
    form: bytes
    count: int
    leaf: bytes


class LearningLog(LeafDemands[RecordDemand]):
    """The contract that keeps heads of learning records and makes publishers show their data."""

    DEMAND = RecordDemand
    OWNER = "id"

    @classmethod
    def deploy(cls, wallet: Wallet) -> LearningLog:
        """Deploy a new contract."""
        block = wallet.connection.block_number()
        return cls(wallet.connection, deploy_contract(wallet, "LearningLog"), since=block)

    def id_of(self, publisher: ChecksumAddress, run: bytes) -> bytes:
        """The id of a publisher's run on this contract; ``run`` is its name in the learning record."""
        return bytes(self.read("computeId", publisher, run))

    def run(self, identity: bytes) -> PostedRun:
        """A posted run; its status is NONE if it was never opened."""
        return self.read_as(PostedRun, "runOf", identity)

    def open(
        self, wallet: Wallet, run: bytes, *, stake: int, window: int, exit_delay: int, price: int = 0
    ) -> TxReceipt:
        """Open a run of this wallet, with a stake for the availability of its data.

        window: seconds for an answer. exit_delay: seconds after the last post in which data can be demanded. price:
        lowest price of an answer, on top of gas.

        Raises:
            Reverted: it is open already, or a time is out of bounds.
        """
        return self.transact(wallet, "open", run, window, exit_delay, price, value=stake)

    def post(self, wallet: Wallet, identity: bytes, size: int, root: bytes, path: Sequence[bytes]) -> TxReceipt:
        """Post a longer log of this publisher; ``path`` is the consistency path from the last posted head.

        Raises:
            Reverted: the log isn't longer, or doesn't extend the posted one.
        """
        return self.transact(wallet, "post", identity, size, root, list(path))

    def sign_head(self, wallet: Wallet, identity: bytes, size: int, root: bytes) -> bytes:
        """The publisher's signature (r, s, v) that lets anybody post a head."""
        message = {"id": identity, "size": size, "logRoot": root}
        return wallet.sign_typed(self.signing_domain("pol learning log"), HEAD_TYPE, message)

    def relay(
        self, wallet: Wallet, identity: bytes, size: int, root: bytes, path: Sequence[bytes], signature: bytes
    ) -> TxReceipt:
        """Post a head that the publisher has signed; ``wallet`` pays.

        Raises:
            Reverted: as `post`, or the signature is somebody else's.
        """
        return self.transact(wallet, "postSigned", identity, size, root, list(path), signature)

    def bond(self, identity: bytes) -> int:
        """Present lowest bond of a demand, in wei."""
        return int(self.read("bondOf", identity))

    def demand(
        self, wallet: Wallet, identity: bytes, index: int, position: int, leaf: int, bond: int | None = None
    ) -> RecordDemand:
        """Demand one leaf of checkpoint ``index``; without a ``bond`` for twice the present one: gas moves.

        Raises:
            Reverted: no such checkpoint, a bond too low, or nothing can be demanded any more.
        """
        bond = 2 * self.bond(identity) if bond is None else bond
        return self._demanded(self.transact(wallet, "demand", identity, index, position, leaf, value=bond))

    def answers(self, identity: bytes) -> list[ShownLeaf]:
        """All answers about a run, in order."""
        return [
            ShownLeaf(
                bytes(e["key"]),
                e["answerer"],
                bytes(e["completeRoot"]),
                bytes(e["name"]).decode(errors="backslashreplace"),
                bytes(e["form"]),
                e["count"],
                bytes(e["leaf"]),
            )
            for e in self.events("Answered", id=identity)
        ]

    def answer(self, wallet: Wallet, demand: RecordDemand, proof: ChunkProof, log_path: Sequence[bytes]) -> TxReceipt:
        """Answer a demand; ``log_path`` is the inclusion path of the state's root in the log of ``demand.size``.

        Raises:
            Reverted: too late, another leaf, or it is still the publisher's turn.
        """
        chunk = (
            proof.entry.encode(),
            form_of(proof),
            proof.leaf,
            list(proof.array_branch),
            proof.count,
            list(proof.state_branch),
            list(log_path),
        )
        return self.transact(wallet, "answer", astuple(demand), chunk)

    def close(self, wallet: Wallet, identity: bytes) -> TxReceipt:
        """Take the stake back after the exit delay. Raises Reverted: the stake is still locked."""
        return self.transact(wallet, "close", identity)

    def credit(self, account: ChecksumAddress) -> int:
        """Withdrawable credit of an account, in wei."""
        return int(self.read("credits", account))

    def withdraw(self, wallet: Wallet) -> TxReceipt:
        """Withdraw all credit of this wallet."""
        return self.transact(wallet, "withdraw")


def form_of(proof: ChunkProof) -> bytes:
    """The prefix of an entry's hash: a tag, then the array's type or the document's length."""
    if isinstance(proof.type, ArrayType):
        return TENSOR_TAG + proof.type.encode()
    return DOCUMENT_TAG + proof.type.nbytes.to_bytes(8, "big")
