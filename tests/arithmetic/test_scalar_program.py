"""Scalar programs: their bytes, their validation, the builder and the interpreter."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pol.arithmetic.interpreter import run, values
from pol.arithmetic.primitives import ARITY, NAN, Op, apply
from pol.arithmetic.scalar_program import MAX_REGISTERS, Builder, Instruction, ScalarProgram
from pol.errors import ProtocolError

pytestmark = pytest.mark.rules

words = st.integers(0, 2**32 - 1)


@st.composite
def programs(draw: st.DrawFn) -> ScalarProgram:
    inputs = draw(st.integers(0, 5))
    constants = draw(st.lists(words, min_size=0 if inputs else 1, max_size=5))
    instructions = []
    for index in range(draw(st.integers(1, 12))):
        op = draw(st.sampled_from(Op))
        register = st.integers(0, inputs + len(constants) + index - 1)
        instructions.append(Instruction(op, *(draw(register) for _ in range(ARITY[op]))))
    return ScalarProgram(inputs, tuple(constants), tuple(instructions))


def test_bytes_are_those_of_the_specification() -> None:
    program = ScalarProgram(2, (0x3F800000,), (Instruction(Op.FFMA, 0, 1, 2), Instruction(Op.FNEG, 3)))
    assert program.encode().hex() == "0201023f800000050001020c030000"
    assert ScalarProgram.decode(program.encode()) == program


@given(programs())
def test_decode_inverts_encode(program: ScalarProgram) -> None:
    encoded = program.encode()
    assert len(encoded) == 3 + 4 * len(program.constants) + 4 * len(program.instructions)
    assert ScalarProgram.decode(encoded) == program


@given(st.binary(max_size=40))
def test_bytes_are_either_refused_or_the_only_encoding(data: bytes) -> None:
    try:
        program = ScalarProgram.decode(data)
    except ProtocolError:
        return
    assert program.encode() == data


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("", "header"), ("0100", "header"), ("010000", "needs an instruction"),
        ("0100013100000000", "contradicts"), ("010001310000", "contradicts"), ("01000100000000", "code 0x00 "),
        ("0100010f000000", "code 0x0f "), ("01000132000000", "code 0x32 "),
        ("01000131010000", "not yet defined"), ("01000101000100", "not yet defined"),
        ("00000131000000", "not yet defined"), ("01000131000100", "unused"), ("02000101000001", "unused"),
    ],
)  # fmt: skip
def test_invalid_bytes_are_refused(data: str, reason: str) -> None:
    with pytest.raises(ProtocolError, match=reason):
        ScalarProgram.decode(bytes.fromhex(data))


def test_a_program_has_at_most_256_registers() -> None:
    moves = tuple(Instruction(Op.MOV, 0) for _ in range(MAX_REGISTERS - 1))
    assert ScalarProgram.decode(ScalarProgram(1, (), moves).encode()).instructions == moves
    with pytest.raises(ProtocolError, match="256 registers"):
        ScalarProgram(1, (), (*moves, moves[0]))
    with pytest.raises(ProtocolError, match="256 registers"):
        ScalarProgram.decode(bytes([2, 0, 255]) + bytes([Op.MOV, 0, 0, 0]) * 255)


@pytest.mark.parametrize("constant", [-1, 1 << 32])
def test_a_constant_is_a_word(constant: int) -> None:
    with pytest.raises(ProtocolError, match="32-bit word"):
        ScalarProgram(0, (constant,), (Instruction(Op.MOV, 0),))


def test_a_primitive_is_an_op() -> None:
    with pytest.raises(ProtocolError, match="unknown primitive"):
        ScalarProgram(1, (), (Instruction(0x7F, 0),))  # type: ignore[arg-type]  # the error under test


def test_builder_shares_constants_and_drops_dead_code() -> None:
    b = Builder(2)
    dead = b.emit(Op.FADD, b.input(0), b.f32(5.0))
    one, again = b.f32(1.0), b.const(0x3F800000)
    assert one == again
    total = b.emit(Op.FADD, b.input(1), one)
    twice = b.emit(Op.FMUL, total, b.emit(Op.FADD, b.input(1), again))
    b.emit(Op.FSUB, dead, twice)
    assert b.build(twice) == ScalarProgram(
        2, (0x3F800000,), (Instruction(Op.FADD, 1, 2), Instruction(Op.FMUL, 3, 3))
    ), "equal instructions are shared, unused inputs stay"


def test_builder_moves_a_result_that_no_instruction_yields() -> None:
    b = Builder(2)
    assert b.build(b.input(1)) == ScalarProgram(2, (), (Instruction(Op.MOV, 1),))
    assert b.build(b.const(7)) == ScalarProgram(2, (7,), (Instruction(Op.MOV, 2),))
    early = b.emit(Op.ADD, b.input(0), b.input(1))
    b.emit(Op.SUB, early, b.input(1))
    assert b.build(early) == ScalarProgram(2, (), (Instruction(Op.ADD, 0, 1),))


@pytest.mark.parametrize(
    ("number", "word"),
    [
        (1.0, 0x3F800000),
        (-0.0, 0x80000000),
        (1e300, 0x7F800000),
        (float("nan"), int(NAN)),
        (0.1, 0x3DCCCCCD),
        (1e-46, 0),
    ],
)
def test_builder_rounds_constants_to_binary32(number: float, word: int) -> None:
    b = Builder(0)
    assert b.build(b.f32(number)).constants == (word,)


def test_builder_refuses_registers_that_do_not_exist() -> None:
    b = Builder(1)
    for registers in ((0,), (0, 5), (0, -1)):
        with pytest.raises(ValueError, match="FADD"):
            b.emit(Op.FADD, *registers)
    with pytest.raises(ValueError, match="input 1"):
        b.input(1)
    with pytest.raises(ValueError, match="takes 1 inputs"):
        b.call(ScalarProgram(1, (), (Instruction(Op.MOV, 0),)))
    with pytest.raises(ProtocolError, match="256 registers"):
        chain(b, 300)


def chain(b: Builder, length: int) -> ScalarProgram:
    register = b.input(0)
    for _ in range(length):
        register = b.emit(Op.ADD, register, b.input(0))
    return b.build(register)


@given(programs(), st.lists(words, min_size=5, max_size=5))
def test_interpreter_runs_instruction_by_instruction(program: ScalarProgram, arguments: list[int]) -> None:
    inputs = [np.array(word, np.uint32) for word in arguments[: program.inputs]]
    registers = [*inputs, *(np.array(word, np.uint32) for word in program.constants)]
    for step in program.instructions:
        registers.append(apply(step.op, *(registers[register] for register in step.operands)))
    expected = [int(word) for word in registers[-len(program.instructions) :]]
    assert [int(word) for word in values(program, inputs)] == expected
    assert int(run(program, inputs)) == expected[-1]


@given(programs(), st.lists(words, min_size=5, max_size=5))
def test_a_called_program_yields_what_it_yields_alone(program: ScalarProgram, arguments: list[int]) -> None:
    b = Builder(program.inputs)
    called = b.build(b.call(program, *range(program.inputs)))
    inputs = [np.array([word], np.uint32) for word in arguments[: program.inputs]]
    assert np.array_equal(run(called, inputs), run(program, inputs))
    assert len(called.instructions) <= len(program.instructions)


def test_results_have_the_shape_of_the_inputs() -> None:
    b = Builder(2)
    constant = b.build(b.const(7))
    column, row = np.zeros((3, 1), np.uint32), np.zeros(4, np.uint32)
    assert run(constant, [column, row]).tolist() == [[7] * 4] * 3
    assert [result.shape for result in values(constant, [column, row])] == [(3, 4)]
    result = run(b.build(b.input(1)), [column, row])
    result[0, 0] = 1
    assert row.tolist() == [0] * 4, "a result never shares memory with an input"
    with pytest.raises(ValueError, match="takes 2 inputs, got 1"):
        run(constant, [column])
