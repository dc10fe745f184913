"""Readable names of the parts of a step program; never hashed into it (docs/spec/program.md, last section)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pol.errors import ProtocolError


@dataclass(frozen=True)
class NodeName:
    """Where a node comes from: its name, the user's line "file.py:12: code" and the ATen operation."""

    name: str
    source: str
    operation: str


@dataclass(frozen=True)
class ProgramNames:
    """Names of slots, constants and nodes in program order, and which nodes are observed (the loss)."""

    slots: tuple[str, ...]
    constants: tuple[str, ...]
    nodes: tuple[NodeName, ...]
    observed: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        """A JSON-able document."""
        return {
            "slots": list(self.slots),
            "constants": list(self.constants),
            "nodes": [[node.name, node.source, node.operation] for node in self.nodes],
            "observed": dict(self.observed),
        }

    @classmethod
    def from_dict(cls, document: object) -> ProgramNames:
        """Names read from an untrusted document; ProtocolError unless it is exactly of the form of `to_dict`."""
        if not isinstance(document, dict) or set(document) != {"slots", "constants", "nodes", "observed"}:
            raise ProtocolError("names need exactly the fields slots, constants, nodes and observed")
        nodes = document["nodes"]
        if not isinstance(nodes, list):
            raise ProtocolError("names: nodes is not a list")
        observed = document["observed"]
        if not isinstance(observed, dict):
            raise ProtocolError("names: observed is not an object")
        for name, node in observed.items():
            if not isinstance(name, str) or type(node) is not int or not 0 <= node < len(nodes):
                raise ProtocolError(f"names: observed {name!r} does not name a node")
        return cls(
            _strings(document["slots"], "slots"),
            _strings(document["constants"], "constants"),
            tuple(_node(entry) for entry in nodes),
            dict(observed),
        )


def _strings(value: object, what: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ProtocolError(f"names: {what} is not a list of strings")
    return tuple(value)


def _node(entry: object) -> NodeName:
    fields = _strings(entry, "a node")
    if len(fields) != 3:
        raise ProtocolError("names: a node is [name, source, operation]")
    return NodeName(*fields)
