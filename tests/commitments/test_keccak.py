"""keccak-256 against published digests and two other implementations."""

import random
from collections.abc import Iterator

import pytest
import sha3
from eth_hash.auto import keccak as eth_keccak

from pol.commitments import _hashing
from pol.commitments.keccak import keccak256


@pytest.fixture(params=_hashing.isas())
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    before = _hashing.isa()
    _hashing.set_isa(request.param)
    yield request.param
    _hashing.set_isa(before)


@pytest.mark.parametrize(
    ("message", "digest"),
    [
        (b"", "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"),
        (b"abc", "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45"),
        (b"testing", "5f16f4c7f149ac4f9510d9cf8cf384038ad348b3bcdc01915f95de12df9d1b02"),
        (b"transfer(address,uint256)", "a9059cbb2ab09eb219583f4a59a5d0623ade346d962bcd4e46b11da047c9049b"),
    ],
)
def test_published_digests(isa: str, message: bytes, digest: str) -> None:
    assert keccak256(message).hex() == digest


def test_every_length_around_the_block_boundaries(isa: str) -> None:
    source = random.Random(4)
    for size in [*range(420), 1359, 1360, 1361, 10_000]:
        message = source.randbytes(size)
        assert keccak256(message) == sha3.keccak_256(message).digest() == eth_keccak(message)


def test_is_not_the_standardised_sha3() -> None:
    assert keccak256(b"abc") != sha3.sha3_256(b"abc").digest()


def test_views_of_memory_are_accepted_and_text_is_not() -> None:
    assert _hashing.keccak256(memoryview(b"xabcx")[1:4]) == keccak256(b"abc")
    with pytest.raises(TypeError):
        _hashing.keccak256("abc")  # type: ignore[arg-type]  # text has no bytes of its own
