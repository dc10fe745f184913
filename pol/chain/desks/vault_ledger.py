"""A vault's balances recomputed from its events alone, as a check of its getters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from eth_typing import ChecksumAddress

from pol.chain.desks.vault import StakeVault

DutyKey = tuple[ChecksumAddress, bytes, ChecksumAddress]
"""Desk, key and account of a duty."""
MOVES = ("Deposited", "Withdrawn", "Locked", "Unlocked", "Leaving", "Left", "Forfeited", "Moved", "Paid")

CHECKED = 64
T = TypeVar("T")


@dataclass
class Ledger:
    """Balances in the smallest unit of the asset."""

    free: Counter[ChecksumAddress] = field(default_factory=Counter)
    locked: Counter[DutyKey] = field(default_factory=Counter)
    leaving: Counter[DutyKey] = field(default_factory=Counter)
    pots: Counter[tuple[ChecksumAddress, bytes]] = field(default_factory=Counter)
    overdrawn: list[str] = field(default_factory=list)
    """Events that led to a negative balance."""

    @classmethod
    def of(cls, vault: StakeVault) -> Ledger:
        """The ledger of a vault up to the latest block."""
        ledger = cls()
        for name, event in vault.log.read(MOVES):
            ledger.enter(name, event)
        return ledger

    @property
    def owed(self) -> int:
        """Sum of all balances: the money that the vault has to hold."""
        return self.free.total() + self.locked.total() + self.leaving.total() + self.pots.total()

    def enter(self, name: str, event: dict[str, Any]) -> None:
        """Enter one event."""
        amount, account = int(event["amount"]), event.get("account")
        duty: Any = (event.get("desk"), event.get("key"), account)
        match name:
            case "Deposited":
                self._add(name, self.free, account, amount)
            case "Withdrawn":
                self._add(name, self.free, account, -amount)
            case "Locked":
                self._add(name, self.free, account, -amount)
                self._add(name, self.locked, duty, amount)
            case "Unlocked":
                self._add(name, self.locked, duty, -amount)
                self._add(name, self.free, account, amount)
            case "Leaving":
                self._add(name, self.locked, duty, -amount)
                self._add(name, self.leaving, duty, amount)
            case "Left":
                self._add(name, self.leaving, duty, -amount)
                self._add(name, self.free, account, amount)
            case "Forfeited":
                # The locked part goes first, the leaving part covers the rest.
                first = min(amount, self.locked[duty])
                self._add(name, self.locked, duty, -first)
                self._add(name, self.leaving, duty, first - amount)
                self._add(name, self.pots, duty[:2], amount)
            case "Moved":
                self._add(name, self.pots, duty[:2], -amount)
                self._add(name, self.pots, (event["toDesk"], event["toKey"]), amount)
            case "Paid":
                self._add(name, self.pots, duty[:2], -amount)
                self._add(name, self.free, account, amount)

    def _add(self, name: str, balances: Counter[Any], key: Any, amount: int) -> None:
        balances[key] += amount
        if balances[key] < 0:
            self.overdrawn.append(f"{name}: {key} {balances[key]}")


def held(vault: StakeVault) -> int:
    """The money that the vault holds."""
    if vault.token is None:
        return vault.connection.balance(vault.address)
    return vault.token.balance(vault.address)


def spread(items: Iterable[T]) -> list[T]:
    """At most `CHECKED` of the items, evenly: a node without some stretch of history shows it in any of them."""
    listed = list(items)
    return listed[:: -(-len(listed) // CHECKED) or 1]


def whole_vault(vault: StakeVault, block: int) -> Iterator[tuple[str, int, int]]:
    """The events that have to be there at a block (`EventCache`): the wiring, and what adds up to each balance."""
    yield "the vault's wiring", int(vault.read("wired", at=block)), len(vault.events("Wired"))
    for account, free in spread(Ledger.of(vault).free.items()):
        yield f"the sum of money of {account}", int(vault.read("free", account, at=block)), free
