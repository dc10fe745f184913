"""Scalar programs: straight-line programs over 32-bit words, their bytes, and a builder."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from pol.arithmetic.primitives import ARITY, NAN, Op
from pol.errors import ProtocolError

MAX_REGISTERS = 256

_COUNTS = struct.Struct(">3B")
_CONSTANT = struct.Struct(">I")
_INSTRUCTION = struct.Struct(">4B")


@dataclass(frozen=True)
class Instruction:
    """One primitive on registers; operands that the primitive does not use are zero."""

    op: Op
    a: int
    b: int = 0
    c: int = 0

    @property
    def operands(self) -> tuple[int, ...]:
        """The registers that the primitive reads, in order."""
        return (self.a, self.b, self.c)[: ARITY[self.op]]


@dataclass(frozen=True)
class ScalarProgram:
    """Inputs, constants and instructions, one register each in this order; the result is the last register.

    Raises ProtocolError if it breaks a rule of docs/spec/arithmetic.md, "Scalar program".
    """

    inputs: int
    constants: tuple[int, ...]
    instructions: tuple[Instruction, ...]

    def __post_init__(self) -> None:
        first = self.inputs + len(self.constants)
        if self.inputs < 0 or not self.instructions or first + len(self.instructions) > MAX_REGISTERS:
            raise ProtocolError(
                f"a scalar program needs an instruction and at most {MAX_REGISTERS} registers, got {self.inputs} "
                f"inputs, {len(self.constants)} constants and {len(self.instructions)} instructions"
            )
        for constant in self.constants:
            if not 0 <= constant < 1 << 32:
                raise ProtocolError(f"constant {constant} of a scalar program is not a 32-bit word")
        for index, instruction in enumerate(self.instructions):
            if not isinstance(instruction.op, Op):
                raise ProtocolError(f"instruction {index} has the unknown primitive {instruction.op!r}")
            if any(not 0 <= register < first + index for register in instruction.operands):
                raise ProtocolError(f"instruction {index} reads a register that is not yet defined: {instruction}")
            if any((instruction.a, instruction.b, instruction.c)[len(instruction.operands) :]):
                raise ProtocolError(f"instruction {index} has a nonzero unused operand: {instruction}")

    def encode(self) -> bytes:
        """The bytes of the program, `3 + 4 * constants + 4 * instructions` of them."""
        return b"".join(
            [
                _COUNTS.pack(self.inputs, len(self.constants), len(self.instructions)),
                *(_CONSTANT.pack(constant) for constant in self.constants),
                *(_INSTRUCTION.pack(step.op, step.a, step.b, step.c) for step in self.instructions),
            ]
        )

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """The program that `data` encodes; raises ProtocolError for bytes that `encode` never yields."""
        if len(data) < _COUNTS.size:
            raise ProtocolError(f"a scalar program has a header of {_COUNTS.size} bytes, got {len(data)} bytes in all")
        inputs, constants, instructions = _COUNTS.unpack_from(data)
        split = _COUNTS.size + _CONSTANT.size * constants
        if len(data) != split + _INSTRUCTION.size * instructions:
            raise ProtocolError(f"a scalar program of {len(data)} bytes contradicts its header {data[:3].hex()}")
        return cls(
            inputs,
            tuple(word for (word,) in _CONSTANT.iter_unpack(data[_COUNTS.size : split])),
            tuple(_decode_instruction(*fields) for fields in _INSTRUCTION.iter_unpack(data[split:])),
        )


def _decode_instruction(code: int, a: int, b: int, c: int) -> Instruction:
    try:
        return Instruction(Op(code), a, b, c)
    except ValueError:
        raise ProtocolError(f"primitive code {code:#04x} does not exist") from None


class Builder:
    """Writes a scalar program; registers are handles that only the builder that gave them out understands.

    Equal constants and equal instructions share a register, and what the result does not need is left out.
    """

    def __init__(self, inputs: int) -> None:
        self._inputs = inputs
        # A register is an input (its number), a constant (a word) or an instruction (on handles).
        self._registers: list[int | Instruction] = list(range(inputs))
        self._known: dict[int | Instruction, int] = {}

    def input(self, index: int) -> int:
        """Register of the input `index`."""
        if not 0 <= index < self._inputs:
            raise ValueError(f"input {index} of a program with {self._inputs} inputs")
        return index

    def const(self, word: int) -> int:
        """Register of a constant word."""
        return self._register(word)

    def f32(self, value: float) -> int:
        """Register of the binary32 number nearest to `value` (infinite if out of range, or the canonical NaN)."""
        with np.errstate(over="ignore"):
            number = np.float32(value)
        return self.const(int(NAN if np.isnan(number) else number.view(np.uint32)))

    def emit(self, op: Op, *registers: int) -> int:
        """Register of the result of one primitive."""
        if len(registers) != ARITY[op]:
            raise ValueError(f"{op.name} takes {ARITY[op]} operands, got {len(registers)}")
        if any(not 0 <= register < len(self._registers) for register in registers):
            raise ValueError(f"{op.name} reads a register of another builder: {registers}")
        return self._register(Instruction(op, *registers))

    def polynomial(self, x: int, words: Sequence[int]) -> int:
        """Register of a polynomial in x by Horner's scheme, one FFMA for each coefficient word after the highest."""
        value = self.const(words[0])
        for word in words[1:]:
            value = self.emit(Op.FFMA, value, x, self.const(word))
        return value

    def call(self, program: ScalarProgram, *registers: int) -> int:
        """Register of the result of a program on the given inputs, written out in place."""
        if len(registers) != program.inputs:
            raise ValueError(f"the program takes {program.inputs} inputs, got {len(registers)}")
        handles = [*registers, *(self.const(word) for word in program.constants)]
        for instruction in program.instructions:
            handles.append(self.emit(instruction.op, *(handles[register] for register in instruction.operands)))
        return handles[-1]

    def build(self, result: int) -> ScalarProgram:
        """The program that yields register `result`; raises ProtocolError if it needs more than 256 registers."""
        if result < self._inputs or not isinstance(self._registers[result], Instruction):
            result = self.emit(Op.MOV, result)
        needed = self._ancestors(result)
        # Constants come first; both are in the order of their handles.
        order = [*range(self._inputs), *sorted(needed, key=lambda each: isinstance(self._registers[each], Instruction))]
        number = {handle: register for register, handle in enumerate(order)}
        words, instructions = [], []
        for handle in order[self._inputs :]:
            content = self._registers[handle]
            if isinstance(content, Instruction):
                instructions.append(Instruction(content.op, *(number[operand] for operand in content.operands)))
            else:
                words.append(content)
        return ScalarProgram(self._inputs, tuple(words), tuple(instructions))

    def _register(self, content: int | Instruction) -> int:
        if content not in self._known:
            self._known[content] = len(self._registers)
            self._registers.append(content)
        return self._known[content]

    def _ancestors(self, result: int) -> list[int]:
        """Handles of the constants and instructions that `result` needs, itself included, ascending."""
        needed = {result}
        for handle in range(result, self._inputs - 1, -1):
            content = self._registers[handle]
            if handle in needed and isinstance(content, Instruction):
                needed.update(content.operands)
        return sorted(handle for handle in needed if handle >= self._inputs)
