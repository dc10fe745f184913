"""Learning records on chain: heads, demands for data and answers (contracts/commitments/ILearningLog.sol)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from enum import IntEnum

from eth_abi.abi import encode
from eth_typing import ChecksumAddress
from web3.types import TxReceipt

from pol.chain.account.wallet import Wallet
from pol.chain.contract.contract import Binding
from pol.chain.contract.contract_creation import deploy_contract
from pol.chain.contract.leaf_demands import decoded, open_demands
from pol.chain.node.connection import Connection
from pol.commitments.array import ArrayType
from pol.commitments.complete_state import DOCUMENT_TAG, ChunkProof
from pol.commitments.keccak import keccak256
from pol.commitments.tensor import TENSOR_TAG

HEAD_TYPE = {
    "Head": [
        {"name": "id", "type": "bytes32"},
        {"name": "size", "type": "uint64"},
        {"name": "logRoot", "type": "bytes32"},
    ]
}
"""What a publisher signs for somebody else to post."""

DEMAND_TYPE = "(bytes32,bytes32,uint64,uint64,uint32,uint64,address,uint64,uint256)"


class RunStatus(IntEnum):
    """Where a run stands; the last two are for good."""

    NONE = 0
    OPEN = 1
    WITHHELD = 2
    CLOSED = 3


@dataclass(frozen=True)
class PostedRun:
    """A run as posted: times in seconds, amounts in wei."""

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
class Demand:
    """One leaf that somebody wants to see; position and leaf count on from 0 past the last one."""

    id: bytes
    root: bytes
    size: int
    index: int
    position: int
    leaf: int
    demander: ChecksumAddress
    deadline: int
    bond: int

    @property
    def key(self) -> bytes:
        """The hash by which the contract knows it."""
        return keccak256(encode([DEMAND_TYPE], [astuple(self)]))


@dataclass(frozen=True)
class Answer:
    """What the chain has checked of an answer: a leaf, the entry that it stands in, and the state's root.

    The contract doesn't look into a name; bytes that aren't UTF-8 are shown as escapes.
    """

    key: bytes
    answerer: ChecksumAddress
    root: bytes
    name: str
    form: bytes
    count: int
    leaf: bytes


class LearningLog(Binding):
    """One function per verb; those that send take the sender's wallet."""

    def __init__(self, connection: Connection, address: ChecksumAddress) -> None:
        super().__init__(connection, "LearningLog", address)

    @classmethod
    def deploy(cls, wallet: Wallet) -> LearningLog:
        """Put a new contract on chain."""
        block = wallet.connection.block_number()
        deployed = cls(wallet.connection, deploy_contract(wallet, "LearningLog"))
        deployed.log.start_at(block)
        return deployed

    def id_of(self, publisher: ChecksumAddress, run: bytes) -> bytes:
        """The id of a publisher's run on this contract; ``run`` is its name in the learning record."""
        return bytes(self.read("computeId", publisher, run))

    def run(self, identity: bytes) -> PostedRun:
        """A run as posted; its status is NONE if it was never opened."""
        fields = list(self.read("runOf", identity))
        fields[3], fields[8] = bytes(fields[3]), RunStatus(fields[8])
        return PostedRun(*fields)

    def open(
        self, wallet: Wallet, run: bytes, *, stake: int, window: int, exit_delay: int, price: int = 0
    ) -> TxReceipt:
        """Open a run of this wallet, with a stake that its data can be had.

        window: seconds for an answer. exit_delay: seconds after the last post in which data can be demanded. price:
        what an answer costs at least, on top of gas.

        Raises:
            Reverted: it is open already, or a time is out of bounds.
        """
        return wallet.send(self.function("open", run, window, exit_delay, price), stake)

    def post(self, wallet: Wallet, identity: bytes, size: int, root: bytes, path: Sequence[bytes]) -> TxReceipt:
        """Post a longer log, by the publisher; ``path`` is the consistency path from the one posted last.

        Raises:
            Reverted: the log is not longer, or no extension.
        """
        return wallet.send(self.function("post", identity, size, root, list(path)))

    def sign_head(self, wallet: Wallet, identity: bytes, size: int, root: bytes) -> bytes:
        """The publisher's signature (r, s, v) by which anybody may post a head."""
        domain = {
            "name": "pol learning log",
            "version": "1",
            "chainId": self.connection.chain_id,
            "verifyingContract": self.address,
        }
        return wallet.sign_typed(domain, HEAD_TYPE, {"id": identity, "size": size, "logRoot": root})

    def relay(
        self, wallet: Wallet, identity: bytes, size: int, root: bytes, path: Sequence[bytes], signature: bytes
    ) -> TxReceipt:
        """Post a head that the publisher has signed; ``wallet`` pays.

        Raises:
            Reverted: as `post`, or it is signed by somebody else.
        """
        return wallet.send(self.function("postSigned", identity, size, root, list(path), signature))

    def bond(self, identity: bytes) -> int:
        """What a demand costs at least at present, in wei."""
        return int(self.read("bondOf", identity))

    def demand(
        self, wallet: Wallet, identity: bytes, index: int, position: int, leaf: int, bond: int | None = None
    ) -> Demand:
        """Demand one leaf of checkpoint ``index``. The bond is twice what is asked at present, if not given: gas moves.

        Raises:
            Reverted: no such checkpoint, a bond too low, or nothing can be demanded any more.
        """
        bond = 2 * self.bond(identity) if bond is None else bond
        receipt = wallet.send(self.function("demand", identity, index, position, leaf), bond)
        (event,) = self.contract.events.Demanded().process_receipt(receipt)
        return decoded(Demand, event["args"]["demand"])

    def demands(self, identity: bytes) -> list[Demand]:
        """All open demands of a run, the most urgent one first."""
        return sorted(open_demands(self, Demand, id=identity), key=lambda d: d.deadline)

    def answers(self, identity: bytes) -> list[Answer]:
        """Everything that was shown of a run, in order."""
        return [
            Answer(
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

    def answer(self, wallet: Wallet, demand: Demand, proof: ChunkProof, log_path: Sequence[bytes]) -> TxReceipt:
        """Answer a demand; ``log_path`` is the inclusion path of the state's root in the log of ``demand.size``.

        Raises:
            Reverted: too late, not what was demanded, or it is still the publisher's turn.
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
        return wallet.send(self.function("answer", astuple(demand), chunk))

    def expire(self, wallet: Wallet, demand: Demand) -> TxReceipt:
        """End a demand that was not answered in time: its run is marked withheld, and the stake is slashed.

        Raises:
            Reverted: its time isn't over, or it has ended.
        """
        return wallet.send(self.function("expire", astuple(demand)))

    def close(self, wallet: Wallet, identity: bytes) -> TxReceipt:
        """Take the stake back after the exit delay.

        Raises:
            Reverted: it is locked.
        """
        return wallet.send(self.function("close", identity))

    def credit(self, account: ChecksumAddress) -> int:
        """What an account can withdraw, in wei."""
        return int(self.read("credits", account))

    def withdraw(self, wallet: Wallet) -> TxReceipt:
        """Fetch everything that is credited to this wallet."""
        return wallet.send(self.function("withdraw"))


def form_of(proof: ChunkProof) -> bytes:
    """What is hashed before an entry's tree: a tag, and the array's type or the document's length."""
    if isinstance(proof.type, ArrayType):
        return TENSOR_TAG + proof.type.encode()
    return DOCUMENT_TAG + proof.type.nbytes.to_bytes(8, "big")
