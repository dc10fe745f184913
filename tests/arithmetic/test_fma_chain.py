"""Chains of fused multiplications and additions on an EVM, in both builds: repeated fma, whatever is in them."""

from collections.abc import Iterator

import numpy as np
import pytest
from web3.contract import Contract

from anvil_node import anvil_node
from lab.arithmetic.vector_files import SEED
from pol.arithmetic.primitives import Op, Words, apply
from solidity import deploy

HARNESS = "tests/forge/arithmetic/ArithmeticHarness.sol"
UNLIMITED = 10**12
CHAINS = 400
SIGN = 0x80000000
ONE, BELOW_TWO, INF = 0x3F800000, 0x3FFF0000, 0x7F800000
SPECIAL = np.array(
    [0, 1, 0x7FFFFF, 0x800000, 0x3F800000, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x7F800001, 0x25FFFFFF, 0x26000000],
    np.uint32,
)
CHOSEN = np.array(
    [
        *(1 << bit for bit in range(32)),
        *(0x101, 0xFFFF, 0x01010000, 0x10001, 0x18001, 0x28003, 0x30002, 0x80008001, 0x8000C000),
        *(0xFFFFFF1F, 0xFFFF1FFF, INF, INF | SIGN),
    ],
    np.uint32,
)
"""What looks like zero or finite if bytes or halves are swapped wrongly."""


@pytest.fixture(scope="module", params=[("default", "prague"), ("osaka", "osaka")], ids=lambda build: build[1])
def court(request: pytest.FixtureRequest) -> Iterator[Contract]:
    profile, hardfork = request.param
    with anvil_node("--gas-limit", str(UNLIMITED), "--no-request-size-limit", hardfork=hardfork) as url:
        yield deploy(url, HARNESS, "ArithmeticHarness", profile)


def expected(starts: Words, a: Words, b: Words) -> Words:
    acc = starts
    for k in range(a.shape[1]):
        acc = apply(Op.FFMA, a[:, k], b[:, k], acc)
    return acc


def normal(rng: np.random.Generator, count: int, scale: float = 1.0) -> Words:
    return (rng.standard_normal((CHAINS, count)) * scale).astype(np.float32).view(np.uint32)


def any_words(rng: np.random.Generator, count: int) -> Words:
    return rng.integers(0, 1 << 32, (CHAINS, count), dtype=np.uint32)


def spread(rng: np.random.Generator, count: int) -> Words:
    """Finite numbers with fields around the ends of the window."""
    field = rng.choice([1, 75, 76, 77, 100, 126, 127, 150, 164, 165, 166, 200, 253], (CHAINS, count)).astype(np.uint32)
    return field << 23 | fractions(rng, count) | signs(rng, count)


def short(rng: np.random.Generator, count: int) -> Words:
    """One or two bits and close exponents: exact ties at half a unit, and sums that cancel."""
    field = rng.integers(115, 140, (CHAINS, count)).astype(np.uint32)
    return field << 23 | (1 << rng.integers(0, 23, (CHAINS, count))).astype(np.uint32) | signs(rng, count)


def fractions(rng: np.random.Generator, count: int) -> Words:
    return rng.integers(0, 1 << 23, (CHAINS, count), dtype=np.uint32)


def signs(rng: np.random.Generator, count: int) -> Words:
    return rng.integers(0, 2, (CHAINS, count)).astype(np.uint32) << 31


def ties(rng: np.random.Generator, count: int) -> tuple[Words, Words, Words]:
    """Whole numbers of 24 bits, plus and minus halves and quarters."""
    start = np.uint32(150 << 23) | fractions(rng, 1)[:, 0]
    a = rng.choice(np.array([0.25, 0.5, 0.5, 1, 1.5], np.float32), (CHAINS, count)).view(np.uint32)
    return start, a | signs(rng, count), np.full((CHAINS, count), ONE, np.uint32)


def subnormal(rng: np.random.Generator, count: int) -> Words:
    return fractions(rng, count) | signs(rng, count)


def cancelling(rng: np.random.Generator, count: int) -> tuple[Words, Words]:
    """Every second product is the opposite of the one before it, sometimes a last place apart."""
    a, b = normal(rng, count), normal(rng, count)
    nudge = rng.integers(0, 2, a[:, 1::2].shape, dtype=np.uint32)
    a[:, 1::2] = (a[:, 0::2][:, : a[:, 1::2].shape[1]] ^ SIGN) + nudge
    b[:, 1::2] = b[:, 0::2][:, : b[:, 1::2].shape[1]]
    return a, b


def sprinkled(rng: np.random.Generator, words: Words, share: float) -> Words:
    return np.where(
        rng.random(words.shape) < share, rng.choice(SPECIAL, words.shape) | signs(rng, words.shape[1]), words
    )


def with_zeros(rng: np.random.Generator, words: Words, share: float) -> Words:
    return np.where(rng.random(words.shape) < share, signs(rng, words.shape[1]), words)


def sparse(rng: np.random.Generator, count: int) -> Words:
    """At most three bits: subnormal and extreme numbers, and words of which a part looks like another's."""
    bits = 1 << rng.integers(0, 32, (3, CHAINS, count))
    return np.bitwise_or.reduce(bits, axis=0).astype(np.uint32)


def chosen(count: int) -> tuple[Words, Words]:
    """One special word at every place of a block: NaN and infinity among numbers below 2, infinity times zero, others
    among zeros."""
    a, b = np.full((2, CHAINS, count), BELOW_TWO, np.uint32)
    chain = np.arange(CHAINS)
    words = CHOSEN[chain % len(CHOSEN)]
    special = words & ~np.uint32(SIGN) >= INF
    a[~special] = 0
    place = chain * count // CHAINS
    a[chain, place] = words
    b[chain, place] = np.where(words & ~np.uint32(SIGN) == INF, 0, BELOW_TWO)
    return a, b


def below_the_grid(rng: np.random.Generator, count: int) -> tuple[Words, Words, Words]:
    """A product of two numbers just too small, and its opposite, rounded: what is left is no multiple of 2^-149."""
    x, y = (75 << 23 | fractions(rng, 1)[:, 0] | 1 for _ in range(2))
    start = (-x.view(np.float32) * y.view(np.float32)).view(np.uint32)
    chain = np.arange(CHAINS)
    a, b = np.zeros((2, CHAINS, count), np.uint32)
    a[chain, -1 - chain % count], b[chain, -1 - chain % count] = x, y
    return start, a, b


def negative_zeros(rng: np.random.Generator, count: int) -> tuple[Words, Words]:
    """Products that are -0, of numbers below 0 or -0 and others above 0 or +0; one in fifty is NaN or +0."""
    a, b = (normal(rng, count) & ~np.uint32(SIGN) for _ in range(2))
    which = rng.random(a.shape)
    a = np.where(which < 0.5, 0, np.where(which < 0.51, 0x7F800000, a)) ^ np.uint32(SIGN)
    a = np.where(which > 0.99, 0, a)
    return a.astype(np.uint32), np.where(which < 0.5, b, 0).astype(np.uint32)


def zero_products(rng: np.random.Generator, count: int) -> tuple[Words, Words]:
    """Nine products of ten have one factor that is zero, and a few of those another one that is infinite or NaN."""
    a, b = sprinkled(rng, normal(rng, count), 0.05), sprinkled(rng, normal(rng, count), 0.05)
    which = rng.random(a.shape)
    return np.where(which < 0.45, signs(rng, count), a), np.where(which > 0.55, signs(rng, count), b)


def window(rng: np.random.Generator, count: int) -> tuple[Words, Words]:
    """Products of fields with sums at both ends and far beyond the upper one; most of them are small."""
    total = rng.choice([152, 160, 325, 326, 360, 442, 443, 508], (CHAINS, count), p=[0.4, 0.48] + [0.02] * 6)
    field = rng.integers(np.maximum(76, total - 254), np.minimum(254, total - 76) + 1)
    a, b = (x.astype(np.uint32) << 23 | fractions(rng, count) for x in (field, total - field))
    return a | signs(rng, count), b | signs(rng, count)


def blocks(kind: str, rng: np.random.Generator, count: int) -> tuple[Words, Words, Words]:
    """Starts and operands."""
    start = normal(rng, 1)[:, 0]
    match kind:
        case "normal":
            return start, normal(rng, count), normal(rng, count)
        case "half zeros":
            return 0 * start, with_zeros(rng, normal(rng, count), 0.5), normal(rng, count)
        case "all zeros":
            return signs(rng, 1)[:, 0], with_zeros(rng, normal(rng, count), 1.0), signs(rng, count)
        case "cancelling":
            return 0 * start, *cancelling(rng, count)
        case "short":
            return short(rng, 1)[:, 0], short(rng, count), short(rng, count)
        case "ties":
            return ties(rng, count)
        case "spread":
            return spread(rng, 1)[:, 0], spread(rng, count), spread(rng, count)
        case "grid":  # products about the least subnormal numbers, beside starts there
            return subnormal(rng, 1)[:, 0], normal(rng, count, 1e-15), normal(rng, count, 1e-15)
        case "subnormal":
            return subnormal(rng, 1)[:, 0], subnormal(rng, count), normal(rng, count)
        case "large":
            return normal(rng, 1, 1e23)[:, 0], normal(rng, count, 1e11), normal(rng, count, 1e12)
        case "overflow":
            return normal(rng, 1, 1e37)[:, 0], normal(rng, count, 1e18), normal(rng, count, 1e19)
        case "few":  # finite numbers of all sizes, a product or two in a block
            fields = rng.integers(1, 255, (2, CHAINS, count)).astype(np.uint32) << 23
            a, b = (field | fractions(rng, count) | signs(rng, count) for field in fields)
            return 0 * start, with_zeros(rng, a, 0.85), b
        case "sparse":
            return sparse(rng, 1)[:, 0], with_zeros(rng, sparse(rng, count), 0.5), sparse(rng, count)
        case "below the grid":
            return below_the_grid(rng, count)
        case "chosen":
            return 0 * chosen(1)[0][:, 0], *chosen(count)
        case "negative zeros":
            return signs(rng, 1)[:, 0], *negative_zeros(rng, count)
        case "zero products":
            return start, *zero_products(rng, count)
        case "window":
            return normal(rng, 1, 1e-15)[:, 0], *window(rng, count)
        case "special":
            return (
                sprinkled(rng, normal(rng, 1), 0.5)[:, 0],
                sprinkled(rng, normal(rng, count), 0.05),
                normal(rng, count),
            )
        case _:
            return any_words(rng, 1)[:, 0], any_words(rng, count), any_words(rng, count)


KINDS = (
    "normal", "half zeros", "all zeros", "cancelling", "short", "ties", "spread", "grid", "subnormal", "large",
    "overflow", "few", "sparse", "chosen", "below the grid", "negative zeros", "zero products", "window", "special",
    "any",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_a_chain_is_repeated_fma(court: Contract, kind: str) -> None:
    rng = np.random.default_rng(SEED)
    for count in (8, 64, int(rng.integers(1, 64))):
        starts, a, b = blocks(kind, rng, count)
        packed = (starts.astype(">u4").tobytes(), a.astype("<u4").tobytes(), b.astype("<u4").tobytes())
        output = court.functions.chainBatch(*packed, count).call({"gas": UNLIMITED})
        actual = np.frombuffer(output, ">u4").astype(np.uint32)
        wrong = np.flatnonzero(actual != expected(starts, a, b))
        assert len(actual) == CHAINS
        assert not len(wrong), (count, len(wrong), [(hex(starts[i]), a[i], b[i], hex(actual[i])) for i in wrong[:2]])


def test_chains_of_every_length(court: Contract) -> None:
    rng = np.random.default_rng(SEED)
    for count in (*range(1, 65), 65, 72, 100, 129, 200):
        a, b = (sprinkled(rng, normal(rng, count), 0.02)[:1] for _ in range(2))
        start = np.array([0x3F800000], np.uint32)
        call = court.functions.chain(int(start[0]), a.astype("<u4").tobytes(), b.astype("<u4").tobytes())
        assert call.call({"gas": UNLIMITED}) == int(expected(start, a, b)[0])


def test_the_comparison_notices_another_order(court: Contract) -> None:
    rng = np.random.default_rng(SEED)
    starts, a, b = blocks("normal", rng, 64)
    packed = (starts.astype(">u4").tobytes(), a[:, ::-1].astype("<u4").tobytes(), b[:, ::-1].astype("<u4").tobytes())
    output = court.functions.chainBatch(*packed, 64).call({"gas": UNLIMITED})
    assert (np.frombuffer(output, ">u4") != expected(starts, a, b)).any()
