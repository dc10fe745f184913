"""Measures the greatest errors of the functions in units in the last place and writes them down.

`PYTHONPATH=tests python -m lab.arithmetic.measure`
writes docs/spec/functions.md from all 2^32 words (minutes per function and core); with names it measures these
functions only and leaves the other rows as they are.
"""

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.progress import Progress

from lab.arithmetic.adversarial_words import arguments
from lab.arithmetic.exhaustive import PARTS, Doubles, Sweep, Sweeper, errors
from pol.arithmetic.functions import CATALOGUE
from pol.arithmetic.interpreter import run
from pol.arithmetic.philox import GENERATORS
from pol.arithmetic.primitives import Words

PAGE = Path("docs/spec/functions.md")
_PAIRS_EVERY = 257
"""Of functions of two numbers, one in this many of 2^32 pairs is drawn."""
_CHUNK = 1 << 16
_SEED = 257


def _sigmoid(x: Doubles) -> Doubles:
    power = np.exp(-np.abs(x))
    return np.where(x < 0, power, 1.0) / (1.0 + power)


def _erf(x: Doubles) -> Doubles:
    found: Doubles = torch.erf(torch.from_numpy(x)).numpy()
    return found


@dataclass(frozen=True)
class Definition:
    """What a function computes and what is promised.

    `formula` says it in words; `exact` in binary64 arrays, whose own error does not show. `promise` is the error that
    it may have in units in the last place, `direction` 1 or -1 where the exact function rises or falls on all of its
    domain (on each side of 0), and `symmetry` "odd" or "even" where results have it bit for bit.
    """

    formula: str
    exact: Callable[..., Doubles]
    promise: float
    direction: int = 0
    symmetry: str = ""


DEFINITIONS: Mapping[str, Definition] = {
    "cos": Definition("cosine", np.cos, 1.1, symmetry="even"),
    "erf": Definition("error function", _erf, 1.1, 1, "odd"),
    "exp": Definition("e^x", np.exp, 0.9, 1),
    "exp2": Definition("2^x", np.exp2, 0.95, 1),
    "expm1": Definition("e^x - 1", np.expm1, 1.5, 1),
    "log": Definition("natural logarithm", np.log, 0.9, 1),
    "log1p": Definition("log(1 + x)", np.log1p, 1.5, 1),
    "log2": Definition("logarithm to base 2", np.log2, 1.0, 1),
    "power": Definition("x^y", np.power, 1.05),
    "reciprocal": Definition("1 / x", np.reciprocal, 0.5, -1, "odd"),
    "rsqrt": Definition("1 / sqrt(x)", lambda x: 1.0 / np.sqrt(x), 1.5, -1),
    "sigmoid": Definition("1 / (1 + e^-x)", _sigmoid, 2.5, 1),
    "sin": Definition("sine", np.sin, 1.1, symmetry="odd"),
    "tanh": Definition("hyperbolic tangent", np.tanh, 1.1, 1, "odd"),
}


@dataclass(frozen=True)
class Measurement:
    """The greatest error found, in units in the last place, where it stands, and how many inputs were tried."""

    error: float
    worst: tuple[int, ...]
    inputs: int


def measure(name: str, every: int, start: int = 0) -> Measurement:
    """Greatest error of a function over every `every`-th bit pattern from `start`; for two numbers, over as many."""
    program, exact = CATALOGUE[name](), DEFINITIONS[name].exact
    greatest, count = -1.0, 0
    worst: tuple[int, ...] = ()
    for inputs in _inputs(program.inputs, every, start):
        with np.errstate(all="ignore"):
            wide = [words.view(np.float32).astype(np.float64) for words in inputs]
            found = errors(run(program, inputs), exact(*wide))
        index = int(np.argmax(found))
        if found[index] > greatest:
            greatest, worst = float(found[index]), tuple(int(words[index]) for words in inputs)
        count += len(found)
    return Measurement(greatest, worst, count)


def _inputs(number: int, every: int, start: int) -> Iterator[tuple[Words, ...]]:
    step = every * _CHUNK
    for chunk, first in enumerate(range(start, 1 << 32, step)):
        if number == 1:
            yield (np.arange(first, min(first + step, 1 << 32), every, dtype=np.uint64).astype(np.uint32),)
        else:
            yield arguments(number, _CHUNK, seed=_SEED + start + chunk)


def sweep(name: str, jobs: int = 0, advance: Callable[[], None] = lambda: None) -> Sweep:
    """What all 2^32 words give for a function of one number; see exhaustive.py."""
    definition = DEFINITIONS[name]
    return Sweeper(CATALOGUE[name](), definition.exact, definition.direction).sweep(jobs, advance)


def row(name: str, jobs: int = 0, advance: Callable[[], None] = lambda: None) -> str:
    """The row of docs/spec/functions.md for a function, measured; calls `advance` PARTS times."""
    program, definition = CATALOGUE[name](), DEFINITIONS[name]
    if program.inputs == 1:
        found = sweep(name, jobs, advance)
        error, words, inputs = found.error, f"`{found.worst:08x}`", "all"
        back = f"{found.steps_back:,}, at most {found.furthest_back} ulp" if found.steps_back else "none"
        order = back if definition.direction else "-"
    else:
        measured = measure(name, _PAIRS_EVERY)
        error, inputs, order = measured.error, f"{measured.inputs:,}", "-"
        words = ", ".join(f"`{word:08x}`" for word in measured.worst)
        for _ in range(PARTS):
            advance()
    return (
        f"| {name} | {definition.formula} | {len(program.instructions)} | {definition.promise} | {error:.3f} | {words} "
        f"| {inputs} | {order} | {definition.symmetry or '-'} |"
    )


_HEADING = """# Functions: scalar programs and their errors

Generated by `PYTHONPATH=tests python -m lab.arithmetic.measure`; do not edit. The programs are built in
`pol.arithmetic` and stand, byte by byte and with inputs and results, in `fixtures/vectors/programs.json`.

The error is the distance from the exact value in units in the last place (ulp) of binary32 at the exact value; 0.5 is
correct rounding. No argument may exceed what is promised. The greatest error is that over the inputs named: all 2^32
bit patterns, subnormal numbers, infinities and NaN included, or so many drawn ones. "Steps back" counts neighbouring
arguments at which a result moves against the direction of the exact function, and the longest such step: with "none"
the function is monotone. Symmetries hold bit for bit. Functions are total: limits at infinities and zeros, the
canonical NaN outside the domain.

| function | value | primitives | promised, ulp | greatest, ulp | at | inputs | steps back | symmetry |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


def document(names: Sequence[str], earlier: str, jobs: int = 0, console: Console | None = None) -> str:
    """Text of docs/spec/functions.md with the given functions measured and the other rows those of the `earlier` text.

    Raises ValueError if neither holds a function of the catalogue.
    """
    rows = dict(re.findall(r"^(?=\| (\w+) \|)(.*)$", earlier, re.MULTILINE))
    missing = CATALOGUE.keys() - rows.keys() - set(names)
    if missing:
        raise ValueError(f"not on the page yet, measure as well: {', '.join(sorted(missing))}")
    with Progress(console=console or Console(stderr=True)) as progress:
        for name in names:
            task = progress.add_task(name, total=PARTS)
            rows[name] = row(name, jobs, lambda task=task: progress.advance(task))  # type: ignore[misc]  # mypy infers no lambda with a default
    return _HEADING + "".join(f"{line}\n" for line in (*(rows[name] for name in CATALOGUE), *_generators()))


def _generators() -> Iterator[str]:
    yield ""
    yield "## Random numbers"
    yield ""
    yield "Programs on words, defined in [randomness.md](randomness.md)."
    yield ""
    yield "| program | inputs | primitives |"
    yield "| --- | --- | --- |"
    for name, function in GENERATORS.items():
        yield f"| {name} | {function().inputs} | {len(function().instructions)} |"


def main(argv: Sequence[str] | None = None) -> int:
    """Measures and writes the page."""
    parser = argparse.ArgumentParser(prog="PYTHONPATH=tests python -m lab.arithmetic.measure", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="functions to be measured (all)")
    parser.add_argument("--jobs", type=int, default=0, help="processes at a time (one per processor)")
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(argv)
    unknown = set(options.names) - CATALOGUE.keys()
    if unknown:
        parser.error(f"no function named {', '.join(sorted(unknown))}; there are {', '.join(CATALOGUE)}")
    earlier = options.page.read_text() if options.page.exists() else ""
    options.page.write_text(document(options.names or list(CATALOGUE), earlier, options.jobs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
