"""Python values as canonical JSON, without loss and without pickle (docs/spec/complete_state.md, "Plain data").

State dictionaries of optimizers, schedulers and trainers are nested Python values with tensors inside. The tensors go
into a table under their paths. The rest becomes JSON in which integers, floats and booleans stay distinct and every bit
of a float survives.
"""

from __future__ import annotations

import collections
import math
from collections.abc import Callable, Mapping, MutableMapping, Set
from typing import Any, TypeAlias

from pol.commitments import canonical_json
from pol.commitments.complete_state import StateEntry
from pol.errors import ProtocolError, UnsupportedError

WEIGHTS = ("parameters/", "buffers/")


def entry_of(entries: Mapping[str, StateEntry], name: str) -> StateEntry | None:
    """The entry of the parameter or buffer with this name in its model."""
    found = (entries.get(kind + segment(name)) for kind in WEIGHTS)
    return next((entry for entry in found if entry is not None), None)


def name_in_model(entry: str) -> str:
    """The name that a parameter or buffer has in its model."""
    return entry.partition("/")[2].replace("%2F", "/").replace("%25", "%")


Json: TypeAlias = Any
MAX_DEPTH = 18
_EXACT = 1 << 53

Special: TypeAlias = tuple[str, Json]
"""The form of a framework's own value: a tag and its content."""


class Encoder:
    """Turns values into JSON; tensors and other framework values go through ``special``.

    ``special(value, path)`` gives the tag and the content of such a value, or None for an unknown one. Their tags begin
    with a capital letter, which sets them apart from those of this module.
    """

    def __init__(self, special: Callable[[object, str], Special | None]):
        self._special = special

    def encode(self, value: object, path: str) -> Json:
        """The JSON form of the value at ``path``.

        Raises:
            UnsupportedError: a value without a form; the message names its path.
        """
        return self._encode(value, path, 0)

    def _encode(self, value: object, path: str, depth: int) -> Json:
        if depth > MAX_DEPTH:
            raise UnsupportedError(f"{path} is nested deeper than {MAX_DEPTH}, or contains itself: flatten it")
        if value is None or type(value) in (bool, str):
            return value
        if type(value) is int:
            return value if -_EXACT < value < _EXACT else {"int": str(value)}
        if type(value) is float:
            return {"float": "nan" if math.isnan(value) else value.hex()}
        if type(value) is bytes:
            return {"bytes": value.hex()}
        if type(value) is list:
            return self._items(value, path, depth)
        if type(value) is tuple:
            return {"tuple": self._items(value, path, depth)}
        if type(value) in (set, frozenset):
            items = self._items(list(value), path, depth)  # type: ignore[call-overload]  # checked in the line above
            return {type(value).__name__: sorted(items, key=canonical_key)}
        if type(value) is collections.deque:
            return {"deque": [value.maxlen, self._items(list(value), path, depth)]}
        if type(value) in (dict, collections.OrderedDict, collections.defaultdict):
            return {"dict": self._pairs(value, path, depth)}  # type: ignore[arg-type]  # checked in the line above
        if type(value) is collections.Counter:
            return {"counter": self._pairs(value, path, depth)}
        found = self._special(value, path)
        if found is None:
            kind = f"{type(value).__module__}.{type(value).__qualname__}"
            raise UnsupportedError(
                f"{path} is a {kind}, which has no form in a complete state: give a number, text, list, dictionary or "
                "tensor in its place, or leave it out"
            )
        tag, content = found
        return {tag: content}

    def _items(self, values: list[object] | tuple[object, ...], path: str, depth: int) -> list[Json]:
        return [self._encode(item, f"{path}/{i}", depth + 1) for i, item in enumerate(values)]

    def _pairs(self, values: Mapping[Any, object], path: str, depth: int) -> list[Json]:
        """Keys in a fixed order: equal dictionaries have one form, whatever the order of insertion."""
        names = collections.Counter(segment(key) for key in values)
        for name, count in names.items():
            if count > 1:
                raise UnsupportedError(f"{path} has {count} keys that are written {name!r}: rename one of them")
        pairs = [
            [
                self._encode(key, f"{path}/key {segment(key)}", depth + 1),
                self._encode(item, f"{path}/{segment(key)}", depth + 1),
            ]
            for key, item in values.items()
        ]
        return sorted(pairs, key=lambda pair: canonical_key(pair[0]))


class Decoder:
    """Turns JSON of `Encoder` back into values.

    ``special(tag, content, path)`` gives the value of a framework's own tag, or raises ProtocolError.
    """

    def __init__(self, special: Callable[[str, Json, str], object]):
        self._special = special

    def decode(self, form: Json, path: str) -> Any:
        """The value of a JSON form. Raises ProtocolError: not a form from `Encoder`."""
        return self._decode(form, path, 0)

    def _decode(self, form: Json, path: str, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise ProtocolError(f"{path} is nested deeper than {MAX_DEPTH}")
        if form is None or isinstance(form, bool | str):
            return form
        if isinstance(form, int) and -_EXACT < form < _EXACT:
            return form
        if isinstance(form, list):
            return [self._decode(item, f"{path}/{i}", depth + 1) for i, item in enumerate(form)]
        if not isinstance(form, dict) or len(form) != 1:
            raise _malformed(path)
        ((tag, content),) = form.items()
        if tag[:1].isupper():
            return self._special(tag, content, path)
        try:
            return self._tagged(tag, content, path, depth)
        except (ValueError, TypeError, OverflowError) as error:
            raise _malformed(path) from error

    def _tagged(self, tag: str, content: Json, path: str, depth: int) -> Any:
        if tag == "int" and isinstance(content, str) and len(content) <= 4096:
            number = int(content)
            if str(number) == content and not -_EXACT < number < _EXACT:
                return number
        elif tag == "float" and isinstance(content, str):
            value = float("nan") if content == "nan" else float.fromhex(content)
            if content == "nan" or value.hex() == content:
                return value
        elif tag == "bytes" and isinstance(content, str):
            data = bytes.fromhex(content)
            if data.hex() == content:
                return data
        elif tag == "tuple" and isinstance(content, list):
            return tuple(self._decode(content, path, depth))
        elif tag in ("set", "frozenset") and isinstance(content, list):
            found = set(self._decode(content, path, depth))
            if len(found) == len(content):
                return found if tag == "set" else frozenset(found)
        elif tag == "deque":
            most, items = content
            kept = collections.deque(self._decode(items, path, depth), most)
            if isinstance(items, list) and type(most) in (int, type(None)) and len(kept) == len(items):
                return kept
        elif tag in ("dict", "counter") and isinstance(content, list):
            return self._dictionary(tag, content, path, depth)
        raise _malformed(path)

    def _dictionary(self, tag: str, content: list[Json], path: str, depth: int) -> Any:
        values: MutableMapping[Any, Any] = {} if tag == "dict" else collections.Counter()
        for pair in content:
            if not isinstance(pair, list) or len(pair) != 2:
                raise _malformed(path)
            key = self._decode(pair[0], f"{path}/key", depth + 1)
            values[key] = self._decode(pair[1], f"{path}/{segment(key)}", depth + 1)
        if len(values) != len(content):
            raise ProtocolError(f"{path} has a key twice")
        return values


def placed(name: object, path: str, arrays: Set[str]) -> str:
    """The array that a document names at ``path``: the one with that path, so that no two change places."""
    if name != (path if "/" in path else f"{path}/value"):
        raise ProtocolError(f"{path} names the tensor {name!r}, which belongs elsewhere")
    if name not in arrays:
        raise ProtocolError(f"a document names the tensor {name!r}, which the state doesn't hold")
    return str(name)


def segment(key: object) -> str:
    """A dictionary's key as one segment of a path: '/' and '%' are escaped."""
    return str(key).replace("%", "%25").replace("/", "%2F")


def canonical_key(form: Json) -> bytes:
    """The sort key of a form: its canonical bytes."""
    if isinstance(form, str) and form.isascii() and form.isprintable() and not {'"', "\\"} & {*form}:
        return f'{{"":"{form}"}}'.encode()  # as most keys are; faster
    return canonical_json.encode({"": form})


def _malformed(path: str) -> ProtocolError:
    return ProtocolError(f"{path} isn't a value in the form of a complete state")
