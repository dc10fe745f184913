"""A dispute as a document: the claim, the program's header and every move; it can be replayed off chain."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from pol.dispute import disputed_claim as claim_module
from pol.dispute import moves as moves_module
from pol.dispute.disputed_claim import DisputedClaim, ReceiptClaim
from pol.dispute.moves import DisputeEnded, Move
from pol.dispute.position import HASH_BITS, Position
from pol.dispute.receipt_start import start_receipt
from pol.dispute.rules import apply, start
from pol.errors import ProtocolError

MOVE_TYPES: dict[str, type[Any]] = {kind.__name__: kind for kind in typing.get_args(moves_module.Move)}
CLAIM_TYPES: dict[str, type[Any]] = {kind.__name__: kind for kind in typing.get_args(claim_module.DisputedClaim)}


@dataclass(frozen=True)
class DisputeRecord:
    """A whole dispute. Giving up and running out of time are no moves."""

    claim: DisputedClaim
    header: bytes
    payload: bytes
    moves: tuple[Move, ...]
    bits: int = HASH_BITS

    @property
    def start(self) -> Position:
        """The position after the challenger's opening.

        Raises:
            IllegalMove: it was none: this is no record of a dispute.
        """
        if isinstance(self.claim, ReceiptClaim):
            return start_receipt(self.claim, self.header, self.payload, self.bits)
        return start(self.claim.first(self.header, self.bits), self.claim.claimed, self.payload)

    def walk(self) -> Iterator[tuple[Position, Move, Position | DisputeEnded]]:
        """Every move with the position before it and what came after it.

        Raises:
            IllegalMove: a move breaks a rule: this is no record of a dispute.
        """
        position: Position | DisputeEnded = self.start
        for move in self.moves:
            if isinstance(position, DisputeEnded):
                raise ProtocolError("a move after the end of the dispute; the record is damaged")
            after = apply(position, move)
            yield position, move, after
            position = after

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able document."""
        moves = [{"move": type(move).__name__, **_plain(move)} for move in self.moves]
        claim = {"claim": type(self.claim).__name__, **_plain(self.claim)}
        shown = {"header": self.header.hex(), "payload": self.payload.hex(), "bits": self.bits}
        return {"claim": claim, **shown, "moves": moves}

    @classmethod
    def from_dict(cls, document: Any) -> DisputeRecord:
        """Read `to_dict` back. Raises ProtocolError: it is something else."""
        try:
            claim: DisputedClaim = _read_kind(document["claim"], "claim", CLAIM_TYPES)
            moves = tuple(_read_kind(move, "move", MOVE_TYPES) for move in document["moves"])
            header, payload, bits = (
                _read(bytes, document["header"]),
                _read(bytes, document["payload"]),
                document["bits"],
            )
            return cls(claim, header, payload, moves, _read(int, bits))
        except (KeyError, TypeError, ValueError) as error:
            raise ProtocolError(f"not a record of a dispute: {error!r}") from error


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    if is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple):
        return [_plain(v) for v in value]
    return int(value)


def _read_kind(document: dict[str, Any], name: str, kinds: dict[str, type[Any]]) -> Any:
    return _read(kinds[document[name]], {key: value for key, value in document.items() if key != name})


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
