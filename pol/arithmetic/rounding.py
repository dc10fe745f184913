"""Roundings of binary32 numbers to shorter formats, by integer primitives."""

from functools import cache

from pol.arithmetic.primitives import NAN, Op
from pol.arithmetic.program import Builder, ScalarProgram


@cache
def round_bf16() -> ScalarProgram:
    """The nearest number whose low 16 bits are zero, ties to even; NaN is canonical, too large numbers are infinite."""
    b = Builder(1)
    word = b.input(0)
    odd = b.emit(Op.AND, b.emit(Op.SHR, word, b.const(16)), b.const(1))
    moved = b.emit(Op.ADD, b.emit(Op.ADD, word, b.const(0x7FFF)), odd)
    short = b.emit(Op.AND, moved, b.const(0xFFFF0000))
    return b.build(b.emit(Op.SELECT, b.emit(Op.FEQ, word, word), short, b.const(int(NAN))))
