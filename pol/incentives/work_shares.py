"""Pay by proven work in integers, as contracts/rounds/RoundShares.sol computes it (docs/spec/rounds.md, "Shares")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pol.commitments import merkle
from pol.errors import ProtocolError


@dataclass(frozen=True)
class CountedClaim:
    """A claim that a worker counts, by its place and digest, and the units of work of its phase."""

    round: int
    phase: int
    part: int
    claim: bytes
    units: int

    def encode(self) -> bytes:
        """64 bytes."""
        place = self.round.to_bytes(8, "big") + self.phase.to_bytes(4, "big") + self.part.to_bytes(4, "big")
        return place + self.claim + self.units.to_bytes(16, "big")

    @property
    def leaf(self) -> bytes:
        """Its leaf in the tree of its line."""
        return merkle.leaf_hash(self.encode())


def encode_line(claims: Sequence[CountedClaim]) -> bytes:
    """The claims of a line.

    Raises:
        ProtocolError: there are none, or two are out of order: by round, phase and part.
    """
    places = [(claim.round, claim.phase, claim.part) for claim in claims]
    if not places or any(after <= before for before, after in pairwise(places)):
        raise ProtocolError("a line counts at least one claim, in order of round, phase and part: sort them")
    return b"".join(claim.encode() for claim in claims)


@dataclass(frozen=True)
class SettledWork:
    """What a settlement pays; all amounts together are its ``pay``."""

    paid: Mapping[str, int]
    returned: int
    """To the submitter."""


def pay_of(pay: int, units: int, total: int) -> int:
    """The pay of ``units`` among ``total``, rounded down: two keys of one worker get no more than one."""
    return pay * units // total if total else 0


def settle_work(pay: int, units: Mapping[str, int], slashed: frozenset[str] = frozenset()) -> SettledWork:
    """What each worker is paid for its units, and what returns to the submitter.

    ``slashed``: workers that lose their stake behind the first payment: their units stay in the sum. Who was slashed
    before isn't in ``units``.
    """
    total = sum(units.values())
    paid = {worker: 0 if worker in slashed else pay_of(pay, own, total) for worker, own in units.items()}
    return SettledWork(paid, pay - sum(paid.values()))
