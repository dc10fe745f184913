"""Bytes between processes that may die at any time, through a store of torch.distributed: nothing is pickled."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, Protocol, TypeVar

from torch.distributed import DistNetworkError, DistStoreError

from pol.errors import OperationalError

LOG = logging.getLogger(__name__)
INBOX, ROUND, END = "inbox", "round", "end"
_LOOK = 0.5
"""Seconds after which a worker that waits looks whether its own message is still there."""
_T = TypeVar("_T")


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

    def delete_key(self, key: str, /) -> bool:
        """Whether a value was there; it is gone."""
        ...

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
    seconds a reader waits. The store dies with the coordinator's process. ``connect`` waits for the one of a
    coordinator that was started again; what this mailbox has posted since `forget` is then posted again.
    """

    def __init__(
        self, store: KeyValueStore, patience: float, connect: Callable[[], KeyValueStore] | None = None
    ) -> None:
        self._store, self._patience, self._connect = store, patience, connect
        self._posts: list[tuple[int, Callable[[KeyValueStore], None]]] = []
        self._round = -1
        self._shown: list[tuple[int, str]] = []
        """What a coordinator has shown, with its round, and what it expects."""
        self._messages: dict[str, bytes] = {}
        """What this worker shows."""
        self.sent = 0

    def hand_in(self, entry: bytes) -> None:
        """Bring an entry to the coordinator."""
        self._post(lambda store: store.queue_push(INBOX, entry))
        self.sent += len(entry)

    def handed_in(self) -> list[bytes]:
        """The entries that have come since the last call, in order."""
        return [bytes(self._store.queue_pop(INBOX, block=False)) for _ in range(self._store.queue_len(INBOX))]

    def send(self, round_: int, phase: str, sender: str, message: bytes) -> None:
        """Show a message to all."""
        place = _message(round_, phase, sender)
        self._messages = {place: message}
        self._shown.append((round_, place))
        self._post(lambda store: store.set(place, message))
        self.sent += len(message)

    def message(self, round_: int, phase: str, sender: str) -> bytes:
        """A message, waited for. Raises OperationalError: it doesn't come."""
        return self._wait(_message(round_, phase, sender), f"the message of {sender} in round {round_}")

    def has_message(self, round_: int, phase: str, sender: str) -> bool:
        """Whether a message is there."""
        return self._has(_message(round_, phase, sender))

    def refuse(self, round_: int, phase: str, sender: str) -> None:
        """Take away what isn't its sender's message: anybody can put that there, and the sender shows its own again."""
        self._store.delete_key(_message(round_, phase, sender))

    def expect(self, round_: int, phase: str, senders: Sequence[str]) -> None:
        """A round begins, with these messages to come: nobody asks any more for what was shown two rounds before."""
        self._shown += [(round_, _message(round_, phase, sender)) for sender in senders]
        for at, place in self._shown:
            if at < round_ - 1:
                self._store.delete_key(place)
        self._shown = [(at, place) for at, place in self._shown if at >= round_ - 1]

    def acknowledge(self, claim: bytes, receipt: bytes, round_: int) -> None:
        """Show the receipt of a claim of a round to its author."""
        self._set(round_, f"receipt/{claim.hex()}", receipt)

    def receipt(self, claim: bytes) -> bytes | None:
        """The receipt of a claim, if it is there."""
        key = f"receipt/{claim.hex()}"
        return self._ask(lambda store: bytes(store.get(key)) if store.check([key]) else None)

    def open(self, newest: int = -1) -> None:
        """Say which round is the newest, -1 before the first."""
        self._store.set(ROUND, str(newest))

    def show(self, round_: int, roster: bytes, final: bool) -> None:
        """Show the roster of a round to those who ask for it."""
        self._set(round_, _notice(round_, final), roster)

    def announce(self, round_: int, roster: bytes, final: bool) -> None:
        """Show the roster of the newest round to all."""
        self.show(round_, roster, final)
        self.open(round_)

    def close(self) -> None:
        """Say that the training is over, and its log published."""
        self._store.set(END, "")

    def roster(self, round_: int, final: bool) -> bytes:
        """The roster of a round, waited for. Raises OperationalError: it doesn't come."""
        return self._wait(_notice(round_, final), f"the {'final' if final else 'first'} roster of round {round_}")

    def has_roster(self, round_: int, final: bool) -> bool:
        """Whether the roster of a round is there."""
        return self._has(_notice(round_, final))

    @property
    def round(self) -> int:
        """The newest round, -1 before the first; waits for a coordinator that shows what was before a restart.

        Raises:
            OperationalError: no coordinator is there.
        """
        return int(self._wait(ROUND, "the coordinator's newest round"))

    def forget(self, round_: int) -> None:
        """This round begins: what was posted before the round before is in the log, and isn't posted again."""
        self._round, self._shown = round_, []
        self._posts = [(posted, post) for posted, post in self._posts if posted >= round_ - 1]

    def depart(self, worker: str, round_: int | None) -> None:
        """Stay until the coordinator has what was handed in: it has begun this round, or without one has ended.

        Raises:
            OperationalError: it doesn't.
        """
        if round_ is None:
            self._wait(END, "the end of the training")
        else:
            self.roster(round_, final=False)
        self._ask(lambda store: store.set(_departure(worker), ""))

    def await_departures(self, workers: list[str], seconds: float) -> bool:
        """Whether all these workers have departed; waited for."""
        try:
            self._store.wait([_departure(worker) for worker in workers], timedelta(seconds=seconds))
        except DistStoreError:
            return False
        return True

    def _has(self, key: str) -> bool:
        return self._ask(lambda store: store.check([key]))

    def _wait(self, key: str, what: str) -> bytes:
        def found(store: KeyValueStore) -> bytes:
            until = time.monotonic() + self._patience
            while True:
                try:
                    store.wait([key], timedelta(seconds=min(_LOOK, self._patience)))
                    return bytes(store.get(key))
                except DistNetworkError:
                    raise
                except (DistStoreError, RuntimeError):
                    if time.monotonic() > until:
                        raise
                    self._show_again(store)

        try:
            return self._ask(found)
        except (DistStoreError, RuntimeError) as error:
            raise OperationalError(f"{what} hasn't come in {self._patience} s: is its sender alive?") from error

    def _show_again(self, store: KeyValueStore) -> None:
        """Show once more what was taken away, as it wasn't this worker's message any more."""
        for place, message in self._messages.items():
            if not store.check([place]):
                store.set(place, message)

    def _set(self, round_: int, key: str, value: bytes) -> None:
        self._shown.append((round_, key))
        self._store.set(key, value)

    def _post(self, post: Callable[[KeyValueStore], None]) -> None:
        if self._connect is not None:
            self._posts.append((self._round, post))
        self._ask(post)

    def _ask(self, question: Callable[[KeyValueStore], _T]) -> _T:
        """Ask the store; if it is gone, the next one, as soon as that is there and has got the posts of before."""
        is_new = False
        while True:
            try:
                if is_new:
                    self._post_again()
                    is_new = False
                return question(self._store)
            except DistNetworkError as error:
                if self._connect is None:
                    raise OperationalError(f"the coordinator can't be reached: is it alive? ({error})") from error
                LOG.warning(
                    "the coordinator can't be reached: waiting up to %.0f s until it is started again", self._patience
                )
                self._store, is_new = self._connect(), True

    def _post_again(self) -> None:
        try:
            self._store.wait([ROUND], timedelta(seconds=self._patience))
        except DistStoreError as error:
            raise OperationalError(f"a coordinator is there again, but shows no round in {self._patience} s") from error
        for _, post in self._posts:
            post(self._store)
        LOG.warning("the coordinator is back: going on")


def _message(round_: int, phase: str, sender: str) -> str:
    return f"message/{round_}/{phase}/{sender}"


def _notice(round_: int, final: bool) -> str:
    return f"roster/{round_}/{'final' if final else 'begun'}"


def _departure(worker: str) -> str:
    return f"departed/{worker}"
