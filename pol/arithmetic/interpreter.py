"""Runs a scalar program on arrays of words, one primitive at a time."""

from collections.abc import Sequence

import numpy as np

from pol.arithmetic.primitives import Words, apply
from pol.arithmetic.scalar_program import ScalarProgram


def run(program: ScalarProgram, inputs: Sequence[Words]) -> Words:
    """Result of the program for every element of its inputs, which are uint32 arrays and broadcast."""
    last_use = {register: i for i, step in enumerate(program.instructions) for register in step.operands}
    registers = _registers(program, inputs)
    for index, step in enumerate(program.instructions):
        registers.append(apply(step.op, *(_held(registers, register) for register in step.operands)))
        for register in step.operands:
            if last_use[register] == index:
                registers[register] = None
    return np.array(np.broadcast_to(_held(registers, -1), _shape(inputs)))


def values(program: ScalarProgram, inputs: Sequence[Words]) -> list[Words]:
    """Results of all instructions in order, each of the shape to which the inputs broadcast."""
    registers = _registers(program, inputs)
    for step in program.instructions:
        registers.append(apply(step.op, *(_held(registers, register) for register in step.operands)))
    shape = _shape(inputs)
    first = len(registers) - len(program.instructions)
    return [np.array(np.broadcast_to(_held(registers, i), shape)) for i in range(first, len(registers))]


def _registers(program: ScalarProgram, inputs: Sequence[Words]) -> list[Words | None]:
    if len(inputs) != program.inputs:
        raise ValueError(f"the program takes {program.inputs} inputs, got {len(inputs)}")
    return [*(np.asarray(words) for words in inputs), *(np.array(word, np.uint32) for word in program.constants)]


def _held(registers: list[Words | None], register: int) -> Words:
    held = registers[register]
    if held is None:
        raise AssertionError(f"register {register} was released before its last use")
    return held


def _shape(inputs: Sequence[Words]) -> tuple[int, ...]:
    return np.broadcast_shapes(*(np.shape(words) for words in inputs))
