"""The functions as scalar programs: limits, errors, symmetry, monotony, and what the page about them says."""

import math
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from lab.arithmetic.adversarial_words import arguments
from lab.arithmetic.measure import DEFINITIONS, errors, measure
from pol.arithmetic.functions import CATALOGUE, cos, erf, exp, exp2, log, log2, power, sin, tanh
from pol.arithmetic.interpreter import run
from pol.arithmetic.primitives import NAN, SIGN, Words, is_nan
from pol.arithmetic.scalar_program import MAX_REGISTERS, ScalarProgram

pytestmark = pytest.mark.rules

INF = math.inf
NONE = math.nan

LIMITS = {
    "cos": [(0.0, 1.0), (-0.0, 1.0), (INF, NONE), (-INF, NONE), (2.0**-149, 1.0), (-(2.0**-13), 1.0)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (5.0, 1.0)],
    "exp": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (88.75, INF), (-103.0, 2.0**-149), (-104.5, 0.0)],
    "exp2": [(0.0, 1.0), (INF, INF), (-INF, 0.0), (128.0, INF), (-149.0, 2.0**-149), (-150.5, 0.0), (10.0, 1024.0)],
    "expm1": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -1.0), (88.75, INF), (-40.0, -1.0)],
    "log": [(0.0, -INF), (-0.0, -INF), (INF, INF), (-INF, NONE), (1.0, 0.0), (-1.0, NONE), (-(2.0**-149), NONE)],
    "log1p": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, NONE), (-1.0, -INF), (-1.5, NONE)],
    "log2": [(0.0, -INF), (-0.0, -INF), (INF, INF), (-INF, NONE), (1.0, 0.0), (-1.0, NONE), (2.0**-149, -149.0)],
    "reciprocal": [(0.0, INF), (-0.0, -INF), (INF, 0.0), (-INF, -0.0), (2.0**127, 2.0**-127), (2.0**-149, INF)],
    "rsqrt": [(0.0, INF), (-0.0, -INF), (INF, 0.0), (-INF, NONE), (-1.0, NONE), (4.0, 0.5)],
    "sigmoid": [(0.0, 0.5), (-0.0, 0.5), (INF, 1.0), (-INF, 0.0), (-103.0, 2.0**-149), (90.0, 1.0)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NONE), (-INF, NONE), (2.0**-149, 2.0**-149), (-(2.0**-13), -(2.0**-13))],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (2.0**-149, 2.0**-149), (20.0, 1.0)],
}

# IEEE-754 (2019) section 9.2.1, pow.
POWERS = [
    *((x, y, 1.0) for x in (0.0, -0.0, 2.0, -2.0, INF, -INF, NONE) for y in (0.0, -0.0)),
    *((1.0, y, 1.0) for y in (INF, -INF, NONE, 3.5)),
    *((-1.0, y, 1.0) for y in (INF, -INF, 2.0)),
    *((x, y, NONE) for x, y in ((NONE, 2.0), (2.0, NONE), (-2.0, 0.5), (-2.0, 2.0**-149), (-2.0, NONE), (NONE, INF))),
    *((-0.0, y, r) for y, r in ((-3.0, -INF), (-2.0, INF), (-0.5, INF), (3.0, -0.0), (2.0, 0.0), (-INF, INF))),
    *((0.0, y, r) for y, r in ((-3.0, INF), (3.0, 0.0), (0.5, 0.0), (-INF, INF), (INF, 0.0))),
    *((0.5, y, r) for y, r in ((INF, 0.0), (-INF, INF), (149.0, 2.0**-149), (151.0, 0.0), (-128.0, INF))),
    *((-2.0, y, r) for y, r in ((INF, INF), (-INF, 0.0), (3.0, -8.0), (4.0, 16.0), (-1.0, -0.5), (2.0**24, INF))),
    *((INF, y, r) for y, r in ((2.0, INF), (-2.0, 0.0), (0.1, INF), (INF, INF))),
    *((-INF, y, r) for y, r in ((3.0, -INF), (2.0, INF), (0.5, INF), (-3.0, -0.0), (-2.0, 0.0), (-0.5, 0.0))),
    *((3.0, float(y), 3.0**y) for y in range(15)),
]


def words(*numbers: float) -> Words:
    return np.array(numbers, np.float32).view(np.uint32)


def canonical(number: float) -> int:
    return int(NAN) if math.isnan(number) else int(words(number)[0])


def test_every_function_is_defined_and_tested() -> None:
    assert CATALOGUE.keys() == DEFINITIONS.keys() == LIMITS.keys() | {"power"}


@pytest.mark.parametrize("name", LIMITS)
def test_limits(name: str) -> None:
    given, wanted = zip(*LIMITS[name], strict=True)
    assert [hex(word) for word in run(CATALOGUE[name](), [words(*given)])] == [hex(canonical(x)) for x in wanted]


def test_special_cases_of_the_power() -> None:
    for x, y, wanted in POWERS:
        assert int(run(power(), [words(x), words(y)])[0]) == canonical(wanted), f"{x} ** {y}"


@pytest.mark.parametrize("name", CATALOGUE)
def test_error_keeps_its_promise_on_a_sample_of_all_words(name: str) -> None:
    measured = measure(name, every=20_011, start=5)
    assert measured.inputs > 200_000
    assert measured.error <= DEFINITIONS[name].promise, f"at {[hex(word) for word in measured.worst]}"


@pytest.mark.slow
def test_error_of_the_power_keeps_its_promise_on_many_pairs() -> None:
    assert measure("power", every=61, start=1).error <= DEFINITIONS["power"].promise


@pytest.mark.parametrize("name", CATALOGUE)
def test_error_keeps_its_promise_against_arbitrary_precision(name: str) -> None:
    context = pytest.importorskip("mpmath").mp.clone()
    context.prec = 200
    exact = {
        "exp2": lambda x: context.power(2, x),
        "log2": lambda x: context.log(x, 2),
        "power": context.power,
        "reciprocal": lambda x: 1 / x,
        "rsqrt": lambda x: 1 / context.sqrt(x),
        "sigmoid": lambda x: 1 / (1 + context.exp(-x)),
    }.get(name) or getattr(context, name)
    program = CATALOGUE[name]()
    inputs = arguments(program.inputs, 3000, seed=5)
    result = run(program, inputs)
    checked = 0
    for i, word in enumerate(result):
        got = float(word.view(np.float32))
        if not math.isfinite(got) or got == 0.0:
            continue
        numbers = [float(column[i].view(np.float32)) for column in inputs]
        if not all(map(math.isfinite, numbers)):
            continue  # limits have their own tests
        value = exact(*map(context.mpf, numbers))
        unit = context.mpf(2) ** (max(math.frexp(float(value))[1] - 1, -126) - 23)
        assert abs(context.mpf(got) - value) <= DEFINITIONS[name].promise * unit, [hex(column[i]) for column in inputs]
        checked += 1
    assert checked > 700


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_nan_is_the_canonical_one(name: str) -> None:
    program = CATALOGUE[name]()
    result = run(program, arguments(program.inputs, 40_000, seed=9))
    assert set(result[is_nan(result)].tolist()) == {int(NAN)}


@pytest.mark.parametrize("function", [erf, sin, tanh])
def test_odd_functions_are_odd_bit_for_bit(function: Callable[[], ScalarProgram]) -> None:
    (x,) = arguments(1, 100_000, seed=4)
    x = x[~is_nan(run(function(), [x]))]
    assert len(x) > 90_000
    assert np.array_equal(run(function(), [x ^ SIGN]), run(function(), [x]) ^ SIGN)


def test_cosine_is_even_bit_for_bit() -> None:
    (x,) = arguments(1, 100_000, seed=4)
    assert np.array_equal(run(cos(), [x ^ SIGN]), run(cos(), [x]))


@pytest.mark.parametrize("function", [sin, cos])
def test_angles_close_to_multiples_of_a_quarter_turn(function: Callable[[], ScalarProgram]) -> None:
    mpmath = pytest.importorskip("mpmath")
    context = mpmath.mp.clone()
    context.prec = 300
    # For every exponent the binary32 numbers that come closest to a multiple of pi / 2, from the convergents of the
    # continued fraction of 2^e / (pi / 2), and what stands about them.
    angles = []
    for exponent in range(-23, 105):
        ratio = context.ldexp(2 / context.pi, exponent)
        before, m, rest = 0, 1, ratio - context.floor(ratio)
        while m < 1 << 24:
            if m >= 1 << 23 or exponent == -23:
                angles.append(math.ldexp(m, exponent))
            if not rest:
                break
            whole = int(1 / rest)
            rest = 1 / rest - whole
            before, m = m, whole * m + before
    assert len(angles) > 60
    x = (words(*angles)[:, None] + np.arange(-2, 3).astype(np.uint32)).ravel()
    exact = getattr(context, function.__name__)
    for word, result in zip(x.tolist(), run(function(), [x]).view(np.float32).tolist(), strict=True):
        value = exact(context.mpf(float(np.uint32(word).view(np.float32))))
        unit = context.mpf(2) ** (math.frexp(float(value))[1] - 24)
        assert abs(result - value) <= DEFINITIONS[function.__name__].promise * unit, hex(word)


def test_base_two_is_exact_at_whole_exponents() -> None:
    whole = np.arange(-149, 128)
    powers = np.ldexp(1.0, whole).astype(np.float32).view(np.uint32)
    exponents = whole.astype(np.float32).view(np.uint32)
    assert np.array_equal(run(log2(), [powers]), exponents)
    assert np.array_equal(run(exp2(), [exponents]), powers)


def test_exp_and_log_do_not_step_back_where_their_pieces_meet() -> None:
    # Pieces of exp meet at odd multiples of ln(2) / 2, those of log at sqrt(2) times powers of two.
    for function, centres in (
        (exp, [(2 * n + 1) * math.log(2) / 2 for n in range(-140, 120)]),
        (log, [math.sqrt(2) * 2.0**n for n in range(-140, 127)]),
    ):
        for centre in centres:
            x = np.sort(words(centre) + np.arange(-40, 41).astype(np.uint32))
            x = x[::-1] if centre < 0 else x
            result = run(function(), [x]).view(np.float32)
            # Where results are dense the functions may step back by the error that they promise: one unit.
            back = np.nextafter(result[:-1], np.float32(-INF))
            assert (result[1:] >= back).all(), centre


def test_programs_fit_the_machine() -> None:
    for name, function in CATALOGUE.items():
        program = function()
        assert ScalarProgram.decode(program.encode()) == program
        assert program.inputs + len(program.constants) + len(program.instructions) <= MAX_REGISTERS // 2 + 32, name


def test_the_measure_of_errors_counts_units_in_the_last_place() -> None:
    results = np.array([0x3F800001, 0x3F7FFFFF, 0x00000002, 0x7F800000, 0x7F800000, 0x7FC00000, 0x7FC00000], np.uint32)
    exact = np.array([1.0, 1.0, 2.0**-149 * 1.5, 2.0**128, 2.0**127, math.nan, 1.0])
    assert errors(results, exact).tolist() == [1.0, 0.5, 0.5, 0.0, INF, 0.0, INF]
    assert errors(np.array([0], np.uint32), np.array([math.nan])).tolist() == [INF]


def test_the_page_states_what_the_programs_do() -> None:
    text = (Path(__file__).parents[2] / "docs" / "spec" / "functions.md").read_text()
    rows = re.findall(
        r"^\| (\w+) \| [^|]+ \| (\d+) \| ([\d.]+) \| ([\d.]+) \| ([`0-9a-f, ]+) \| (?:all|[\d,]+) "
        r"\| (?:-|none|[\d,]+, at most \d+ ulp) \| (?:-|odd|even) \|$",
        text,
        re.MULTILINE,
    )
    assert [name for name, *_ in rows] == list(CATALOGUE)
    for name, instructions, promise, stated, worst in rows:
        assert float(promise) == DEFINITIONS[name].promise, "run PYTHONPATH=tests python -m lab.arithmetic.measure"
        program = CATALOGUE[name]()
        inputs = [np.array([int(word, 16)], np.uint32) for word in re.findall(r"[0-9a-f]{8}", worst)]
        wide = [column.view(np.float32).astype(np.float64) for column in inputs]
        assert int(instructions) == len(program.instructions), "run PYTHONPATH=tests python -m lab.arithmetic.measure"
        found = errors(run(program, inputs), DEFINITIONS[name].exact(*wide))
        assert float(found[0]) == pytest.approx(float(stated), abs=6e-4), (
            "run PYTHONPATH=tests python -m lab.arithmetic.measure"
        )
        assert float(stated) <= float(promise)
