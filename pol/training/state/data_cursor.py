"""The place in one loader: epoch, batch, the random state at the epoch's begin, and a digest of the batches seen."""

from __future__ import annotations

import copy
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError
from pol.training.state import random_state
from pol.training.state.batch_digest import digest
from pol.training.state.draws import OTHER_DATA, Draws, cause
from pol.training.state.epoch_lengths import EpochLengths, look_for_counts
from pol.training.state.loader_parts import ChangedData, Count, LoaderParts

Batch = TypeVar("Batch")
SEEN_TAG = b"pol/batches/1"
AHEAD = 2
"""Batches that a loader may hold back: so many random states are kept beside the one before the last draw."""


class DataCursor:
    """Follows a loader through its epochs.

    A loader draws its order when an epoch begins. An epoch that was left in the middle therefore begins again in the
    same random state, with the same counters of its samplers. The used batches are drawn again, compared with those of
    the checkpoint, and dropped. If only a new epoch is to begin, the first batch of the one before is drawn again.
    A loader that keeps its place itself (``place``) draws its last batch again.

    Batches that draw from the generators of this process depend on what the training draws between them. Of those the
    first and the last are compared, in the random states before the last draws. A loader may hold back `AHEAD` batches.
    """

    def __init__(self, draws: Draws, name: str) -> None:
        self.name = name
        self.epoch = self.batch = 0
        self.seen, self.first, self.last = bytes(32), b"", b""
        self.others = 0
        """Batches that weren't the recorded ones when they were drawn again, and were allowed."""
        self.given: Callable[[], object] = lambda: None
        self.trained = False
        """Whether steps were taken with it."""
        self.beside: set[str] = set()
        """Loaders that steps of this epoch were taken with as well."""
        self._draws, self._random = draws, draws.random
        self._loader: Callable[[], object] = lambda: None
        self._parts: LoaderParts | None = None
        self._iteration: object = None
        self._began: dict[str, Any] = {}
        self._before: deque[Any] = deque(maxlen=AHEAD + 1)
        self._places: list[dict[str, Any]] = []
        self._initial: dict[str, Count] = {}
        self._counts: dict[str, Count] = {}
        self._lengths = EpochLengths()
        self._length: int | None = None
        self._coming: int | None = None
        """Batches of the loader of the epoch that has begun or is about to."""
        self._is_over = self._is_resumed = self._is_counted = self._was_past = False
        self.drawn = 0
        self._steps: list[int] = []
        self._data = ChangedData(name)

    @property
    def present(self) -> tuple[int, int]:
        """Epoch and used batches; a finished epoch counts as the begin of the next one."""
        is_over = self._is_over
        if self.batch and not is_over:
            # A loop that has closed its iteration goes on elsewhere, or has ended: then where all epochs have.
            is_left = self.name not in self._draws.open and (self._draws.drawing or self.batch == self._lengths.left)
            is_over = bool(is_left) or self.batch in (self._began["size"], self._length)
        return (self.epoch + 1, 0) if is_over else (self.epoch, self.batch)

    def state(self) -> dict[str, Any]:
        """The cursor in a checkpoint. ``seen`` chains the digests of all batches in the order of their use."""
        epoch, batch = self.present
        if self._parts is not None and not batch:
            self._counts = self._parts.counts()
        return {
            "epoch": epoch,
            "batch": batch,
            "seen": self.seen,
            "others": self.others,
            "trained": self.trained,
            "coming": self._coming,
            "first": self.first,
            "last": self.last,
            "began": self._began,
            "before": [random_state.as_plain(raw) for raw in self._before],
            "places": self._places,
            "counts": self._counts,
            "initial": self._initial,
            "left": self._lengths.left if epoch == self.epoch else self._ended()[0],
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Continue from a checkpoint's cursor."""
        self.epoch, self.batch, self._lengths = int(state["epoch"]), int(state["batch"]), EpochLengths(state["left"])
        self.others = int(state["others"])
        self.seen, self.first, self.last = (bytes(state[name]) for name in ("seen", "first", "last"))
        self._began, self._places = dict(state["began"]), list(state["places"])
        self._before = deque(state["before"], AHEAD + 1)
        self._counts, self._initial = dict(state["counts"]), dict(state["initial"])
        self.trained, self._coming = bool(state["trained"]), state["coming"]
        self._is_over, self._is_resumed, self._was_past = False, True, False

    def take(self, loader: object) -> None:
        """A loader is given under this name; ProtocolError if another one of the name is in use."""
        known = self._loader()
        if known is not None and known is not loader:
            raise ProtocolError(
                f"two loaders are called {self.name!r}: give each a name of its own, as in recorder.batches(loader, "
                "name='validation'), or the same name= if one takes the place of the other"
            )
        if known is not loader:
            self._data.shown = {}
        self._loader = weakref.ref(loader) if getattr(type(loader), "__weakrefoffset__", 0) else lambda: None

    def end_epoch(self) -> None:
        """The epoch is over; for trainers that count batches and never draw the loader to its end."""
        self._is_over = self._is_counted = True

    def note_step(self, names: set[str]) -> None:
        """A step is over, taken with these loaders."""
        self._steps.append(self.drawn)
        self.drawn, self.trained = 0, True
        if gone := self.beside - names:
            warnings.warn(
                f"steps go on with the loader {self.name!r} after {', '.join(sorted(gone))} has ended: batches that "
                "itertools.cycle keeps are lost at a resumption. Draw anew instead, by a function with `while True: "
                "yield from recorder.batches(loader, name=...)`",
                stacklevel=5,
            )
        self.beside = names - {self.name}

    def batches(
        self,
        loader: Iterable[Batch],
        *,
        place: Any = None,
        length: int | None = None,
        counted: bool = False,
        uneven: bool = False,
    ) -> Iterator[Batch]:
        """One epoch of the loader, or the rest of the one that a checkpoint left.

        place: the part that holds the loader's place, whose state is restored. length: batches of an epoch, if they
        are fewer than the loader's. counted: the loop counts batches by the cursor. uneven: steps take different
        numbers of batches.

        Raises:
            ProtocolError: the used batches can't be drawn again, or the loop holds batches back.
        """
        if self._is_resumed and not self._was_past and self._is_past():
            self._was_past = True
            return
        mine = self._iteration = object()
        is_here = self._draws.arrive(self.name)
        parts = self._register(loader)
        is_resumed, self._is_resumed = self._is_resumed, False
        self._initial = self._initial or parts.counts()
        is_counted = counted or length is not None
        if is_resumed and self.batch:
            if not is_counted:
                self._lengths.cut = self.batch
                look_for_counts(self.given(), self._lengths)
            iterator = self._again(parts, place)
            self._register(loader)
        else:
            if is_resumed and self._began:
                self._compare_begin(parts, place, is_here)
                self._register(loader)
            iterator = self._begin(parts, place)
        self._is_counted, self._parts, self._length = is_counted, parts, length
        limit = length or self._lengths.limit
        self.drawn, self._steps, self.beside = 0, [], set()
        self._draws.open.append(self.name)
        try:
            while limit is None or self.batch < limit:
                keep = self._draws.ask(self.name, begins=False)
                places = [] if place is None else self._placed(place, max(1, parts.workers))
                before = self._random.raw()
                self._data.look_before(parts)
                try:
                    batch = next(iterator)
                except StopIteration:
                    break
                self._data.look_behind(parts, self._random, before if self.batch else None)
                keep()
                self._require_used(uneven)
                self._before.append(before)
                self._places = places
                self._note_batch(batch, loader)
                yield batch
                if self._iteration is not mine:
                    raise ProtocolError(
                        f"two iterations over the loader {self.name!r} are drawn from in turn: give each a name of its "
                        "own, recorder.batches(loader, name=...)"
                    )
            self._is_over = True
            if self.trained and self.drawn and not (self._steps or is_resumed or uneven):
                raise ProtocolError(
                    f"an epoch of the loader {self.name!r} ended without a step, and others had steps, so a resumption "
                    "would count wrong epochs: for a validation say recorder.batches(loader, name='validation'), for "
                    "steps of more batches than an epoch has recorder.batches(loader, uneven=True)"
                )
        finally:
            self._draws.open.remove(self.name)
            self._counts, self._parts = parts.counts(), None

    def _is_past(self) -> bool:
        """Whether the resumed epoch has no batches of the loader any more: others go on, after it or beside it."""
        epoch, batch = self.present
        return self._draws.resumed is not None and self.trained and batch == 0 and epoch > self._draws.resumed

    def _note_batch(self, batch: object, loader: object) -> None:
        self.batch += 1
        self.drawn += 1
        self.last = digest(batch)
        self.first = self.last if self.batch == 1 else self.first
        self.seen = keccak256(SEEN_TAG + self.seen + self.last)
        if self.batch == 1:
            self._register(loader)  # some samplers make their generator when they are first drawn from

    def _register(self, loader: object) -> LoaderParts:
        """The parts of the loader, whose generators are among the recorded ones from here on."""
        parts = LoaderParts(loader)
        for path, generator in parts.generators.items():
            self._random.register(f"{self.name}.{path}", generator)
        return parts

    def _ended(self) -> tuple[int, int]:
        is_whole = self._is_counted or self.batch == self._began["size"]
        return self._lengths.after(self.batch, self._began["size"], is_whole, self._is_over)

    def _placed(self, place: Any, count: int) -> list[dict[str, Any]]:
        """The loader's states before so many last draws, one for each worker, if a step will be due then."""
        if self._draws.until_due > count:
            return []
        return [*self._places, {"state": copy.deepcopy(place.state_dict()), "seen": self.seen}][-count:]

    def _require_used(self, uneven: bool) -> None:
        if not uneven and len(self._steps) > 1 and self._steps[0] > self._steps[1]:
            raise ProtocolError(
                f"{self._steps[0]} batches were drawn before the first step of the epoch, {self._steps[1]} before the "
                "next: something holds batches back that the recorder takes for used. Put it inside, as in "
                "recorder.batches(prefetching(loader)); if nothing does, say recorder.batches(loader, uneven=True)"
            )

    def _begin(self, parts: LoaderParts, place: Any) -> Iterator[Any]:
        """A new epoch begins, and the one before is over, whether it was left or not."""
        if self._began:
            if self.batch or self._is_over:
                self._lengths = EpochLengths(*self._ended())
                self.epoch += 1
            parts.set_epoch(self.epoch, self._began["counts"])
        self.batch, self._is_over = 0, False
        self._counts, self._coming = parts.counts(), parts.size
        self._draws.ask(self.name, begins=True)()
        self._before.clear()
        self.first, self._places = b"", []
        self._began = {"random": self._random.state(), "counts": self._counts, "seen": self.seen, "size": parts.size}
        return parts.iterator(place)

    def _again(self, parts: LoaderParts, place: Any) -> Iterator[Any]:
        """The iterator behind the used batches of an epoch, which are drawn again and compared."""
        present, before, count = self._random.raw(), list(self._before), self.batch
        self._return(parts)
        seen, drew, found = self._began["seen"], False, self.last
        if place is not None:
            count = len(self._places)
            if count < min(parts.workers, self.batch):
                raise ProtocolError(
                    f"the loader {self.name!r} keeps its place in its workers, and the checkpoint isn't one of a step "
                    "that was due: nothing can be compared. Resume from a due one, or without workers"
                )
            if count:
                seen = self._places[0]["seen"]
                place.load_state_dict(self._places[0]["state"])
        iterator = parts.iterator(place)
        for number in range(1 + self.batch - count, self.batch + 1):
            if self.batch - number < len(before):
                self._random.load(before[number - self.batch - 1])
            held = digest(self._random.state())
            try:
                found = digest(next(iterator))
            except StopIteration:
                self._refuse(number, parts, place)
                break
            drew |= number > 1 and held != digest(self._random.state())
            seen = keccak256(SEEN_TAG + seen + found)
            if number == 1 and found != self.first:
                self._refuse(1, parts, place)
        if found != self.last or (count and seen != self.seen and not drew):
            self._refuse(self.batch, parts, place)
        self._random.load(present)
        return iterator

    def _compare_begin(self, parts: LoaderParts, place: Any, is_here: bool) -> None:
        """Draw the first batch of the epoch before twice: a loader that has gone on in itself gives another one."""
        present, told = self._random.raw(), parts.counts()
        size = parts.size
        if size != self._coming:
            self._refuse(1, parts)
        is_same = size == self._began["size"]  # else the loop has another loader in each epoch
        for _ in range(2 if place is None and self.first and is_same else 0):
            if self._first_again(parts) != self.first:
                self._refuse(1, parts)
        parts.restore(self.epoch, told, told.keys())
        # What the loop has told the loader for this epoch isn't in a checkpoint from before it began.
        first, now = self._initial, self._counts
        counts = now if is_here else {n: v for n, v in now.items() if n in told and told[n] == first.get(n)}
        parts.restore(self.epoch, counts, {name for name, value in now.items() if first.get(name) != value})
        self._random.load(present)

    def _return(self, parts: LoaderParts) -> None:
        """Generators and counters go back to where the epoch began."""
        epoch, began, now = self.epoch - (not self.batch), self._began["counts"], self._counts
        parts.restore(epoch, began, {n for n, first in self._initial.items() if {first} != {began.get(n), now.get(n)}})
        self._random.load(self._began["random"])

    def _first_again(self, parts: LoaderParts) -> bytes:
        """The digest of the epoch's first batch, drawn in the state of its begin."""
        self._return(parts)
        return digest(next(parts.iterator(None), None))

    def _refuse(self, number: int, parts: LoaderParts, place: Any = None) -> None:
        """Another batch was drawn again than the one that was used."""
        if self._draws.allows_other:
            self.others += 1
            return
        why = cause((self._began["size"], parts.size), place is not None, number, lambda: self._first_again(parts))
        raise ProtocolError(
            f"batch {number} of epoch {self.epoch - (not self.batch)} of the loader {self.name!r}, drawn again, isn't "
            f"the one that was used. {why}. To go on with other batches, say resume(allow={OTHER_DATA!r})"
        )
