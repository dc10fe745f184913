"""Builds the kernels with any compiler, without Python, and runs recorded programs with them."""

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ended_process import ran
from kernel_primitives import program_values
from pol.arithmetic.primitives import Words
from pol.arithmetic.scalar_program import ScalarProgram
from pol.commitments.keccak import keccak256
from pol.execution.cpu import SELF_TEST_DIGEST, CpuExecutor
from pol.execution.reference import next_state
from pol.graph.step_program import StepProgram

PACKAGE = Path(__file__).parents[1] / "pol"
RUNNER = Path(__file__).parent / "execution" / "portable" / "runner.cpp"


@dataclass(frozen=True)
class Steps:
    """A step program with what it starts from: `count` steps from step `first`."""

    program: StepProgram
    state: Sequence[Words]
    constants: Sequence[Words]
    first: int
    count: int


@dataclass(frozen=True)
class Recording:
    """Scalar programs with their inputs and step programs, to be run elsewhere."""

    programs: Sequence[tuple[ScalarProgram, Sequence[Words]]]
    steps: Sequence[Steps]

    def write(self, path: Path) -> None:
        """Writes what runner.cpp reads."""
        words = [np.array([len(self.programs), len(self.steps)], np.uint32)]

        def add(array: Words) -> None:
            words.extend([np.array([array.size], np.uint32), array.ravel()])

        def add_bytes(data: bytes) -> None:
            add(np.frombuffer(data, np.uint8).astype(np.uint32))

        def add_all(arrays: Sequence[Words]) -> None:
            words.append(np.array([len(arrays)], np.uint32))
            for array in arrays:
                add(array)

        for program, inputs in self.programs:
            add_bytes(program.encode())
            add_all(inputs)
        for steps in self.steps:
            nodes = steps.program.nodes
            words.append(np.array([len(nodes)], np.uint32))
            for node in nodes:
                add_bytes(node.encode())
            add(np.array([node.type.numel for node in nodes], np.uint32))
            add(np.array([slot.producer for slot in steps.program.slots], np.uint32))
            add_all(steps.state)
            add_all(steps.constants)
            words.append(np.array([steps.first, steps.count], np.uint32))
        path.write_bytes(np.concatenate(words).astype("<u4").tobytes())

    def expected(self, threads: int = 1) -> list[str]:
        """The lines that every build of runner.cpp has to print, computed by the kernels of this Python."""
        lines = [f"self-test {SELF_TEST_DIGEST.hex()}"]
        for i, (program, inputs) in enumerate(self.programs):
            lines.append(f"program {i} {digest([program_values(program, inputs)])}")
        for i, steps in enumerate(self.steps):
            executor = CpuExecutor(steps.program, steps.constants, threads)
            state = list(steps.state)
            for step in range(steps.first, steps.first + steps.count):
                outputs = executor.run(state, step)
                state = next_state(steps.program, outputs)
                lines.append(f"step {i} {step} {digest(outputs)} {digest(state)}")
        return lines


def digest(arrays: Sequence[Words]) -> str:
    """keccak-256, in hex, of the words of the arrays one after another, little-endian."""
    return keccak256(b"".join(array.astype("<u4").tobytes() for array in arrays)).hex()


def build(compiler: str, directory: Path, *flags: str, isas: Sequence[str] = ("baseline", "v3", "v4")) -> Path:
    """Builds runner.cpp with the sources of both extension modules for all instruction sets of its processor.

    The flags are those of native/CMakeLists.txt and `flags`. Raises AssertionError with the compiler's words.
    """
    text = (PACKAGE / "native" / "CMakeLists.txt").read_text()
    common = [
        *_found(r"set\(arithmetic_flags ([^)]*)\)", text).split(),
        *flags,
        "-std=c++17",
        "-pthread",
        f"-I{PACKAGE}",
    ]
    march = {name: rest.split() for name, rest in re.findall(r"set\((v\d)_flags ([^)]*)\)", text)}
    once = [RUNNER, *(PACKAGE / "native" / name for name in _found(r"set\(shared_sources ([^)]*)\)", text).split())]
    objects = []
    modules = re.findall(r"add_extension\(\w+ PACKAGE (\w+) FOLDER (\w+)\s+PER_ISA\s([^)]*?)\sONCE\s([^)]*)\)", text)
    assert len(modules) == 2, "native/CMakeLists.txt has changed"
    for package, folder, per_isa, rest in modules:
        sources = PACKAGE / package / folder
        common.append(f"-I{sources}")
        once += [sources / name for name in rest.split() if name != "module.cpp"]
        for isa in isas:
            for name in per_isa.split():
                target = directory / f"{isa}-{name.replace('/', '-')}.o"
                options = [f"-DPOL_ISA={isa}", *march.get(isa, [])]
                _compile(compiler, *common, *options, "-c", sources / name, "-o", target)
                objects.append(target)
    _compile(compiler, *common, *once, *objects, "-o", directory / "runner")
    return directory / "runner"


def run(command: Sequence[str | Path], recording: Path, isa: str, threads: int = 1) -> list[str]:
    """The lines that a build prints; AssertionError with its words if it fails."""
    done = ran([*command, recording, isa, str(threads)])
    return done.stdout.splitlines()


def tool(name: str) -> str | None:
    """Path of a program of this machine."""
    return shutil.which(name)


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    assert match, f"native/CMakeLists.txt has changed: no {pattern}"
    return match[1]


def _compile(compiler: str, *arguments: str | Path) -> None:
    ran([compiler, *arguments])
