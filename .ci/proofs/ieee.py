#!/usr/bin/env python3
"""Prove that Float32 computes what IEEE 754 says, for all inputs.

    .ci/audit ieee [--seconds N] [--workers N] [OPERATION ...]

halmos runs tests/forge/proofs/Float32Ieee.t.sol and leaves, for every path through an operation, a formula that says
which `result` comes of which inputs. To each this adds that the result is *not* the one of the theory of floating
point in SMT-LIB; if no solution exists, the path is proved. The multiplier or divider in a path stays an unknown
function with the few facts below: that what comes out of it is rounded right then holds for any product or quotient,
and no solver has to compare two multipliers.
"""

import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
QUERIES = ROOT / "build" / "audit" / "ieee"
SOLVER = (sys.executable, str(ROOT / ".ci" / "proofs" / "smt.py"))

NAN = 0x7FC00000
# What an operation has to give: a term of sort Float32 over the operands as numbers (A, B) or bits (a, b).
NUMBERS = {
    "add": "(fp.add RNE A B)",
    "mul": "(fp.mul RNE A B)",
    "div": "(fp.div RNE A B)",
    "rint": "(fp.roundToIntegral RNE A)",
    "neg": "(fp.neg A)",
    "abs": "(fp.abs A)",
    # The theory leaves the sign open if both are zeros; here -0 < +0.
    "min": "(ite (or (fp.isNaN A) (fp.isNaN B)) (_ NaN 8 24) "
    "(ite (and (fp.isZero A) (fp.isZero B)) (ite (fp.isNegative A) A B) (fp.min A B)))",
    "max": "(ite (or (fp.isNaN A) (fp.isNaN B)) (_ NaN 8 24) "
    "(ite (and (fp.isZero A) (fp.isZero B)) (ite (fp.isNegative A) B A) (fp.max A B)))",
    "fromInt": "((_ to_fp 8 24) RNE a)",
    "fromU32": "((_ to_fp_unsigned 8 24) RNE a)",
    "fromI64": "((_ to_fp 8 24) RNE a)",
    # There and back: every number of a shorter format is one of f32.
    "toBf16": "((_ to_fp 8 24) RNE ((_ to_fp 8 8) RNE A))",
    "toF16": "((_ to_fp 8 24) RNE ((_ to_fp 5 11) RNE A))",
}


def integer(cast: str, size: int, low: str, high: str, least: str, greatest: str) -> str:
    """The integer of `size` bits toward zero: of numbers below `low` it is `least`, from `high` on `greatest`."""
    inside = f"((_ {cast} {size}) RTZ A)"
    for sign, pattern, end in (("fp.lt", low, least), ("fp.geq", high, greatest)):
        inside = f"(ite ({sign} A ((_ to_fp 8 24) {pattern})) {end} {inside})"
    return f"((_ zero_extend {256 - size}) (ite (fp.isNaN A) (_ bv0 {size}) {inside}))"


# The others give bits: the truth of a comparison, or an integer.
BITS = {
    "eq": "(ite (fp.eq A B) (_ bv1 256) (_ bv0 256))",
    "lt": "(ite (fp.lt A B) (_ bv1 256) (_ bv0 256))",
    "le": "(ite (fp.leq A B) (_ bv1 256) (_ bv0 256))",
    # The theory leaves open what does not fit; here it is the nearest integer that does, and 0 for NaN.
    "toInt": integer("fp.to_sbv", 32, "#xcf000000", "#x4f000000", "#x80000000", "#x7fffffff"),
    "toU32": integer("fp.to_ubv", 32, "#x00000000", "#x4f800000", "#x00000000", "#xffffffff"),
    "toI64": integer("fp.to_sbv", 64, "#xdf000000", "#x5f000000", f"#x8{0:015x}", f"#x7{'f' * 15}"),
}

# Words shared by the two rules below. A finite number is significand * 2^(scale - 150).
PARTS = """
(define-fun field ((x (_ BitVec 32))) (_ BitVec 12) ((_ zero_extend 4) ((_ extract 30 23) x)))
(define-fun scale ((x (_ BitVec 32))) (_ BitVec 12) (ite (= (field x) (_ bv0 12)) (_ bv1 12) (field x)))
(define-fun significand ((x (_ BitVec 32))) (_ BitVec 256)
  ((_ zero_extend 232) (concat (ite (= (field x) (_ bv0 12)) (_ bv0 1) (_ bv1 1)) ((_ extract 22 0) x))))
(define-fun power ((k (_ BitVec 12))) (_ FloatingPoint 11 53)
  (fp (_ bv0 1) ((_ extract 10 0) (bvadd k (_ bv1023 12))) (_ bv0 52)))
(define-fun scaled ((x (_ BitVec 53)) (k (_ BitVec 12)) (sign (_ BitVec 1))) (_ FloatingPoint 8 24)
  (let ((y ((_ to_fp 8 24) RNE (fp.mul RNE ((_ to_fp_unsigned 11 53) RNE x) (power k)))))
    (ite (= sign (_ bv1 1)) (fp.neg y) y)))
(define-fun differ () (_ BitVec 1) (bvxor ((_ extract 31 31) a) ((_ extract 31 31) b)))
"""
# Any product of two significands is below 2^48, and at least 1, or 2^46 for normal numbers. Its exact value is
# rounded once. (Paths with zeros do not multiply.)
PRODUCT = """
(define-fun product () (_ BitVec 256) (f_evm_bvmul_256 (significand a) (significand b)))
(assert (bvult product (_ bv281474976710656 256)))
(assert (bvuge product (_ bv1 256)))
(assert (=> (and (distinct (field a) (_ bv0 12)) (distinct (field b) (_ bv0 12)))
  (bvuge product (_ bv70368744177664 256))))
(define-fun expected () (_ FloatingPoint 8 24)
  (scaled ((_ extract 52 0) product) (bvsub (bvadd (scale a) (scale b)) (_ bv300 12)) differ))
"""


def words(name: str, text: str) -> str:
    """halmos's name of a parameter; empty if the path does not have it."""
    found = re.search(rf"\bp_{name}_(?:uint32|uint64|bool)_\w+", text)
    return found.group() if found else ""


def exact_functions(text: str) -> str:
    """halmos leaves multiplication and division unknown: here they get their meaning."""
    shape = r"\(declare-fun f_evm_({})_256 \(\(_ BitVec 256\) \(_ BitVec 256\)\) \(_ BitVec 256\)\)"
    head = r"(define-fun f_evm_\1_256 ((x (_ BitVec 256)) (y (_ BitVec 256))) (_ BitVec 256) "
    text = re.sub(shape.format("bvmul"), head + r"(\1 x y))", text)
    return re.sub(shape.format("bvudiv|bvurem"), head + r"(ite (= y (_ bv0 256)) (_ bv0 256) (\1 x y)))", text)


def query(operation: str, text: str) -> str:
    """The formula of a path with the claim that its result is wrong."""
    lines = []
    for name in ("a", "b"):
        word = words(name, text)
        if word:
            size = 64 if "_uint64_" in word else 32
            lines.append(f"(define-fun {name} () (_ BitVec {size}) ((_ extract {size - 1} 0) {word}))")
            if size == 32:
                lines.append(f"(define-fun {name.upper()} () (_ FloatingPoint 8 24) ((_ to_fp 8 24) {name}))")
    result = words("result", text)
    if operation in BITS:
        lines.append(f"(assert (distinct {result} {BITS[operation]}))")
    else:
        if operation == "mul" and "declare-fun f_evm_bvmul_256" in text:
            lines += [PARTS, PRODUCT]
        else:
            text = exact_functions(text)
            lines.append(f"(define-fun expected () (_ FloatingPoint 8 24) {NUMBERS[operation]})")
        number = f"((_ to_fp 8 24) ((_ extract 31 0) {result}))"
        right = f"(ite (fp.isNaN expected) (= {result} (_ bv{NAN} 256)) (= {number} expected))"
        lines.append(f"(assert (not {right}))")
    text = text.replace("(set-logic QF_AUFBV)", "(set-logic ALL)").replace("(get-model)", "")
    return text.replace("(check-sat)", "\n".join([*lines, "(check-sat)"]))


def paths(operation: str) -> list[Path]:
    """Let halmos execute the operation and write down its paths."""
    folder = QUERIES / f"ieee_{operation}"
    shutil.rmtree(folder, ignore_errors=True)
    command = ["halmos", "--contract", "Float32Ieee", "--match-test", f"^ieee_{operation}\\(", "--dump-smt-queries"]
    command += ["--dump-smt-directory", str(QUERIES), "--solver-timeout-assertion", "1ms", "--no-status"]
    command += ["--solver-timeout-branching", "1s", "--forge-build-out", "build/proofs"]
    environment = {**os.environ, "FOUNDRY_PROFILE": "proofs"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    found = sorted(path for path in folder.glob("*.smt2") if path.stem.isdigit())
    if not found or "WARNING" in done.stdout + done.stderr:
        raise SystemExit(f"halmos did not get through {operation}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return found


def solve(operation: str, path: Path, limit: float) -> tuple[str, float]:
    """What the solver says about one path, and how long it took."""
    asked = path.with_suffix(".ieee")
    asked.write_text(query(operation, path.read_text()))
    start = time.monotonic()
    try:
        done = subprocess.run([*SOLVER, str(asked)], capture_output=True, text=True, timeout=limit, check=False)
        answer = done.stdout.strip() or done.stderr.strip()[-100:]
    except subprocess.TimeoutExpired:
        answer = "no answer"
    return answer, time.monotonic() - start


def main() -> int:
    """Prove the operations named; 1 if a path has a wrong result or gets no answer."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("operations", nargs="*", default=[*NUMBERS, *BITS])
    parser.add_argument("--seconds", type=float, default=600, help="for one path")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    open_paths = 0
    for operation in options.operations or [*NUMBERS, *BITS]:
        found = paths(operation)
        with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
            jobs = {path.name: pool.submit(solve, operation, path, options.seconds) for path in found}
            answers = {name: job.result() for name, job in jobs.items()}
        proved = sum(answer == "unsat" for answer, _ in answers.values())
        open_paths += len(found) - proved
        slowest = max(seconds for _, seconds in answers.values())
        print(f"{operation}: {proved} of {len(found)} paths proved; the slowest took {slowest:.0f} s", flush=True)
        for name, (answer, seconds) in answers.items():
            if answer != "unsat":
                print(f"  {QUERIES.name}/ieee_{operation}/{name}: {answer} after {seconds:.0f} s", flush=True)
    return 1 if open_paths else 0


if __name__ == "__main__":
    sys.exit(main())
