"""Scalar programs as statements of C++ on words (words.h)."""

from __future__ import annotations

from collections.abc import Sequence

from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Instruction, ScalarProgram

_LAZY = frozenset([Op.FADD, Op.FSUB, Op.FMUL, Op.FDIV, Op.FFMA, Op.FSQRT, Op.FMIN, Op.FMAX, Op.FNEG, Op.FABS])
_SEES_BITS = frozenset([Op.I2F, Op.U2F, Op.L2F, *(op for op in Op if Op.ADD <= op <= Op.LTS)])
_KEYWORDS = {Op.AND: "and_", Op.OR: "or_", Op.XOR: "xor_"}


def statements(program: ScalarProgram, inputs: Sequence[str], result: str = "r") -> tuple[list[str], str]:
    """Statements that compute every register, and the expression of the last one.

    ``inputs`` are the expressions of the input registers; registers of instructions are named ``result`` and a number.
    """
    names = [*inputs, *(f"{word:#x}u" for word in program.constants)]
    lines = []
    for instruction, lazy in zip(program.instructions, lazy_instructions(program), strict=True):
        name = f"{result}{len(names)}"
        lines.append(f"const Word {name} = {_call(instruction, lazy, names)};")
        names.append(name)
    return lines, names[-1]


def lazy_instructions(program: ScalarProgram) -> list[bool]:
    """Which instructions may leave a NaN as the processor made it.

    Float primitives do not tell NaNs apart. So the bits of a NaN matter only where they escape: in the result and in
    integer primitives. SELECT and MOV pass them on.
    """
    first = program.inputs + len(program.constants)
    escapes = [False] * (first + len(program.instructions))
    escapes[-1] = True
    lazy = []
    for number in reversed(range(len(program.instructions))):
        instruction = program.instructions[number]
        escaping = escapes[first + number]
        if instruction.op in _SEES_BITS:
            passed = instruction.operands
        elif instruction.op is Op.SELECT:
            passed = instruction.operands[1:] if escaping else ()
        elif instruction.op is Op.MOV:
            passed = instruction.operands if escaping else ()
        else:
            passed = ()
        for register in passed:
            escapes[register] = True
        lazy.append(instruction.op in _LAZY and not escaping)
    return lazy[::-1]


def _call(instruction: Instruction, lazy: bool, names: Sequence[str]) -> str:
    function = _KEYWORDS.get(instruction.op, instruction.op.name.lower())
    if instruction.op in _LAZY:
        function += f"<{str(lazy).lower()}>"
    return f"{function}({', '.join(names[register] for register in instruction.operands)})"
