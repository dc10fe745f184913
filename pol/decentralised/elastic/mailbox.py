"""Bytes between processes that may die at any time, through a store of torch.distributed: nothing is pickled."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Protocol

from torch.distributed import DistStoreError

from pol.errors import OperationalError

INBOX, ROUND = "inbox", "round"


class KeyValueStore(Protocol):
    """What is used of `torch.distributed.Store`; a TCPStore and a HashStore are ones."""

    def set(self, key: str, value: Any, /) -> None:
        """Set a value, bytes or a text."""

    def get(self, key: str, /) -> bytes:
        """A value, waited for."""
        ...

    def check(self, keys: list[str], /) -> bool:
        """Whether all keys have values."""
        ...

    def wait(self, keys: list[str], timeout: timedelta, /) -> None:
        """Wait until all keys have values."""

    def queue_push(self, key: str, value: Any, /) -> None:
        """Append to a queue."""

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """The first value of a queue."""
        ...

    def queue_len(self, key: str, /) -> int:
        """How many values a queue has."""
        ...


class Mailbox:
    """Messages by round, phase and sender; the coordinator's inbox, and its notices of rosters.

    Who can reach the store can put anything into it: what is read is checked by its signature. ``patience`` is how many
    seconds a reader waits.
    """

    def __init__(self, store: KeyValueStore, patience: float) -> None:
        self._store, self._patience = store, patience
        self.sent = 0

    def hand_in(self, entry: bytes) -> None:
        """Bring an entry to the coordinator."""
        self._store.queue_push(INBOX, entry)
        self.sent += len(entry)

    def handed_in(self) -> list[bytes]:
        """The entries that have come since the last call, in order."""
        return [bytes(self._store.queue_pop(INBOX, block=False)) for _ in range(self._store.queue_len(INBOX))]

    def send(self, round_: int, phase: str, sender: str, message: bytes) -> None:
        """Show a message to all."""
        self._store.set(f"message/{round_}/{phase}/{sender}", message)
        self.sent += len(message)

    def message(self, round_: int, phase: str, sender: str) -> bytes:
        """A message, waited for.

        Raises:
            OperationalError: it doesn't come.
        """
        return self._wait(f"message/{round_}/{phase}/{sender}", f"the message of {sender} in round {round_}")

    def has_message(self, round_: int, phase: str, sender: str) -> bool:
        """Whether a message is there."""
        return self._store.check([f"message/{round_}/{phase}/{sender}"])

    def acknowledge(self, claim: bytes, receipt: bytes) -> None:
        """Show the receipt of a claim to its author."""
        self._store.set(f"receipt/{claim.hex()}", receipt)

    def receipt(self, claim: bytes) -> bytes | None:
        """The receipt of a claim, if it is there."""
        key = f"receipt/{claim.hex()}"
        return bytes(self._store.get(key)) if self._store.check([key]) else None

    def announce(self, round_: int, roster: bytes, final: bool) -> None:
        """Show the roster of a round to all."""
        self._store.set(_notice(round_, final), roster)
        self._store.set(ROUND, str(round_))

    def roster(self, round_: int, final: bool) -> bytes:
        """The roster of a round, waited for.

        Raises:
            OperationalError: it doesn't come.
        """
        return self._wait(_notice(round_, final), f"the {'final' if final else 'first'} roster of round {round_}")

    def has_roster(self, round_: int, final: bool) -> bool:
        """Whether the roster of a round is there."""
        return self._store.check([_notice(round_, final)])

    @property
    def round(self) -> int:
        """The newest round, -1 before the first."""
        return int(self._store.get(ROUND)) if self._store.check([ROUND]) else -1

    def _wait(self, key: str, what: str) -> bytes:
        try:
            self._store.wait([key], timedelta(seconds=self._patience))
        except (DistStoreError, RuntimeError) as error:
            raise OperationalError(f"{what} hasn't come in {self._patience} s: is its sender alive?") from error
        return bytes(self._store.get(key))


def _notice(round_: int, final: bool) -> str:
    return f"roster/{round_}/{'final' if final else 'begun'}"
