"""Tickets of all accounts over time, and whom a draw picks: mirror of `contracts/incentives/Sortition.sol`."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import itemgetter

from pol.incentives.sortition import TicketDraw, watch_limit


@dataclass
class Weights:
    """Tickets over time, rebuilt from the contract's events in their order. Times are seconds."""

    _accounts: dict[bytes, list[tuple[int, int]]] = field(default_factory=dict)
    _total: list[tuple[int, int]] = field(default_factory=list)

    def set(self, account: bytes, tickets: int, at: int) -> None:
        """``account`` has ``tickets`` after the event in the second ``at``."""
        trace = self._accounts.setdefault(account, [])
        _push(self._total, at, _latest(self._total) - _latest(trace) + tickets)
        _push(trace, at, tickets)

    def tickets(self, account: bytes, t: int) -> int:
        """Tickets that count in a draw whose round was fixed at ``t``."""
        trace = self._accounts.get(account, [])
        return min(_before(trace, t), _latest(trace))

    def total(self, t: int) -> int:
        """Tickets of all at the end of the second before ``t``."""
        return _before(self._total, t)

    def ranked(self, draw: TicketDraw) -> list[tuple[int, bytes, int]]:
        """Rank, account and ticket of all counting tickets, the smallest rank first; the first to claim is seated."""
        return sorted((draw.rank(*holder), *holder) for holder in self._holders(draw.since))

    def watching(self, draw: TicketDraw, watchers: int) -> list[tuple[bytes, int]]:
        """Account and ticket of all drawn watchers."""
        limit = watch_limit(self.total(draw.since), watchers)
        return [holder for holder in self._holders(draw.since) if draw.rank(*holder) < limit]

    def _holders(self, t: int) -> Iterator[tuple[bytes, int]]:
        for account in self._accounts:
            for ticket in range(self.tickets(account, t)):
                yield account, ticket


def _latest(trace: list[tuple[int, int]]) -> int:
    return trace[-1][1] if trace else 0


def _push(trace: list[tuple[int, int]], at: int, value: int) -> None:
    if trace and trace[-1][0] == at:
        trace.pop()
    trace.append((at, value))


def _before(trace: list[tuple[int, int]], t: int) -> int:
    """The value at the end of the second before ``t``."""
    number = bisect_right(trace, t - 1, key=itemgetter(0))
    return trace[number - 1][1] if number else 0
