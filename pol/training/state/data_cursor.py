"""A training's place in its data: epoch, batch, the random state at the epoch's begin, and the batches seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils.data import DataLoader

from pol.commitments.array import array_root
from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError
from pol.training.state import tensors
from pol.training.state.random_state import RandomSources

Batch = TypeVar("Batch")
SEEN_TAG = b"pol/batches/1"


class DataCursor:
    """Follows a loader through its epochs.

    A loader draws its order when an epoch begins. An epoch that was left in the middle therefore begins again in the
    same random state, the used batches are drawn and dropped, and the random state of the checkpoint is restored.

    A loader that keeps its place itself, as torchdata's StatefulDataLoader, draws at the begin of an epoch too, but
    goes to its place without the used batches.

    A loader other than torch's own may draw one batch ahead (accelerate's does). The batch that it holds back depends
    on the random state before the last draw, so this state is kept too and restored for that draw.
    """

    def __init__(self, random: RandomSources) -> None:
        self.epoch = 0
        self.batch = 0
        self.seen = bytes(32)
        self._random = random
        self._begin: dict[str, Any] | None = None
        self._drawn: dict[str, Any] | None = None
        self._resumed: dict[str, Any] | None = None

    def state(self) -> dict[str, Any]:
        """The cursor in a checkpoint. ``seen`` chains the roots of all batches in the order of their use."""
        return {
            "epoch": self.epoch,
            "batch": self.batch,
            "seen": self.seen,
            "epoch_began": self._begin,
            "drawn": self._drawn,
        }

    def load(self, state: Mapping[str, Any], random: Mapping[str, Any]) -> None:
        """Continue from a checkpoint's cursor, whose random state was ``random``."""
        self.epoch, self.batch, self.seen = int(state["epoch"]), int(state["batch"]), bytes(state["seen"])
        self._begin, self._drawn = state["epoch_began"], state["drawn"]
        self._resumed = dict(random)

    def batches(self, loader: Iterable[Batch], *, keeps_place: bool = False) -> Iterator[Batch]:
        """One epoch of the loader, or the rest of the one that a checkpoint left.

        keeps_place: the loader's own state has been restored, and with it its place: no batch is drawn again.

        Raises:
            ProtocolError: the loader ends before the used batches do.
        """
        for owner in () if keeps_place else (loader, getattr(loader, "sampler", None)):
            generator = getattr(owner, "generator", None)
            if isinstance(generator, torch.Generator):
                self._random.register("loader", generator)
        resumed, self._resumed = self._resumed, None
        begin = self._begin if resumed is not None else None
        skipped = self.batch if begin is not None and not keeps_place else 0
        if begin is not None:
            self._random.load(begin)
        else:
            self._begin = self._random.state()
            self.batch = 0
        for owner in (loader, getattr(loader, "sampler", None)):
            set_epoch = getattr(owner, "set_epoch", None)
            if set_epoch is not None:
                set_epoch(self.epoch)
        iterator = iter(loader)
        for number in range(skipped):
            if number == skipped - 1 and self._drawn is not None:
                self._random.load(self._drawn)
            try:
                next(iterator)
            except StopIteration:
                raise ProtocolError(
                    f"the loader has only {number} batches, the checkpoint was taken after {skipped} of the epoch: "
                    "give the same data set and batch size"
                ) from None
        # A loader that was asked for its state before its first batch draws nothing when that comes.
        if resumed is not None and (begin is not None or (keeps_place and self.epoch == 0)):
            self._random.load(resumed)
        ahead = type(loader) is not DataLoader
        while True:
            before = self._random.state() if ahead else None
            try:
                batch = next(iterator)
            except StopIteration:
                break
            self._drawn = before
            self.batch += 1
            self.seen = keccak256(SEEN_TAG + self.seen + _digest(batch))
            yield batch
        self.end_epoch()

    def end_epoch(self) -> None:
        """The epoch is over; for loops that count batches and never draw the loader to its end."""
        self.epoch += 1
        self.batch = 0
        self._begin = self._drawn = None


def _digest(batch: object) -> bytes:
    """A digest of the tensors in a batch, in any nesting; other objects count by their type only."""
    if isinstance(batch, Tensor):
        return array_root(tensors.of_tensor(batch, "a batch"))
    if isinstance(batch, Mapping):
        parts = [str(key).encode() + b"\0" + _digest(batch[key]) for key in sorted(batch, key=str)]
        return keccak256(b"map" + b"".join(parts))
    if isinstance(batch, list | tuple):
        return keccak256(b"list" + b"".join(_digest(item) for item in batch))
    return keccak256(type(batch).__qualname__.encode() + b"\0" + str(batch).encode() if _is_plain(batch) else b"?")


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str)
