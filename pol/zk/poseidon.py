"""Poseidon over the scalar field of BN254: the hash in EZKL's circuits and the one in ours (eprint 2019/458).

docs/spec/zk.md, "Hashes". Constants come from the paper's Grain generator; no table is stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from pol.zk.bn254 import R

FIELD_BITS = 254
FULL_ROUNDS = 8
WORD_BITS = 24
"""Bits of the integers of our hash, sign included: a float32 holds them exactly."""
PACKED = 10
"""Integers in one field element of our hash."""
_OFFSET = 1 << (WORD_BITS - 1)


@dataclass(frozen=True)
class Poseidon:
    """The permutation of ``width`` elements with x**5, 8 full and ``partial_rounds`` partial rounds."""

    width: int
    partial_rounds: int
    constants: tuple[tuple[int, ...], ...]
    matrix: tuple[tuple[int, ...], ...]

    def permute(self, state: Sequence[int]) -> list[int]:
        """The state after all rounds."""
        half = FULL_ROUNDS // 2
        values = list(state)
        for number, row in enumerate(self.constants):
            values = [(value + constant) % R for value, constant in zip(values, row, strict=True)]
            full = number < half or number >= half + self.partial_rounds
            values = [pow(value, 5, R) if full or place == 0 else value for place, value in enumerate(values)]
            values = [sum(a * b for a, b in zip(row, values, strict=True)) % R for row in self.matrix]
        return values


@cache
def poseidon(width: int, partial_rounds: int) -> Poseidon:
    """The permutation with the paper's constants for this width."""
    bits = _grain(width, partial_rounds)
    rounds = FULL_ROUNDS + partial_rounds
    constants = tuple(tuple(_below(bits) for _ in range(width)) for _ in range(rounds))
    while True:
        numbers = [_integer(bits) % R for _ in range(2 * width)]
        rows, columns = numbers[:width], numbers[width:]
        if len(set(numbers)) == len(numbers) and all((x + y) % R for x in rows for y in columns):
            break
    matrix = tuple(tuple(pow(x + y, -1, R) for y in columns) for x in rows)
    return Poseidon(width, partial_rounds, constants, matrix)


def packed(values: Sequence[int]) -> list[int]:
    """Signed integers of 24 bits, ten in each field element, the first one lowest; the last element is not padded.

    Raises ValueError for a larger one.
    """
    if any(not -_OFFSET <= value < _OFFSET for value in values):
        raise ValueError(f"an integer has more than {WORD_BITS} bits")
    words = [int(value) + _OFFSET for value in values]
    groups = [words[begin : begin + PACKED] for begin in range(0, len(words), PACKED)]
    return [sum(word << (WORD_BITS * place) for place, word in enumerate(group)) for group in groups]


def vector_hash(values: Sequence[int]) -> int:
    """Our hash of a vector of integers: a sponge of width 3 over `packed` that absorbs two elements at a time."""
    elements = packed(values)
    state = [0, 0, len(values)]
    permutation = poseidon(3, 57)
    for begin in range(0, len(elements), 2):
        for place, element in enumerate(elements[begin : begin + 2]):
            state[place] = (state[place] + element) % R
        state = permutation.permute(state)
    return state[0]


def permutation_table() -> bytes:
    """Constants of all rounds and the matrix of our hash, as words for the constructor of the contract `VectorHash`."""
    permutation = poseidon(3, 57)
    rows = [*permutation.constants, *permutation.matrix]
    return b"".join(number.to_bytes(32) for row in rows for number in row)


def _grain(width: int, partial_rounds: int) -> Iterator[int]:
    """Bits of the Grain generator for a prime field and x**5 (paper, appendix E)."""
    fields = (
        (1, 2),
        (0, 4),
        (FIELD_BITS, 12),
        (width, 12),
        (FULL_ROUNDS, 10),
        (partial_rounds, 10),
        ((1 << 30) - 1, 30),
    )
    state = [int(bit) for value, size in fields for bit in format(value, f"0{size}b")]

    def step() -> int:
        bit = state[62] ^ state[51] ^ state[38] ^ state[23] ^ state[13] ^ state[0]
        state.pop(0)
        state.append(bit)
        return bit

    for _ in range(160):
        step()
    while True:
        keep, bit = step(), step()
        if keep:
            yield bit


def _integer(bits: Iterator[int]) -> int:
    value = 0
    for _ in range(FIELD_BITS):
        value = value << 1 | next(bits)
    return value


def _below(bits: Iterator[int]) -> int:
    while (value := _integer(bits)) >= R:
        pass
    return value
