"""The task market as the roles see it (contracts/market/ITaskMarket.sol says what each verb does)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from enum import IntEnum
from typing import Any

from eth_typing import ChecksumAddress
from web3.logs import DISCARD
from web3.types import TxReceipt

from pol.chain.binding import Binding
from pol.chain.connection import Connection
from pol.chain.wallet import Wallet
from pol.dispute.position import Kind
from pol.verification.verdict import Claim


class Status(IntEnum):
    """Where a task is in its life."""

    NONE = 0
    OPEN = 1
    TRAINING = 2
    COMMITTED = 3
    DRAWN = 4
    VERDICT = 5
    CLOSED = 6


class TaskOutcome(IntEnum):
    """How a closed task ended."""

    NONE = 0
    ACCEPTED = 1
    REJECTED = 2
    SOLVER_DEFAULTED = 3
    CANCELLED = 4


@dataclass(frozen=True)
class Terms:
    """What a submitter asks for; hashes are 32 bytes, windows and clock seconds, amounts wei."""

    program: bytes
    constants: bytes
    initial_state: bytes
    document: bytes
    reruns: bytes
    steps: int
    interval: int
    draws: int
    work_units: int
    solver_stake: int
    verifier_stake: int
    bond: int
    verifier_fee: int
    rerun_count: int
    profiled: int
    margin: int
    profile_window: int
    training_window: int
    verification_window: int
    challenge_window: int
    clock: int

    @property
    def is_exact(self) -> bool:
        """Whether the training has to be canonical, bit for bit; there is no profile then."""
        return self.margin == 0


@dataclass(frozen=True)
class Task:
    """The state of a task on chain."""

    submitter: ChecksumAddress
    status: Status
    outcome: TaskOutcome
    accepted: bool
    verdicts: int
    verifier: ChecksumAddress
    deadline: int
    solver: ChecksumAddress
    log_size: int
    round: int
    fee: int
    challenges: int
    open: int
    price: int
    thresholds: tuple[int, int, int]
    log_root: bytes
    seed: bytes


@dataclass(frozen=True)
class Dispute:
    """What the market knows about a dispute of the game."""

    task_id: bytes
    challenger: ChecksumAddress
    verdict: int
    earlier: int
    """Challenges that the verdict had seen before."""
    released: bool
    """The bond is paid out."""


class TaskMarket(Binding):
    """One function per verb; those that send take the sender's wallet."""

    def __init__(self, connection: Connection, address: ChecksumAddress) -> None:
        super().__init__(connection, "TaskMarket", address)

    def task(self, task_id: bytes) -> Task:
        """The state of a task."""
        fields = list(self.read("task", task_id))
        fields[1], fields[2], fields[14] = Status(fields[1]), TaskOutcome(fields[2]), tuple(fields[14])
        return Task(*fields)

    def terms(self, task_id: bytes) -> Terms:
        """The terms of a task."""
        return Terms(*self.read("terms", task_id))

    def submit(self, wallet: Wallet, terms: Terms, fee: int) -> bytes:
        """Open a task with ``fee`` wei in escrow; returns its id."""
        nonce = self.read("nonces", wallet.address)
        wallet.send(self.function("submitTask", astuple(terms)), fee)
        return bytes(self.read("computeTaskId", wallet.address, nonce, astuple(terms)))

    def cancel(self, wallet: Wallet, task_id: bytes) -> TxReceipt:
        """Withdraw an open task."""
        return wallet.send(self.function("cancelTask", task_id))

    def join_as_verifier(self, wallet: Wallet, task_id: bytes) -> TxReceipt:
        """Take the verifier's seat with the stake that the terms ask for."""
        return wallet.send(self.function("joinAsVerifier", task_id), self.terms(task_id).verifier_stake)

    def leave_as_verifier(self, wallet: Wallet, task_id: bytes) -> TxReceipt:
        """Give the seat of an open task back and take the stake."""
        return wallet.send(self.function("leaveAsVerifier", task_id))

    def accept(self, wallet: Wallet, task_id: bytes, price: int, thresholds: Sequence[int]) -> TxReceipt:
        """Become the solver for ``price`` under these thresholds."""
        call = self.function("acceptTask", task_id, price, list(thresholds))
        return wallet.send(call, self.terms(task_id).solver_stake)

    def post_progress(
        self, wallet: Wallet, task_id: bytes, size: int, log_root: bytes, consistency: Sequence[bytes]
    ) -> TxReceipt:
        """Publish a longer checkpoint log."""
        return wallet.send(self.function("postProgress", task_id, size, log_root, list(consistency)))

    def commit_proof(
        self,
        wallet: Wallet,
        task_id: bytes,
        size: int,
        log_root: bytes,
        consistency: Sequence[bytes],
        digest: bytes,
        inclusion_of_start: Sequence[bytes],
    ) -> TxReceipt:
        """Commit the complete log and the learning proof."""
        arguments = (task_id, size, log_root, list(consistency), digest, list(inclusion_of_start))
        return wallet.send(self.function("commitProof", *arguments))

    def draw(self, wallet: Wallet, task_id: bytes) -> list[int]:
        """Take the beacon's seed; returns the drawn segments."""
        wallet.send(self.function("draw", task_id))
        return self.drawn_segments(task_id)

    def drawn_segments(self, task_id: bytes) -> list[int]:
        """The drawn segments in the order of the draw."""
        return list(self.read("drawnSegments", task_id))

    def post_verdict(
        self,
        wallet: Wallet,
        task_id: bytes,
        claims: Sequence[Claim],
        proofs: Sequence[tuple[Sequence[bytes], Sequence[bytes]]],
    ) -> TxReceipt:
        """Answer for every drawn segment; a proof is the inclusion paths of its start and its end."""
        paths = [(list(start), list(end)) for start, end in proofs]
        return wallet.send(self.function("postVerdict", task_id, [astuple(claim) for claim in claims], paths))

    def claims(self, task_id: bytes, verdict: int) -> list[Claim]:
        """The claims of a verdict, from events."""
        posted = self.events("ClaimPosted", taskId=task_id, verdict=verdict)
        return [_claim(event["claim"]) for event in sorted(posted, key=lambda event: int(event["index"]))]

    def challenge(
        self,
        wallet: Wallet,
        task_id: bytes,
        index: int,
        claim: Claim,
        kind: Kind,
        component: int,
        header: bytes,
        payload: bytes,
    ) -> int:
        """Dispute claim ``index`` of the current verdict for the bond of the moment; returns the number of the dispute.

        ``payload`` is the challenger's own version of what it disputes: its first move.
        """
        call = self.function("challenge", task_id, index, astuple(claim), int(kind), component, header, payload)
        receipt = wallet.send(call, self.bond_of(task_id))
        (event,) = self.contract.events.Challenged().process_receipt(receipt, errors=DISCARD)
        return int(event["args"]["dispute"])

    def bond_of(self, task_id: bytes) -> int:
        """What the next challenger of the current verdict puts up, in wei.

        Every challenge of the verdict has doubled it, up to what a challenger wins (`payouts.bond_after`).
        """
        return int(self.read("bondOf", task_id))

    def dispute(self, number: int) -> Dispute:
        """What the market knows about a dispute; zeros if it doesn't know it."""
        return Dispute(*self.read("dispute", number))

    def disputes(self, task_id: bytes) -> list[int]:
        """Numbers of the disputes that the current verdict waits for, oldest first."""
        task = self.task(task_id)
        if task.status is not Status.VERDICT or not task.open:
            return []
        challenged = self.events("Challenged", taskId=task_id, verdict=task.verdicts)
        numbers = [int(event["dispute"]) for event in challenged]
        return [number for number in numbers if not self.dispute(number).released]

    def moot(self, task_id: bytes, challenger: ChecksumAddress) -> list[int]:
        """Numbers of a challenger's disputes whose verdict fell in another dispute and whose bond is still held."""
        task = self.task(task_id)
        current = task.verdicts if task.status is Status.VERDICT else None
        challenged = self.events("Challenged", taskId=task_id, challenger=challenger)
        numbers = [int(event["dispute"]) for event in challenged if event["verdict"] != current]
        return [number for number in numbers if not self.dispute(number).released]

    def release_bond(self, wallet: Wallet, number: int) -> TxReceipt:
        """Credit the challenger of a moot dispute its bond."""
        return wallet.send(self.function("releaseBond", number))

    def settle(self, wallet: Wallet, task_id: bytes) -> TxReceipt:
        """Close a task whose verdict stood through its window and all disputes."""
        return wallet.send(self.function("settle", task_id))

    def claim_solver_default(self, wallet: Wallet, task_id: bytes) -> TxReceipt:
        """Close a task whose solver missed its deadline."""
        return wallet.send(self.function("claimSolverDefault", task_id))

    def claim_verifier_default(self, wallet: Wallet, task_id: bytes) -> TxReceipt:
        """Remove a verifier that missed its deadline."""
        return wallet.send(self.function("claimVerifierDefault", task_id))

    def withdraw(self, wallet: Wallet) -> TxReceipt:
        """Take what the market owes the wallet."""
        return wallet.send(self.function("withdraw"))

    def credit(self, address: ChecksumAddress) -> int:
        """What the market owes an account, in wei."""
        return int(self.read("credits", address))


def _claim(fields: Any) -> Claim:
    """A claim as an event carries it."""
    values = list(fields.values()) if hasattr(fields, "values") else list(fields)
    segment, start, end, replay, distances, references = values
    return Claim(int(segment), bytes(start), bytes(end), bytes(replay), tuple(distances), tuple(references))
