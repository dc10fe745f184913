"""The simulation venue: it draws, and receives all actions of the agents.

A `Venue` draws by hashes and does nothing else; `population_on_chain` plays the same at deployed contracts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pol.incentives.abi import abi_hash
from pol.incentives.forced_errors import Assignment
from pol.incentives.jackpot import watch_commitment


@dataclass(frozen=True)
class SimulatedVerdict:
    """A verifier's verdict on the drawn segments, with its forced error if any."""

    account: bytes
    duty: Assignment
    claims: Sequence[bytes]
    """Roots that stand after the disclosure."""
    planted: int | None
    """Index of the claim that is posted with the error root."""
    rejecting: frozenset[int]
    """Indices of claims whose sums are above the thresholds."""

    @property
    def posted(self) -> list[bytes]:
        """Roots before the disclosure."""
        return [self.duty.error_root if i == self.planted else root for i, root in enumerate(self.claims)]


@dataclass(frozen=True)
class WatchCommitment:
    """A watcher's commitment of one ticket, and its opening."""

    account: bytes
    ticket: int
    seating: int
    index: int
    root: bytes
    entry: bytes
    salt: bytes
    posted: bytes

    def opens(self, task_id: bytes) -> bool:
        """Whether the commitment is its own: a copy isn't."""
        made = watch_commitment(self.account, task_id, self.seating, self.index, self.entry, self.salt)
        return made == self.posted


class Venue:
    """Draws by hashes. Rounds are fixed in the second ``second``, one for each task."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.second = 0

    def admit(self, name: str, accounts: Sequence[bytes], tasks: int) -> tuple[bytes, ...]:
        """Who ``name`` is there: as many accounts as it has here, with money for so many tasks."""
        return tuple(accounts)

    def donate(self, amount: int) -> None:
        """The donor gives to the fund."""

    def enrol(self, account: bytes, tickets: int) -> int:
        """An account has so many tickets from now on; returns the second in which it got or lost them."""
        return self.second

    def submit(self, number: int) -> bytes:
        """A new task; returns its id."""
        self.second += 1
        return abi_hash("task", self.seed, number)

    def open_seat(self, task_id: bytes, seating: int) -> tuple[int, bytes]:
        """When the round of a seat was fixed, and its seed."""
        return self.second, abi_hash("seating", task_id, seating)

    def profile(self, task_id: bytes, account: bytes, ticket: int) -> None:
        """The ticket takes the profiler's seat, and its profile stands."""

    def train(self, task_id: bytes, solver: bytes, roots: Sequence[bytes]) -> bytes:
        """The solver wins the auction and commits to a log of these roots; returns the seed of the draw."""
        return abi_hash("segments", task_id)

    def sit(self, task_id: bytes, seating: int, account: bytes, ticket: int, secret: bytes) -> bytes:
        """The ticket takes the verifier's seat with this secret; returns the seed of its duty."""
        return abi_hash("seating", task_id, seating)

    def post(self, task_id: bytes, said: SimulatedVerdict) -> tuple[int, bytes]:
        """A verdict; returns when the round of its watchers was fixed, and its seed."""
        return self.second, abi_hash("watch", task_id, said.duty.seating)

    def entry(self, task_id: bytes, index: int, root: bytes, rejects: bool) -> bytes:
        """What stands for a true claim in its verdict; here a root is all that an entry says."""
        return root

    def watch(self, task_id: bytes, found: WatchCommitment) -> None:
        """A watcher's commitment."""

    def disclose(self, task_id: bytes, said: SimulatedVerdict) -> None:
        """What the verifier has to show."""

    def withhold(self, task_id: bytes) -> None:
        """The verifier shows nothing in time."""

    def challenge(self, task_id: bytes, said: SimulatedVerdict, challenger: bytes, *, right: bool) -> None:
        """A dispute about the first claim, and its end: who has no execution to defend gives up."""

    def object(self, task_id: bytes, segment: int, bond: int) -> int:
        """An outsider objects to a false segment of a log, and is right; returns what it put up."""
        return bond

    def settle(self, task_id: bytes) -> None:
        """The verdict stood."""

    def claim(
        self, task_id: bytes, said: SimulatedVerdict, stands: SimulatedVerdict, found: WatchCommitment, *, paid: bool
    ) -> None:
        """A catch is claimed after the settlement; ``paid`` says what has to come of it."""

    def close(self, task_id: bytes) -> None:
        """All catches have been claimed: what is left of the reserve goes back."""
