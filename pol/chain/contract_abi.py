"""The interface of a contract: calls as bytes, and results and events as values.

By eth_abi alone. web3 searches the whole interface for each call, which takes longer than the node's answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any

from eth_abi.abi import decode, encode
from eth_abi.exceptions import DecodingError
from eth_typing import ChecksumAddress
from eth_utils.abi import collapse_if_tuple
from eth_utils.address import to_checksum_address

from pol.commitments.keccak import keccak256
from pol.errors import OperationalError


@cache
def artifact(contract: str) -> dict[str, Any]:
    """ABI and creation bytecode of a contract. Raises OperationalError: the artifact is missing."""
    path = files("pol.chain") / "artifacts" / f"{contract}.json"
    try:
        document: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError as error:
        raise OperationalError(f"no artifact of contract {contract}: build it with .ci/artifacts.py") from error
    return document


@cache
def contracts() -> tuple[str, ...]:
    """Names of all contracts that have an artifact."""
    folder = files("pol.chain") / "artifacts"
    return tuple(sorted(f.name.removesuffix(".json") for f in folder.iterdir() if f.name.endswith(".json")))


Entry = dict[str, Any]
"""A member of an interface, or an argument of one, as the compiler writes it."""
DOUBT = "is that contract at this address of this chain? If so, the node is wrong: name another one by --rpc"
checksummed = lru_cache(1 << 14)(to_checksum_address)


@dataclass(frozen=True)
class ContractCall:
    """A call of a contract, not yet made or sent."""

    name: str
    to: ChecksumAddress
    data: bytes
    inputs: tuple[Entry, ...] = ()
    """The arguments, as the interface has them."""


class ContractAbi:
    """The interface of one contract, in which no two functions or events have one name."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._functions = {each["name"]: _Function(each) for each in entries if each["type"] == "function"}
        self._selectors = {each.selector: each for each in self._functions.values()}
        events = [_Event(each) for each in entries if each["type"] == "event"]
        self.events = tuple(each.name for each in events)
        """Their names."""
        self._topics = {each.topic: each for each in events if not each.is_anonymous}
        self._bare = next((each for each in events if each.is_anonymous), None)

    @classmethod
    @cache
    def of(cls, contract: str) -> ContractAbi:
        """The interface of a contract of the package."""
        return cls(artifact(contract)["abi"])

    def call(self, to: ChecksumAddress, name: str, *arguments: Any) -> ContractCall:
        """A call of a function."""
        function = self._functions[name]
        data = function.selector + function.inputs.encode(arguments)
        return ContractCall(name, to, data, function.inputs.entries)

    def result(self, name: str, answer: bytes) -> Any:
        """What a function returns: its one result, or all of them.

        Raises:
            OperationalError: it can't return this; where there is no such contract, nothing is returned.
        """
        try:
            found = self._functions[name].outputs.decode(answer)
        except DecodingError as error:
            raise OperationalError(f"{name} can't return 0x{answer.hex()[:64]}: {DOUBT}") from error
        return found[0] if len(found) == 1 else found

    def arguments(self, data: bytes) -> tuple[str, dict[str, Any]]:
        """The function that calldata calls, and its arguments by name."""
        function = self._selectors[data[:4]]
        return function.name, function.inputs.named(data[4:])

    def event(self, topics: Sequence[bytes], data: bytes) -> tuple[str, dict[str, Any]]:
        """The name of an event and its arguments. Raises OperationalError: the contract has no such event."""
        found = self._topics.get(topics[0]) if topics else None
        if found is not None:
            try:
                return found.name, found.arguments(topics[1:], data)
            except DecodingError as error:
                raise OperationalError(f"event {found.name} can't be 0x{data.hex()[:64]}: {DOUBT}") from error
        if self._bare is None or len(topics) != len(self._bare.indexed.entries):
            raise OperationalError(
                f"no event of the contract has the topics {[topic.hex() for topic in topics]}: {DOUBT}"
            )
        # Its topics are numbers, its data bytes without an encoding.
        names = [each["name"] for each in self._bare.indexed.entries]
        numbers = (int.from_bytes(topic, "big") for topic in topics)
        return self._bare.name, {**dict(zip(names, numbers, strict=True)), self._bare.plain.entries[-1]["name"]: data}


def init_code(contract: str, *arguments: Any) -> bytes:
    """Creation code of a contract of the package, with its constructor's arguments."""
    built = artifact(contract)
    entries = [each for entry in built["abi"] if entry["type"] == "constructor" for each in entry["inputs"]]
    return bytes.fromhex(built["bytecode"].removeprefix("0x")) + _Arguments(entries).encode(arguments)


class _Arguments:
    """Arguments in a row: how they are encoded, and the form that values of them have."""

    def __init__(self, entries: Sequence[Entry], named: bool = False) -> None:
        self.entries = tuple(entries)
        self.types = [collapse_if_tuple(each) for each in entries]
        self._forms = [_form(each, named) for each in entries]

    def encode(self, values: Sequence[Any]) -> bytes:
        return encode(self.types, values)

    def decode(self, data: bytes) -> tuple[Any, ...]:
        return tuple(form(value) for form, value in zip(self._forms, decode(self.types, data), strict=True))

    def named(self, data: bytes) -> dict[str, Any]:
        return self.by_name(decode(self.types, data))

    def by_name(self, values: Sequence[Any]) -> dict[str, Any]:
        """Decoded values in their form, by the names of the arguments."""
        rows = zip(self.entries, self._forms, values, strict=True)
        return {each["name"]: form(value) for each, form, value in rows}


class _Function:
    def __init__(self, entry: Entry) -> None:
        self.name: str = entry["name"]
        self.inputs, self.outputs = _Arguments(entry["inputs"]), _Arguments(entry["outputs"])
        self.selector = keccak256(f"{self.name}({','.join(self.inputs.types)})".encode())[:4]


class _Event:
    def __init__(self, entry: Entry) -> None:
        self.name: str = entry["name"]
        self.is_anonymous: bool = entry.get("anonymous", False)
        self.indexed, self.plain = (
            _Arguments([each for each in entry["inputs"] if each["indexed"] is indexed], named=True)
            for indexed in (True, False)
        )
        types = ",".join(collapse_if_tuple(each) for each in entry["inputs"])
        self.topic = keccak256(f"{self.name}({types})".encode())

    def arguments(self, topics: Sequence[bytes], data: bytes) -> dict[str, Any]:
        return self.indexed.named(b"".join(topics)) | self.plain.named(data)


def _form(entry: Entry, named: bool) -> Callable[[Any], Any]:
    """What makes a decoded value of a type what it is in Python: an address has its checksum, an array is a list.

    A struct is a tuple or, with ``named``, a dictionary.
    """
    kind: str = entry["type"]
    if kind.endswith("]"):
        form = _form(entry | {"type": kind[: kind.rindex("[")]}, named)
        return lambda values: [form(value) for value in values]
    if kind == "tuple":
        if named:
            return _Arguments(entry["components"], named).by_name
        forms = [_form(each, named) for each in entry["components"]]
        return lambda values: tuple(form(value) for form, value in zip(forms, values, strict=True))
    return checksummed if kind == "address" else lambda value: value
