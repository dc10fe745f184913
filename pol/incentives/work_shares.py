"""Pay by proven work in integers, as contracts/rounds/RoundShares.sol computes it (docs/spec/rounds.md, "Shares")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pol.commitments import merkle
from pol.errors import ProtocolError

MAX_LINE = 2_044
"""Claims of one line: a transaction takes 128 KiB, and the phases come with them."""


@dataclass(frozen=True)
class CountedClaim:
    """A claim that a worker counts, by its place and digest, and the units of work of its phase."""

    round: int
    phase: int
    part: int
    claim: bytes
    units: int

    def encode(self) -> bytes:
        """48 bytes; what the claim counts for is the plan's word."""
        return self.place.to_bytes(16, "big") + self.claim

    @property
    def place(self) -> int:
        """Its place in the training: claims are counted in this order."""
        return self.round << 64 | self.phase << 32 | self.part

    @property
    def leaf(self) -> bytes:
        """Its leaf in the tree of its line."""
        return merkle.leaf_hash(self.encode())


def encode_line(claims: Sequence[CountedClaim]) -> bytes:
    """The claims of a line."""
    places = [claim.place for claim in claims]
    if not 0 < len(places) <= MAX_LINE or any(after <= before for before, after in pairwise(places)):
        raise ProtocolError(f"a line counts 1 to {MAX_LINE} claims, in order of round, phase and part: sort them")
    return b"".join(claim.encode() for claim in claims)


@dataclass(frozen=True)
class SettledWork:
    """What a settlement pays: all amounts together are its ``pay``, less what rounding leaves."""

    paid: Mapping[str, int]
    returned: int
    """To the submitter."""


def pay_of(pay: int, units: int, total: int) -> int:
    """The pay of ``units`` among ``total``, rounded down: two keys of one worker get no more than one."""
    return pay * units // total if total else 0


def settle_work(pay: int, work: int, units: Mapping[str, int]) -> SettledWork:
    """What each worker is paid for its units, and what returns to the submitter.

    ``work``: units that the settlement pays in full. Who was slashed before its payment isn't in ``units``.
    """
    total = sum(units.values())
    paid = {worker: pay_of(pay, own, max(total, work)) for worker, own in units.items()}
    return SettledWork(paid, pay_of(pay, max(0, work - total), work))
