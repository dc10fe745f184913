from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

_Words = npt.NDArray[np.uint32]

def isa() -> str: ...
def isas() -> list[str]: ...
def set_isa(name: str) -> None: ...
def self_test_words() -> bytes: ...
def checksums(arrays: Sequence[_Words], threads: int = 1) -> list[int]: ...  # tell changes, not forgeries
def program_values(program: bytes, inputs: _Words, results: _Words, lanes: int) -> None: ...

class MalformedError(ValueError): ...

class Node:
    def __init__(self, descriptor: bytes) -> None: ...
    @property
    def numel(self) -> int: ...
    @property
    def operand_sizes(self) -> list[int]: ...
    def run(self, step: int, out: _Words, operands: Sequence[_Words], threads: int = 1) -> None: ...

class Element:
    def __init__(self, descriptor: bytes, number: int) -> None: ...
    def accumulators(
        self,
        step: int,
        operands: Sequence[_Words],
        begin: int,
        accumulator: int,
        ends: Sequence[int],
        out: _Words,
    ) -> None: ...
    def results(self, step: int, operands: Sequence[_Words], term: int, accumulator: int, out: _Words) -> None: ...

class Step:
    def __init__(
        self, descriptors: Sequence[bytes], state_sizes: Sequence[int], constant_sizes: Sequence[int]
    ) -> None: ...
    def run(
        self,
        step: int,
        state: Sequence[_Words],
        constants: Sequence[_Words],
        outputs: Sequence[_Words],
        threads: int = 1,
    ) -> None: ...
    def keep(self, nodes: Sequence[int], all_nodes: bool = False, least_group_bytes: int = ...) -> None: ...
    def watch(
        self,
        step: int,
        state: Sequence[_Words],
        constants: Sequence[_Words],
        results: Sequence[_Words],
        seen: Callable[[int, memoryview], None],
        threads: int = 1,
    ) -> None: ...
    def advance(
        self,
        step: int,
        state: Sequence[_Words],
        constants: Sequence[_Words],
        results: Sequence[_Words],
        threads: int = 1,
    ) -> None: ...
    def write_over(self, slots: Sequence[int]) -> list[bool]: ...
    def begin(
        self,
        step: int,
        state: Sequence[_Words],
        constants: Sequence[_Words],
        results: Sequence[_Words],
        threads: int = 1,
    ) -> None: ...
    def finish(
        self,
        step: int,
        state: Sequence[_Words],
        constants: Sequence[_Words],
        results: Sequence[_Words],
        threads: int = 1,
    ) -> None: ...
    @property
    def arena_words(self) -> int: ...
