"""The facts that both sides of a dispute have agreed upon so far, and the frame: the hash over them.

Each class is one line of docs/spec/dispute.md#frames: facts build on the facts before them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from pol.commitments.keccak import keccak256
from pol.commitments.merkle import climb, depth, tree
from pol.graph.node import Node


@dataclass(frozen=True)
class Replayed:
    """A dispute about executing a program: which one, on which constants."""

    id: bytes
    program: bytes
    constants: bytes

    @cached_property
    def origin(self) -> bytes:
        """`H(id || program)`."""
        return keccak256(self.id + self.program)

    @cached_property
    def frame(self) -> bytes:
        """F0."""
        return keccak256(self.origin + self.constants)


@dataclass(frozen=True)
class AtStep:
    """One step: the state before it is agreed; ``end`` is the state after it that the picked side claims."""

    before: Replayed
    end: bytes
    pre: bytes
    step: int

    @cached_property
    def claimed(self) -> bytes:
        """`H(F0 || end)`."""
        return keccak256(self.before.frame + self.end)

    @cached_property
    def frame(self) -> bytes:
        """F1."""
        return keccak256(self.claimed + self.pre + self.step.to_bytes(8, "big"))


@dataclass(frozen=True)
class AtSubtree:
    """A subtree of the trace of this height: in ``row``, everything before the picked child is agreed."""

    before: AtStep | AtSubtree
    row: tuple[bytes, ...]
    """The hashes that lay open, padding included: a power of two of them."""
    height: int

    @cached_property
    def root(self) -> bytes:
        """The root over the row."""
        return tree(self.row)

    @property
    def child_height(self) -> int:
        """Height of the subtrees in the row."""
        return self.height - depth(len(self.row))

    @cached_property
    def frame(self) -> bytes:
        """The hash of the pick."""
        return keccak256(self.before.frame + self.root + self.height.to_bytes(1, "big"))


@dataclass(frozen=True)
class AtTrace:
    """The whole trace, of which a node was shown: the same as one pick from all of its nodes at once."""

    before: AtStep
    root: bytes
    """The root of the tree over the node roots."""
    height: int
    node: int
    """The one that was shown; all before it are agreed."""
    shown: bytes
    """Its root."""
    branch: tuple[bytes, ...]
    """From there to the root of the trace."""

    @property
    def child_height(self) -> int:
        """Nodes are picked from."""
        return 0

    @cached_property
    def frame(self) -> bytes:
        """The hash of the pick."""
        return keccak256(self.before.frame + self.root + self.height.to_bytes(1, "big"))

    def branch_of(self, number: int, own: Sequence[bytes]) -> list[bytes]:
        """The branch of an agreed node in the shown trace, of which a party need not know the rest.

        Siblings of subtrees that hold the shown node, or begin behind it, stand in its branch or above it; all others
        are agreed. ``own``: the node's branch in a party's own trace.
        """
        found = list(own)
        for height in range(self.height):
            if number >> height == self.node >> height:
                found[height] = self.branch[height]
            elif number >> height + 1 == self.node >> height + 1:
                found[height] = climb(self.shown, self.node % (1 << height), self.branch[:height])
        return found


Pick: TypeAlias = AtSubtree | AtTrace
"""A pick in the trace; the part of the trace before it is agreed."""


@dataclass(frozen=True)
class AtNode:
    """One node, whose descriptor was shown."""

    before: Pick
    descriptor: bytes
    number: int

    @cached_property
    def node(self) -> Node:
        """The descriptor, read."""
        return Node.decode(self.descriptor)

    @cached_property
    def instructions(self) -> int:
        """Length of the node's scalar program."""
        return len(self.node.body.instructions)

    @cached_property
    def outline(self) -> bytes:
        """The summary of the node that later moves show instead of its descriptor."""
        numbers = ((self.number, 4), (self.node.terms, 8), (self.node.init, 4), (self.instructions, 1))
        return keccak256(self.descriptor) + b"".join(value.to_bytes(size, "big") for value, size in numbers)

    @cached_property
    def frame(self) -> bytes:
        """The node frame."""
        return keccak256(self.before.frame + self.outline)


@dataclass(frozen=True)
class AtElement:
    """One element of the node's output."""

    before: AtNode
    element: int

    @cached_property
    def frame(self) -> bytes:
        """The element frame."""
        return keccak256(self.before.frame + self.element.to_bytes(8, "big"))


@dataclass(frozen=True)
class AtTerm:
    """One term of the element's fold, with the accumulator before it."""

    before: AtElement
    term: int
    agreed: int

    @cached_property
    def frame(self) -> bytes:
        """The frame of a body."""
        return keccak256(self.before.frame + self.term.to_bytes(8, "big") + self.agreed.to_bytes(4, "big"))


@dataclass(frozen=True)
class AtState:
    """The whole trace is agreed, the state after the step is not."""

    before: AtStep
    trace: bytes

    @cached_property
    def frame(self) -> bytes:
        """The frame of openState."""
        return keccak256(self.before.frame + self.trace)


@dataclass(frozen=True)
class Summed:
    """A dispute about the distance of one component between two states."""

    id: bytes
    program: bytes
    x: bytes
    y: bytes
    component: int

    @cached_property
    def origin(self) -> bytes:
        """`H(id || program)`."""
        return keccak256(self.id + self.program)

    @cached_property
    def frame(self) -> bytes:
        """The frame at the start."""
        return keccak256(self.origin + self.x + self.y + self.component.to_bytes(1, "big"))


@dataclass(frozen=True)
class AtSlot:
    """One slot of a disputed sum."""

    before: Summed
    slot: int
    descriptor: bytes

    @cached_property
    def frame(self) -> bytes:
        """The frame of describeSlot."""
        return keccak256(self.before.frame + self.slot.to_bytes(4, "big") + keccak256(self.descriptor))


Facts: TypeAlias = Replayed | AtStep | AtSubtree | AtTrace | AtNode | AtElement | AtTerm | AtState | Summed | AtSlot


def step_of(facts: Facts) -> AtStep:
    """The facts about the disputed step, from any later ones of a replay."""
    while not isinstance(facts, AtStep):
        assert not isinstance(facts, Replayed | Summed | AtSlot), "no step is disputed yet"
        facts = facts.before
    return facts


def node_of(facts: Facts) -> AtNode:
    """The facts about the disputed node, from those about it or a part of it."""
    while not isinstance(facts, AtNode):
        assert isinstance(facts, AtElement | AtTerm), "no node is disputed yet"
        facts = facts.before
    return facts


def picked_roots(facts: AtStep | Pick) -> tuple[Pick, ...]:
    """The picks from the trace, outermost first."""
    return () if isinstance(facts, AtStep) else (*picked_roots(facts.before), facts)
