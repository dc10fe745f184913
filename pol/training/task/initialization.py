"""First numbers that anybody can draw again: a program, a seed and names (docs/spec/learning_proof.md, "Start").

The program is a step program that reads one constant, the two words of the seed. It goes from a state of zeros to the
drawn tensors in one step, the step 2^32 - 1, which no training reaches: a claim like any other of a dispute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pol.arithmetic.primitives import Words
from pol.commitments import canonical_json
from pol.commitments.program_hash import program_hash
from pol.errors import ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.graph.step_program import StepProgram
from pol.graph.tensor_type import DType, TensorType
from pol.graph.work_estimate import step_work
from pol.training.storage.store import Store

STEP = 2**32 - 1
"""The step at which initialisation draws; no training gets there."""
SEED = TensorType(DType.I32, (2,))
PROGRAM_LIMIT = 1 << 24
"""Bytes of a program; one that draws has a few kilobytes, whatever the size of the model."""

WORK_LIMIT, SIZE_LIMIT = 1 << 13, 64
"""Work units of a program, and elements of its nodes, for each element that is drawn: who checks it can afford it."""

Typed = tuple[TensorType, Words]


class Captured(Protocol):
    """What `pol.graph.capture.capture_initialization` gives; named here without importing torch."""

    @property
    def program(self) -> StepProgram:
        """What draws."""

    @property
    def slots(self) -> tuple[str, ...]:
        """Names of its slots."""

    @property
    def seed(self) -> int:
        """Of 64 bits."""


@dataclass(frozen=True)
class Initialisation:
    """What is drawn: by which program, from which seed, under which names (in the order of the program's slots)."""

    program: str
    program_hash: bytes
    seed: int
    slots: tuple[str, ...]

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 1 << 64:
            raise ProtocolError(f"the seed {self.seed} of an initialisation is not in 0 .. 2^64-1")
        if not self.slots or len(set(self.slots)) != len(self.slots):
            raise ProtocolError("an initialisation names at least one slot, and each of them once")

    def document(self) -> canonical_json.Document:
        """The JSON object."""
        return {
            "program": self.program,
            "program_hash": self.program_hash.hex(),
            "seed": str(self.seed),
            "slots": list(self.slots),
        }

    @classmethod
    def of_document(cls, document: Any) -> Initialisation:
        """What a JSON object says; ProtocolError for another one."""
        fields = canonical_json.Fields(document, "the initialisation", cls.__dataclass_fields__)
        slots = fields.items("slots")
        names = tuple(name for name in slots if isinstance(name, str))
        if len(names) != len(slots):
            raise ProtocolError("the slots of an initialisation are names")
        return cls(fields.digest("program"), fields.hash("program_hash"), fields.decimal("seed", 64), names)

    def words(self) -> Words:
        """The constant that the program reads: the low and the high word of the seed."""
        return np.array([self.seed % 2**32, self.seed >> 32], np.uint32)


def publish(store: Store, captured: Captured) -> Initialisation:
    """Store the program of an initialisation.

    Raises:
        ProtocolError: the program is longer than one can be.
        OperationalError: the store failed.
    """
    data = captured.program.to_bytes()
    if len(data) > PROGRAM_LIMIT:
        raise ProtocolError(f"a program of {len(data)} bytes is no initialisation: {PROGRAM_LIMIT} at most")
    return Initialisation(store.put(data), program_hash(captured.program), captured.seed, captured.slots)


def load_program(store: Store, initialisation: Initialisation) -> StepProgram:
    """The program, checked.

    Raises:
        ProtocolError: it reads something else than a seed, or it isn't the one that the document commits to.
        OperationalError: the store failed.
    """
    program = StepProgram.from_bytes(store.get(initialisation.program, limit=PROGRAM_LIMIT))
    if program_hash(program) != initialisation.program_hash:
        raise ProtocolError("the program hash of the initialisation is wrong")
    if program.constants != (SEED,):
        raise ProtocolError("an initialisation reads the two words of its seed and nothing else")
    if len(program.slots) != len(initialisation.slots):
        raise ProtocolError(f"the initialisation names {len(initialisation.slots)} of {len(program.slots)} slots")
    return program


def zeros(program: StepProgram) -> list[Words]:
    """The state that an initialisation begins with."""
    return [np.zeros(slot.type.shape, np.uint32) for slot in program.slots]


def run(
    store: Store, initialisation: Initialisation, shapes: Mapping[str, tuple[int, ...]], threads: int = 1
) -> Mapping[str, Typed]:
    """What is drawn, by name. ``shapes`` are those that are expected, by name; nothing is run that has others.

    Raises:
        ProtocolError: the program isn't that of an initialisation, draws something else, or costs too much.
        OperationalError: the store failed.
    """
    program = load_program(store, initialisation)
    types = [slot.type for slot in program.slots]
    for name, type_ in zip(initialisation.slots, types, strict=True):
        if name not in shapes:
            raise ProtocolError(f"the initialisation draws {name}, and there is no tensor of this name")
        if type_.shape != shapes[name]:
            raise ProtocolError(f"{name} has the shape {shapes[name]}, what the initialisation draws has {type_.shape}")
    drawn = sum(type_.numel for type_ in types)
    if sum(node.type.numel for node in program.nodes) > SIZE_LIMIT * drawn or step_work(program) > WORK_LIMIT * drawn:
        raise ProtocolError("the initialisation costs more than one that draws can: it isn't run")
    tensors, _ = CpuExecutor(program, [initialisation.words()], threads).advance(zeros(program), STEP)
    return dict(zip(initialisation.slots, zip(types, tensors, strict=True), strict=True))
