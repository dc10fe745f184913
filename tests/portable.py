"""Builds the kernels with any compiler, without Python, and runs recorded programs with them."""

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pol.arithmetic.primitives import Words
from pol.arithmetic.scalar_program import ScalarProgram
from pol.commitments.keccak import keccak256
from pol.execution.cpu import SELF_TEST_DIGEST, CpuExecutor, program_values
from pol.execution.reference import next_state
from pol.graph.step_program import StepProgram

KERNELS = Path(__file__).parents[1] / "pol" / "execution" / "kernels"
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


def build(compiler: str, directory: Path, isa: str, *flags: str) -> Path:
    """Builds runner.cpp with the kernels' sources for one instruction set ("baseline", "v3" or "v4").

    The flags are those of kernels/CMakeLists.txt and `flags`. Raises AssertionError with the compiler's words.
    """
    text = (KERNELS / "CMakeLists.txt").read_text()
    common = _found(r"set\(arithmetic_flags ([^)]*)\)", text).split()
    per_isa = _found(r"OBJECT ([\w. ]+)\)", text).split()
    others = [
        name for name in _found(r"nanobind_add_module\([^)]*?NOMINSIZE([^)$]*)", text).split() if name != "module.cpp"
    ]
    march = {"baseline": [], **{name: rest.split() for name, rest in re.findall(r"add_isa\((v\d) ([^)]*)\)", text)}}
    target = directory / "runner"
    objects = []
    for isa_of_file in dict.fromkeys(["baseline", isa]):
        for name in per_isa:
            output = directory / f"{isa_of_file}-{name}.o"
            options = [f"-DPOL_ISA={isa_of_file}", *march[isa_of_file]]
            _compile(compiler, *common, *flags, *options, "-std=c++17", "-c", str(KERNELS / name), "-o", str(output))
            objects.append(str(output))
    has = [f"-DPOL_HAS_ISA_{name}" for name in dict.fromkeys(["baseline", isa])]
    sources = [str(RUNNER), *(str(KERNELS / name) for name in others)]
    options = [*common, *flags, *has, "-std=c++17", "-pthread", "-I", str(KERNELS)]
    _compile(compiler, *options, *sources, *objects, "-o", str(target))
    return target


def run(command: Sequence[str | Path], recording: Path, isa: str, threads: int = 1) -> list[str]:
    """The lines that a build prints; AssertionError with its words if it fails."""
    done = subprocess.run([*command, recording, isa, str(threads)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def tool(name: str) -> str | None:
    """Path of a program of this machine."""
    return shutil.which(name)


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    assert match, f"kernels/CMakeLists.txt has changed: no {pattern}"
    return match[1]


def _compile(compiler: str, *arguments: str) -> None:
    done = subprocess.run([compiler, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
