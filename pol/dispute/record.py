"""A dispute as a document: the first position and every move, replayable off chain by anybody."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from pol.dispute import moves as moves_module
from pol.dispute.moves import Claim, Ended, Move
from pol.dispute.position import Position
from pol.dispute.rules import apply
from pol.errors import ProtocolError

MOVE_TYPES: dict[str, type[Any]] = {kind.__name__: kind for kind in typing.get_args(moves_module.Move)}


@dataclass(frozen=True)
class Record:
    """All that a dispute consisted of."""

    claim: Claim
    start: Position
    moves: tuple[Move, ...]

    def walk(self) -> Iterator[tuple[Position, Move, Position | Ended]]:
        """Every move with the position before it and what came after it.

        Raises:
            IllegalMove: a move breaks a rule: this is no record of a dispute.
        """
        position: Position | Ended = self.start
        for move in self.moves:
            if isinstance(position, Ended):
                raise ProtocolError("a move after the end of the dispute; the record is damaged")
            after = apply(position, move, self.claim)
            yield position, move, after
            position = after

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able document."""
        moves = [{"move": type(move).__name__, **_plain(move)} for move in self.moves]
        return {"claim": _plain(self.claim), "start": _plain(self.start), "moves": moves}

    @classmethod
    def from_dict(cls, document: Any) -> Record:
        """Read `to_dict` back.

        Raises:
            ProtocolError: it is something else.
        """
        try:
            claim, start = _read(Claim, document["claim"]), _read(Position, document["start"])
            moves = tuple(_read_move(move) for move in document["moves"])
        except (KeyError, TypeError, ValueError) as error:
            raise ProtocolError(f"not a record of a dispute: {error!r}") from error
        return cls(claim, start, moves)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return int(value)


def _read_move(document: dict[str, Any]) -> Move:
    arguments = {name: value for name, value in document.items() if name != "move"}
    move: Move = _read(MOVE_TYPES[document["move"]], arguments)
    return move


def _read(kind: Any, value: Any) -> Any:
    if kind is bytes:
        return bytes.fromhex(value)
    if is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        if set(value) != set(hints):
            raise ValueError(f"wrong fields for {kind}")
        return kind(**{name: _read(hints[name], v) for name, v in value.items()})  # type: ignore[operator]  # a dataclass type
    if isinstance(kind, types.GenericAlias):
        return tuple(_read(typing.get_args(kind)[0], v) for v in value)
    if type(value) is not int:
        raise ValueError(f"{value!r} is not a number")
    return kind(value)
