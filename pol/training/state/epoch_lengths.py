"""Loops that leave an epoch before the loader ends: after how many batches, as far as a recorder can know."""

from __future__ import annotations

import gc
import warnings
from itertools import islice

from pol.errors import ProtocolError

UNKNOWN, WHOLE, VARIES = 0, -1, -2
"""In place of a number of batches: no epoch is over, each had all of the loader, they weren't equal."""
SURE, ENDED = 0, -1
"""In place of the batch at which the first epoch was resumed: it wasn't, or a later one was ended after the length."""
COUNT = "count with recorder.enumerate(loader), or say recorder.batches(loader, length=...)"


class EpochLengths:
    """After how many batches the epochs so far were ``left``.

    ``doubt`` isn't part of a state, which has to be that of an uninterrupted run. ``cut`` is the batch at which the
    present epoch was resumed, if the loop may count batches itself.
    """

    def __init__(self, left: int = UNKNOWN, doubt: int = SURE):
        self.left, self.doubt = left, doubt
        self.cut: int | None = None

    @property
    def limit(self) -> int | None:
        """Where a resumed epoch ends: as all before, because the loop counts anew."""
        return self.left if self.cut and self.left > 0 else None

    def after(self, batch: int, size: int | None, is_whole: bool, is_over: bool) -> tuple[int, int]:
        """``left`` and ``doubt`` when an epoch of a loader of ``size`` is left after ``batch``.

        is_whole: it was meant to end there. is_over: the loader was drawn to its end, or to the limit.
        """
        is_whole |= is_over and batch != self.left
        now = WHOLE if is_whole else batch
        if self.left == UNKNOWN:
            return now, self.cut or SURE
        if self.left == now:
            return now, ENDED if self.cut and not is_whole else self.doubt
        anew = WHOLE if size is None or self.doubt + now >= size else self.doubt + now
        if self.doubt == ENDED or (self.doubt > 0 and now > 0 and self.left == anew):
            said = ["all" if length == WHOLE else length for length in (self.left, now)]
            raise ProtocolError(
                f"an epoch was left after {said[0]} batches and another one after {said[1]}, and one of them was "
                "resumed in its middle. A loop that counts batches itself has counted anew, and one that leaves for "
                f"another reason can't be told from it: {COUNT}"
            )
        return VARIES, SURE


def look_for_counts(batches: object, lengths: EpochLengths) -> None:
    """In the middle of an epoch: say if what goes over the batches counts from 0."""
    counting = {type(holder) for holder in gc.get_referrers(batches)}
    if islice in counting and lengths.left == UNKNOWN:
        raise ProtocolError(
            f"islice takes its number of batches anew, and {lengths.cut} of the epoch were used before the resumption: "
            "say recorder.batches(loader, length=...)"
        )
    if enumerate in counting:
        warnings.warn(
            f"enumerate(recorder.batches(loader)) counts from 0, and {lengths.cut} batches of the epoch were used "
            "before the resumption: recorder.enumerate(loader) counts on",
            stacklevel=3,
        )
