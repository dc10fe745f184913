"""Segments that are proved in zero knowledge (contracts/market/IProvenSteps.sol)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass

from eth_abi.abi import encode
from eth_typing import ChecksumAddress

from pol.chain.account.wallet import Wallet
from pol.chain.contract.binding import Binding
from pol.chain.contract.creation import code_at, expected_code, first_child
from pol.chain.contract_abi import init_code
from pol.chain.desks.task_registry import Terms
from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError


@dataclass(frozen=True)
class PinnedProofs:
    """The proofs that a task accepts; the contract's struct ``Pin``."""

    verifier: ChecksumAddress
    batches: bytes
    """Log root of the hashes of each step's data."""
    layout: bytes
    """keccak-256 of the types of the state's tensors."""
    scale: int

    @property
    def is_pinned(self) -> bool:
        """Whether a submitter has pinned them."""
        return bool(int(self.verifier, 16))


@dataclass(frozen=True)
class StepProof:
    """One proved step; the contract's struct ``StepProof``."""

    data: tuple[bytes, ...]
    path: tuple[bytes, ...]
    after: bytes
    proof: bytes


def batch_entry(data: Sequence[bytes]) -> bytes:
    """The log entry of a step: the hash of the hashes of its data."""
    return keccak256(encode(["bytes32[]"], [list(data)]))


def context_of(task_id: bytes, step: int) -> bytes:
    """The context to which the proof of a step is bound."""
    return keccak256(encode(["bytes32", "uint64"], [task_id, step]))


class ProvenSteps(Binding):
    """The desk of proofs of steps."""

    def pin(self, wallet: Wallet, nonce: int, terms: Terms, pin: PinnedProofs) -> bytes:
        """Pin the proofs that the wallet's future task with this nonce and these terms accepts; returns its future id.

        Raises:
            Reverted: the task exists, or there is no verifier at the address.
        """
        self.transact(wallet, "pin", nonce, astuple(terms), astuple(pin))
        return bytes(self.events("Pinned", submitter=wallet.address)[-1]["taskId"])

    def prove(
        self, wallet: Wallet, task_id: bytes, segment: int, first: bytes, steps: Sequence[StepProof], before: int = 0
    ) -> int:
        """Record steps of a segment from the vector with hash ``first``, all but those that are; returns the gas.

        ``before``: how many steps of the segment lie before them.

        Raises:
            Reverted: a proof doesn't hold, or a step before them isn't proved.
        """
        given = [astuple(step) for step in steps]
        return int(self.transact(wallet, "prove", task_id, segment, first, before, given)["gasUsed"])

    def tie(self, wallet: Wallet, task_id: bytes, types: bytes, words: bytes) -> int:
        """Tie the hash of a state's vector to its state root by showing the vector; returns the gas.

        Raises:
            Reverted: the tensors have other types than the pinned ones, or a number isn't one of fixed point.
        """
        return int(self.transact(wallet, "tie", task_id, types, words)["gasUsed"])

    def pinned(self, task_id: bytes) -> PinnedProofs:
        """The pinned proofs of a task; zeros if there are none."""
        return self.read_as(PinnedProofs, "pinned", task_id, about=task_id)

    def key_digest(self, verifier: ChecksumAddress) -> bytes:
        """keccak-256 of the verifying key of a verifier of exact proofs: of the account that keeps it.

        Raises:
            ProtocolError: the verifier has other code than `Groth16Verifier` with that key: it may say anything.
        """
        key = code_at(self.connection, first_child(verifier))[1:]
        creation = init_code("Groth16Verifier", key)
        code = code_at(self.connection, verifier)
        if not code or code != expected_code(self.connection, creation, verifier):
            raise ProtocolError(
                f"the verifier at {verifier} isn't this package's Groth16Verifier: leave the task alone"
            )
        return keccak256(key)

    def proved(self, task_id: bytes, segment: int, first: bytes) -> tuple[int, bytes]:
        """Number of proved steps of a segment from this vector on, and the hash of the vector after them."""
        steps, last = self.read("chain", task_id, segment, first)
        return int(steps), bytes(last)

    def tied(self, task_id: bytes, root: bytes) -> bytes:
        """Hash of the vector of a state; zeros if it isn't tied."""
        return bytes(self.read("tied", task_id, root, about=task_id))
