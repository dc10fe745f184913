"""The hashes of contracts, against the encoder of eth-abi."""

import pytest
from eth_abi.abi import encode
from hypothesis import given, settings
from hypothesis import strategies as st

from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError
from pol.incentives.abi import abi_hash

pytestmark = pytest.mark.rules

WORDS = st.one_of(
    st.tuples(st.just("uint256"), st.integers(0, (1 << 256) - 1)),
    st.tuples(st.just("bytes32"), st.binary(min_size=32, max_size=32)),
    st.tuples(st.just("address"), st.binary(min_size=20, max_size=20)),
    st.tuples(st.just("string"), st.text(max_size=70)),
)


@settings(max_examples=40)
@given(st.lists(WORDS, max_size=8))
def test_encoder_is_that_of_contracts(values: list[tuple[str, int | bytes | str]]) -> None:
    encoded = encode([kind for kind, _ in values], [value for _, value in values])
    assert abi_hash(*(value for _, value in values)) == keccak256(encoded)


@pytest.mark.parametrize("value", [-1, 1 << 256, b"", b"x" * 31, b"x" * 33])
def test_what_is_no_word_is_refused(value: int | bytes) -> None:
    with pytest.raises(ProtocolError, match=r"256 bits|neither an address"):
        abi_hash(value)
