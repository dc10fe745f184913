"""Kernels of maps and of folds: a thread for each element, terms in order."""

from __future__ import annotations

from collections.abc import Sequence

from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Instruction, ScalarProgram
from pol.execution.device.device import NAME, Kernel
from pol.execution.device.loops import Loops
from pol.execution.device.read_source import coordinate_statements, form_expression, index_type, read_statements
from pol.graph.node import InputKind, Node

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


THREADS = 256


def element_kernel(node: Node, loops: Loops) -> Kernel:
    """The kernel of any node. Elements that neighbor each other are neighboring threads."""
    out = [f"o{axis}" for axis in range(len(loops.out))]
    lines = coordinate_statements("i", out, loops.out)
    lines += _value(node, loops, out)
    lines.append("out[i] = value;")
    return Kernel(
        kernel_source(len(node.operands), index_type(loops), THREADS, node.type.numel, lines),
        THREADS,
        -(-node.type.numel // THREADS),
    )


def kernel_source(operands: int, index: str, threads: int, count: int, lines: list[str], extra: str = "") -> str:
    """A kernel whose threads each run ``lines`` for one number ``i`` below ``count``."""
    sources = "".join(f", const Word* POL_RESTRICT s{operand}" for operand in range(operands))
    body = "\n            ".join(lines)
    return f"""
POL_KERNEL({NAME}, {threads}, Word* POL_RESTRICT out{sources}{extra}, Long step) {{
    typedef {index} Index;
    (void)step;
    POL_ALONE(t) {{
        const Long number = block * {threads} + t;
        if (number < {count}) {{
            const Word i = Word(number);
            {body}
        }}
    }}
}}
POL_END
"""


def term_statements(node: Node, loops: Loops, out: list[str], fold: list[str], varying: bool) -> list[str]:
    """Reads of the operands and coordinates that vary with the fold, or of those that don't."""
    lines = []
    for operand in range(len(node.operands)):
        if loops.folds(operand) == varying:
            lines += read_statements(loops, operand, out, fold)
    for number, form in loops.coordinates.items():
        if form.folds == varying:
            lines.append(f"const Word c{number} = Word({form_expression(form, out, fold)});")
    return lines


def body_statements(node: Node) -> tuple[list[str], str]:
    """The scalar program on operands ``x``, coordinates ``c`` and the accumulator ``value``."""
    names = {InputKind.ACCUMULATOR: "value", InputKind.OPERAND: "x{index}", InputKind.COORDINATE: "c{number}"}
    inputs = [names[entry.kind].format(index=entry.index, number=number) for number, entry in enumerate(node.inputs)]
    return statements(node.body, inputs)


def _value(node: Node, loops: Loops, out: list[str]) -> list[str]:
    """Statements that leave the element in ``value``."""
    fold = [f"f{axis}" for axis in range(len(loops.fold))]
    lines = term_statements(node, loops, out, fold, varying=False)
    lines.append(f"Word value = {node.init:#x}u;")
    for name, size in zip(fold, loops.fold, strict=True):
        lines.append(f"for (Index {name} = 0; {name} < Index({size}); ++{name}) {{")
    lines += term_statements(node, loops, out, fold, varying=True)
    body, result = body_statements(node)
    lines += [*body, f"value = {result};"]
    return [*lines, "}" * len(fold)] if fold else lines
