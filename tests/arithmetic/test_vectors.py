"""The vector files are what the reference computes, and they hold the hard cases."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from lab.arithmetic.adversarial_words import SPECIALS, cases
from lab.arithmetic.vector_files import COUNT, SEED, documents, main
from pol.arithmetic.interpreter import run
from pol.arithmetic.primitives import ARITY, NAN, Op, apply
from pol.arithmetic.scalar_program import ScalarProgram

pytestmark = pytest.mark.rules

VECTORS = Path(__file__).parents[2] / "fixtures" / "vectors"


def test_files_are_up_to_date() -> None:
    for name, text in documents().items():
        assert (VECTORS / name).read_text() == text, (
            f"{name}: run PYTHONPATH=tests python -m lab.arithmetic.vector_files"
        )


def test_the_command_writes_and_checks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = str(tmp_path / "vectors")
    assert main(["--directory", directory]) == 0
    assert main(["--directory", directory, "--check"]) == 0
    (tmp_path / "vectors" / "programs.json").write_text("{}\n")
    assert main(["--directory", directory, "--check"]) == 1
    assert "programs.json: not what" in capsys.readouterr().err


def test_a_reader_of_the_files_alone_can_check_an_implementation() -> None:
    document = json.loads((VECTORS / "primitives.json").read_text())
    assert set(document["primitives"]) == {op.name for op in Op}
    for name, entry in document["primitives"].items():
        op = Op(entry["code"])
        assert op.name == name
        rows = np.array([[int(word, 16) for word in case.split()] for case in entry["cases"]], np.uint32)
        assert rows.shape == (64, ARITY[op] + 1)
        assert np.array_equal(apply(op, *rows.T[:-1]), rows.T[-1])
    for entry in json.loads((VECTORS / "programs.json").read_text())["programs"].values():
        program = ScalarProgram.decode(bytes.fromhex(entry["program"]))
        rows = np.array([[int(word, 16) for word in case.split()] for case in entry["cases"]], np.uint32)
        assert rows.shape == (256, program.inputs + 1)
        assert np.array_equal(run(program, list(rows.T[:-1])), rows.T[-1])


def test_digests_are_over_little_endian_words_operand_by_operand() -> None:
    entry = json.loads((VECTORS / "primitives.json").read_text())["primitives"]["FFMA"]
    operands = cases(Op.FFMA, COUNT, SEED)
    joined = b"".join(int(word).to_bytes(4, "little") for operand in operands for word in operand)
    assert hashlib.sha256(joined).hexdigest() == entry["inputs"]
    results = b"".join(int(word).to_bytes(4, "little") for word in apply(Op.FFMA, *operands))
    assert hashlib.sha256(results).hexdigest() == entry["results"]


def test_special_words_meet_each_other() -> None:
    a, b, _ = cases(Op.FADD, COUNT, SEED)
    pairs = set(zip(a.tolist(), b.tolist(), strict=True))
    special = [(x, y) for x in SPECIALS.tolist() for y in SPECIALS.tolist()]
    assert sum(pair in pairs for pair in special) > 0.85 * len(special)


@pytest.mark.parametrize("op", [Op.FADD, Op.FSUB, Op.FMUL, Op.FDIV, Op.FFMA], ids=lambda op: op.name)
def test_float_cases_reach_every_kind_of_result(op: Op) -> None:
    result = apply(op, *cases(op, COUNT, SEED)[: ARITY[op]])
    size = result & 0x7FFFFFFF
    kinds = {
        "zero": size == 0,
        "subnormal": (size > 0) & (size < 0x00800000),
        "infinite": size == 0x7F800000,
        "nan": result == NAN,
        "least normal or greatest subnormal": (size == 0x00800000) | (size == 0x007FFFFF),
    }
    for kind, found in kinds.items():
        assert np.count_nonzero(found) > 20, kind


@pytest.mark.parametrize("op", [Op.FADD, Op.FMUL, Op.FFMA], ids=lambda op: op.name)
def test_float_cases_hold_exact_ties(op: Op) -> None:
    with np.errstate(all="ignore"):
        a, b, c = (x.view(np.float32).astype(np.float64) for x in cases(op, COUNT, SEED))
        exact = {Op.FADD: a + b, Op.FMUL: a * b, Op.FFMA: a * b + c}[op]
        beside = exact.astype(np.float32).astype(np.float64)
        other = np.nextafter(exact.astype(np.float32), np.where(exact > beside, np.inf, -np.inf).astype(np.float32))
        ties = np.isfinite(exact) & (exact != beside) & (exact - beside == other.astype(np.float64) - exact)
    assert np.count_nonzero(ties) > 500


@pytest.mark.parametrize("op", [Op.SHL, Op.SHR, Op.SAR], ids=lambda op: op.name)
def test_shift_amounts_stand_about_32(op: Op) -> None:
    amounts = cases(op, COUNT, SEED)[1]
    assert all(np.count_nonzero(amounts == n) > 100 for n in (0, 1, 30, 31, 32, 33, 64))
    assert np.count_nonzero(amounts > 0x80000000) > 100
