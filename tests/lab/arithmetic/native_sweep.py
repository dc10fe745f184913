"""C++ source of scalar programs, for sweeps over all words: the interpreter's results at the speed of the machine."""

from collections.abc import Mapping

from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import ScalarProgram

_EXPRESSIONS: Mapping[Op, str] = {
    Op.FADD: "word(number({a}) + number({b}))",
    Op.FSUB: "word(number({a}) - number({b}))",
    Op.FMUL: "word(number({a}) * number({b}))",
    Op.FDIV: "word(number({a}) / number({b}))",
    Op.FFMA: "word(__builtin_fmaf(number({a}), number({b}), number({c})))",
    Op.FSQRT: "word(__builtin_sqrtf(number({a})))",
    Op.FMIN: "least({a}, {b})",
    Op.FMAX: "greatest({a}, {b})",
    Op.FEQ: "number({a}) == number({b}) ? 1u : 0u",
    Op.FLT: "number({a}) < number({b}) ? 1u : 0u",
    Op.FLE: "number({a}) <= number({b}) ? 1u : 0u",
    Op.FNEG: "is_nan({a}) ? kNan : {a} ^ kSign",
    Op.FABS: "is_nan({a}) ? kNan : {a} & ~kSign",
    Op.FRINT: "word(__builtin_rintf(number({a})))",
    Op.F2I: "truncated({a})",
    Op.I2F: "word(static_cast<float>(static_cast<int32_t>({a})))",
    Op.F2U: "truncated_unsigned({a})",
    Op.U2F: "word(static_cast<float>({a}))",
    Op.F2LHI: "static_cast<uint32_t>(truncated_wide({a}) >> 32)",
    Op.F2LLO: "static_cast<uint32_t>(truncated_wide({a}))",
    Op.L2F: "word(static_cast<float>(static_cast<int64_t>(uint64_t{{{a}}} << 32 | {b})))",
    Op.RBF16: "is_nan({a}) ? kNan : ({a} + 0x7fff + ({a} >> 16 & 1)) & 0xffff0000",
    Op.RF16: "rounded_f16({a})",
    Op.ADD: "{a} + {b}",
    Op.SUB: "{a} - {b}",
    Op.MUL: "{a} * {b}",
    Op.MULHI: "static_cast<uint32_t>(uint64_t{{{a}}} * {b} >> 32)",
    Op.AND: "{a} & {b}",
    Op.OR: "{a} | {b}",
    Op.XOR: "{a} ^ {b}",
    Op.SHL: "{b} < 32 ? {a} << ({b} & 31) : 0u",
    Op.SHR: "{b} < 32 ? {a} >> ({b} & 31) : 0u",
    Op.SAR: "static_cast<uint32_t>(static_cast<int32_t>({a}) >> ({b} < 31 ? {b} : 31))",
    Op.EQ: "{a} == {b} ? 1u : 0u",
    Op.LTU: "{a} < {b} ? 1u : 0u",
    Op.LTS: "static_cast<int32_t>({a}) < static_cast<int32_t>({b}) ? 1u : 0u",
    Op.SELECT: "{a} != 0 ? {b} : {c}",
    Op.MOV: "{a}",
}


def source(program: ScalarProgram) -> str:
    """A C++ function `program` of as many words as the program has inputs; needs the definitions of sweep.cpp."""
    names = [f"x{i}" for i in range(program.inputs)] + [f"{word:#010x}u" for word in program.constants]
    lines = []
    for index, step in enumerate(program.instructions):
        operands = dict(zip("abc", (names[register] for register in step.operands), strict=False))
        lines.append(f"    const uint32_t r{index} = {_EXPRESSIONS[step.op].format(**operands)};")
        names.append(f"r{index}")
    parameters = ", ".join(f"uint32_t x{i}" for i in range(program.inputs))
    return "\n".join([f"inline uint32_t program({parameters}) {{", *lines, f"    return {names[-1]};", "}", ""])
