"""Sweeps over all 2^32 words: greatest error, order and symmetry of functions of one number.

The scalar program is written out as C++ (native.py), compiled with the machine's compiler next to its definition in
binary64 from the C library, and run on all words, a few seconds to a minute per function and core.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lab.arithmetic.native_sweep import source
from pol.arithmetic.primitives import Words
from pol.arithmetic.scalar_program import ScalarProgram
from pol.errors import OperationalError

PARTS = 64
"""Pieces of a sweep, for progress and for several processes."""

_MAGNITUDES = 1 << 31
_SOURCE = Path(__file__).with_name("sweep.cpp")
_FLAGS = ("-std=c++17", "-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")
# The C library offers its vector functions, which are good to a few units of binary64, under this name only. No other
# effect of "fast" mathematics is asked for.
_VECTOR_FUNCTIONS = "-D__FAST_MATH__"


@dataclass(frozen=True)
class Sweep:
    """What a sweep found: the greatest error in units in the last place and the first word that has it.

    Neighbouring arguments at which the function steps against its direction and the longest such step in units in the
    last place (0 without a direction); pairs x, -x at which it is not odd or not even; results that are a NaN but not
    the one NaN.
    """

    error: float
    worst: int
    steps_back: int
    furthest_back: int
    odd_breaks: int
    even_breaks: int
    foreign_nans: int


class Sweeper:
    """A compiled sweep of one function; `compiled` makes it."""

    def __init__(self, command: Path) -> None:
        self._command = command

    def results(self, words: Words) -> Words:
        """What the compiled program gives; for comparison with the interpreter."""
        run = subprocess.run(
            [self._command, "results"], input=words.astype("<u4").tobytes(), capture_output=True, check=True
        )
        return np.frombuffer(run.stdout, "<u4").astype(np.uint32)

    def sweep(self, direction: int, symmetry: str, jobs: int = 0, advance: Callable[[], None] = lambda: None) -> Sweep:
        """Goes over all words with `jobs` processes (0: one per processor); calls `advance` PARTS times.

        `direction` and `symmetry` are those of the exact function, see `Definition` in measure.py.
        """
        size = _MAGNITUDES // PARTS
        with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
            parts = []
            # A part starts with the last word of the one before, so that no step between neighbours is left out.
            for part in pool.map(
                lambda i: self.part(max(i * size - 1, 0), (i + 1) * size, direction, symmetry), range(PARTS)
            ):
                parts.append(part)
                advance()
        worst = max(parts, key=lambda part: part.error)
        return Sweep(
            worst.error,
            worst.worst,
            sum(part.steps_back for part in parts),
            max(part.furthest_back for part in parts),
            sum(part.odd_breaks for part in parts),
            sum(part.even_breaks for part in parts),
            sum(part.foreign_nans for part in parts),
        )

    def part(self, first: int, last: int, direction: int, symmetry: str) -> Sweep:
        """Goes over the words first .. last-1, at most 2^31, and their negatives."""
        mirror = {"odd": -1, "even": 1, "": 0}[symmetry]
        command = [str(argument) for argument in (self._command, first, last, direction, mirror)]
        output = subprocess.run(command, capture_output=True, check=True, text=True).stdout
        error, *rest = output.split()
        return Sweep(float(error), *map(int, rest))


@contextmanager
def compiled(program: ScalarProgram, reference: str) -> Iterator[Sweeper]:
    """A sweep of the program of one input against `reference`, a C++ expression in the binary64 number x.

    Raises OperationalError if there is no C++ compiler or it fails.
    """
    compiler = os.environ.get("CXX") or shutil.which("c++")
    if compiler is None:
        raise OperationalError("a sweep needs a C++ compiler: install one, or name it in the environment variable CXX")
    with tempfile.TemporaryDirectory(prefix="pol-sweep-") as name:
        directory = Path(name)
        (directory / "program.h").write_text(source(program))
        (directory / "reference.cpp").write_text(
            "#include <math.h>\n"
            "static inline double within(double x, double bound) {\n"
            "    return x > bound ? bound : x < -bound ? -bound : x;\n"
            "}\n"
            "void reference(const double* __restrict x_, double* __restrict y, int count) {\n"
            "    for (int j = 0; j < count; ++j) {\n"
            "        const double x = x_[j];\n"
            f"        y[j] = {reference};\n"
            "    }\n"
            "}\n"
        )
        _compile(compiler, "-I", name, "-c", str(_SOURCE), "-o", str(directory / "sweep.o"))
        _compile(
            compiler, _VECTOR_FUNCTIONS, "-c", str(directory / "reference.cpp"), "-o", str(directory / "reference.o")
        )
        _compile(compiler, str(directory / "sweep.o"), str(directory / "reference.o"), "-o", str(directory / "sweep"))
        yield Sweeper(directory / "sweep")


def _compile(compiler: str, *arguments: str) -> None:
    done = subprocess.run([compiler, *_FLAGS, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OperationalError(f"{compiler} cannot compile the sweep:\n{done.stderr}")
