"""What the options of a reference trainer have to be, said before any work is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, ClassVar

from pol.errors import ProtocolError

if TYPE_CHECKING:
    from dataclasses import Field


class TrainingOptions:
    """A base of options that are dataclasses: counts are positive, and the rows make at least one batch."""

    __dataclass_fields__: ClassVar[dict[str, Field[object]]]

    def __post_init__(self) -> None:
        """Look at all options."""
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, int) and value < 1:
                raise ProtocolError(f"{field.name} is {value}: give 1 or more")
        rows, batch = (getattr(self, name, 1) for name in ("rows", "batch"))
        if rows < batch:
            raise ProtocolError(
                f"a batch of {batch} rows can't be drawn from {rows}: give more rows, or a smaller batch"
            )
        sizes: Sequence[int] = getattr(self, "sizes", ())
        if min(sizes, default=1) < 1:
            raise ProtocolError(f"rosters of {tuple(sizes)} members: give 1 or more")
