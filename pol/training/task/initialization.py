"""Initial tensors that anybody can draw again: a program, a seed and names (docs/spec/learning_proof.md, "Start").

The program is a step program with one constant, the two words of the seed. It leads from a state of zeros to the drawn
tensors in one step, number 2^32 - 1, which no training reaches. So a drawing can be disputed like any other step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from pol.arithmetic.primitives import Words
from pol.commitments import canonical_json
from pol.commitments.program_hash import program_hash
from pol.errors import ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.graph.captured_step import CapturedInitialization
from pol.graph.step_program import StepProgram
from pol.graph.tensor_type import DType, TensorType
from pol.graph.work_estimate import step_work
from pol.training.storage.store import Store

STEP = 2**32 - 1
"""The step at which initialization draws; no training gets there."""
SEED = TensorType(DType.I32, (2,))
PROGRAM_LIMIT = 1 << 24
"""Bytes of a program; a drawing has a few kilobytes, whatever the size of the model."""

WORK_LIMIT, SIZE_LIMIT = 1 << 13, 64
"""Work units of a program, and elements of its nodes, for each drawn element: every reader can afford the check."""

TypedWords: TypeAlias = tuple[TensorType, Words]


@dataclass(frozen=True)
class Initialization:
    """A drawing: the digest and hash of its program, its seed, and names in the order of the program's slots."""

    program: str
    program_hash: bytes
    seed: int
    slots: tuple[str, ...]

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 1 << 64:
            raise ProtocolError(f"the seed {self.seed} of an initialization is not in 0 .. 2^64-1")
        if not self.slots or len(set(self.slots)) != len(self.slots):
            raise ProtocolError("an initialization names at least one slot, and each of them once")

    def document(self) -> canonical_json.Document:
        """The JSON object."""
        return {
            "program": self.program,
            "program_hash": self.program_hash.hex(),
            "seed": str(self.seed),
            "slots": list(self.slots),
        }

    @classmethod
    def of_document(cls, document: Any) -> Initialization:
        """The drawing in a JSON object; ProtocolError if it holds none."""
        fields = canonical_json.Fields(document, "the initialisation", cls.__dataclass_fields__)
        slots = fields.items("slots")
        names = tuple(name for name in slots if isinstance(name, str))
        if len(names) != len(slots):
            raise ProtocolError("the slots of an initialization are names")
        return cls(fields.digest("program"), fields.hash("program_hash"), fields.decimal("seed", 64), names)

    def words(self) -> Words:
        """The constant that the program reads: the low and the high word of the seed."""
        return np.array([self.seed % 2**32, self.seed >> 32], np.uint32)


def publish_initialization(store: Store, captured: CapturedInitialization) -> Initialization:
    """Store the program of an initialization. Raises ProtocolError: the program is longer than one can be."""
    data = captured.program.to_bytes()
    if len(data) > PROGRAM_LIMIT:
        raise ProtocolError(f"the initialization has a program of {len(data)} bytes: {PROGRAM_LIMIT} at most")
    return Initialization(store.put(data), program_hash(captured.program), captured.seed, captured.slots)


def load_program(store: Store, initialization: Initialization) -> StepProgram:
    """The program, checked."""
    program = StepProgram.from_bytes(store.get(initialization.program, limit=PROGRAM_LIMIT))
    if program_hash(program) != initialization.program_hash:
        raise ProtocolError("the program hash of the initialization is wrong")
    if program.constants != (SEED,):
        raise ProtocolError("an initialization reads the two words of its seed and nothing else")
    if len(program.slots) != len(initialization.slots):
        raise ProtocolError(f"the initialization names {len(initialization.slots)} of {len(program.slots)} slots")
    return program


def zeros(program: StepProgram) -> list[Words]:
    """The state before an initialization."""
    return [np.zeros(slot.type.shape, np.uint32) for slot in program.slots]


def run(
    store: Store, initialization: Initialization, shapes: Mapping[str, tuple[int, ...]], threads: int = 1
) -> Mapping[str, TypedWords]:
    """The drawn tensors by name. ``shapes`` are the expected ones; a program with others isn't run."""
    program = load_program(store, initialization)
    types = [slot.type for slot in program.slots]
    for name, type_ in zip(initialization.slots, types, strict=True):
        if name not in shapes:
            raise ProtocolError(f"the initialization draws {name}, and there is no tensor of this name")
        if type_.shape != shapes[name]:
            raise ProtocolError(f"{name} has the shape {shapes[name]}, the initialization draws {type_.shape}")
    drawn = sum(type_.numel for type_ in types)
    if sum(node.type.numel for node in program.nodes) > SIZE_LIMIT * drawn or step_work(program) > WORK_LIMIT * drawn:
        raise ProtocolError("the initialization costs more than any drawing needs: it isn't run")
    tensors, _ = CpuExecutor(program, [initialization.words()], threads).advance(zeros(program), STEP)
    return dict(zip(initialization.slots, zip(types, tensors, strict=True), strict=True))
