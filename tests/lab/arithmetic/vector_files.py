"""Writes or checks the vector files that every implementation of the arithmetic is tested against.

`PYTHONPATH=tests python -m lab.arithmetic.vector_files` writes
fixtures/vectors/primitives.json and programs.json, `--check` compares them.
"""

import argparse
import hashlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from lab.arithmetic.adversarial_words import arguments, cases
from lab.json_rows import json_rows
from pol.arithmetic.functions import CATALOGUE
from pol.arithmetic.interpreter import run
from pol.arithmetic.philox import GENERATORS
from pol.arithmetic.primitives import ARITY, Op, Words, apply

SEED = 20260101
COUNT = 100_000
EXPLICIT_PRIMITIVE_CASES = 64
EXPLICIT_PROGRAM_CASES = 256

_DIGEST = "SHA-256 of the words, little-endian; of inputs: all words of operand a, then all of b, then all of c"


def documents() -> Mapping[str, str]:
    """Text of each vector file by name; the same on every machine."""
    return {"primitives.json": json_rows(_primitives()), "programs.json": json_rows(_programs())}


def digest(arrays: Sequence[Words]) -> str:
    """SHA-256, in hex, of the words of the arrays one after another, little-endian."""
    state = hashlib.sha256()
    for words in arrays:
        state.update(words.astype("<u4").tobytes())
    return state.hexdigest()


def _primitives() -> dict[str, object]:
    entries = {}
    for op in Op:
        operands = cases(op, COUNT, SEED)[: ARITY[op]]
        entries[op.name] = {"code": int(op), **_vectors(operands, apply(op, *operands), EXPLICIT_PRIMITIVE_CASES)}
    return {**_preface("a, b, c as far as the primitive has them, and the result"), "primitives": entries}


def _programs() -> dict[str, object]:
    entries = {}
    for name, function in {**CATALOGUE, **GENERATORS}.items():
        program = function()
        inputs = arguments(program.inputs, COUNT, SEED)
        entries[name] = {
            "program": program.encode().hex(),
            **_vectors(inputs, run(program, inputs), EXPLICIT_PROGRAM_CASES),
        }
    return {**_preface("the inputs and the result"), "programs": entries}


def _preface(case: str) -> dict[str, object]:
    return {"seed": SEED, "count": COUNT, "digest": _DIGEST, "case": f"hex words: {case}; the first cases of the draw"}


def _vectors(inputs: Sequence[Words], result: Words, explicit: int) -> dict[str, object]:
    columns = [*inputs, result]
    return {
        "inputs": digest(inputs),
        "results": digest([result]),
        "cases": [
            " ".join(f"{word:08x}" for word in row) for row in zip(*(c[:explicit] for c in columns), strict=True)
        ],
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the files, or with --check reports the ones that differ; the exit code is 1 if any does."""
    parser = argparse.ArgumentParser(prog="PYTHONPATH=tests python -m lab.arithmetic.vector_files", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("--directory", type=Path, default=Path("fixtures/vectors"))
    options = parser.parse_args(argv)
    stale = []
    for name, text in documents().items():
        path: Path = options.directory / name
        if not options.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        elif not path.is_file() or path.read_text() != text:
            stale.append(str(path))
    if stale:
        print(
            f"{', '.join(stale)}: not what PYTHONPATH=tests python -m lab.arithmetic.vector_files writes; run it",
            file=sys.stderr,
        )
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
