"""Checkpoints hold tensors and nothing else, in one encoding."""

import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save

from pol.arithmetic.primitives import Words
from pol.errors import EvidenceError, OperationalError, ProtocolError
from pol.graph.tensor_type import DType, TensorType
from pol.training.storage.kept_store import KeptStore
from pol.training.storage.store import Store
from pol.training.task.task_tensors import decode, encode, load, pieces

pytestmark = pytest.mark.rules

NAMES = ("weight", "step", "momentum")
SHAPE = st.lists(st.integers(1, 3), max_size=3).map(tuple)
TYPES = (TensorType(DType.F32, (2, 3)), TensorType(DType.I32, ()), TensorType(DType.F32, (5,)))


def tensors(seed: int = 0) -> list[Words]:
    random = np.random.default_rng(seed)
    return [np.asarray(random.integers(0, 2**32, t.shape, np.uint32)) for t in TYPES]


def test_every_bit_survives() -> None:
    words = tensors()
    words[0][0] = [0x7F800001, 0xFFC12345, 0x80000000]  # signalling NaN, NaN with a payload, -0
    data = encode(NAMES, TYPES, words)
    back = decode(data, NAMES, TYPES)
    for before, after in zip(words, back, strict=True):
        assert after.dtype == np.uint32
        assert after.shape == before.shape
        assert np.array_equal(before, after)
    assert encode(NAMES, TYPES, back) == data


@pytest.mark.parametrize("folder", ["kept", None])
def test_a_file_in_a_store_is_read_into_its_tensors(folder: str | None, tmp_path: Path) -> None:
    """Not beside them. A damaged copy of one's own is replaced; what isn't the file is said as `decode` says it."""
    store = Store(f"file://{tmp_path}/store")
    names, types = ("w", "step", "none"), (TensorType(DType.F32, (5 << 20,)), TensorType(DType.I32, ()), TYPES[2])
    words = [np.arange(5 << 20, dtype=np.uint32), np.array(7, np.uint32), np.ones(5, np.uint32)]
    digest = store.put_pieces(pieces(names, types, words))
    assert digest == store.put(encode(names, types, words))
    reader = store if folder is None else KeptStore(store.url, tmp_path / folder)
    tracemalloc.start()
    try:
        found = load(reader, digest, names, types)
        assert tracemalloc.get_traced_memory()[1] < 1.4 * (20 << 20)
    finally:
        tracemalloc.stop()
    assert all(np.array_equal(a, b) for a, b in zip(found, words, strict=True))
    if folder is not None:
        (tmp_path / folder / digest[:2] / digest).write_bytes(b"damaged")
        assert np.array_equal(load(reader, digest, names, types)[0], words[0])
    data = encode(names, types, words)
    for changed in (data[:-1], data + b"\0", data[:8] + b" " + data[9:], b""):
        with pytest.raises(EvidenceError):
            load(reader, store.put(changed), names, types)
    with pytest.raises(OperationalError, match="0" * 64):
        load(reader, "0" * 64, names, types)


def test_the_bytes_depend_on_the_content_only() -> None:
    words = tensors()
    strided = [np.asfortranarray(words[0]), words[1], np.repeat(words[2], 2)[::2]]
    assert encode(NAMES, TYPES, strided) == encode(NAMES, TYPES, words)


def test_every_truncation_is_refused() -> None:
    data = encode(NAMES, TYPES, tensors())
    for length in range(len(data)):
        with pytest.raises(ProtocolError):
            decode(data[:length], NAMES, TYPES)


@given(st.binary(max_size=200))
def test_garbage_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode(data, NAMES, TYPES)


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_changed_byte_changes_the_content_or_is_refused(position: int, flip: int) -> None:
    words = tensors()
    data = bytearray(encode(NAMES, TYPES, words))
    data[position % len(data)] ^= flip
    try:
        back = decode(bytes(data), NAMES, TYPES)
    except ProtocolError:
        return
    assert any(not np.array_equal(a, b) for a, b in zip(words, back, strict=True))


def with_header(data: bytes, change: dict[str, object]) -> bytes:
    """The same file with entries of its header replaced."""
    size = int.from_bytes(data[:8], "little")
    header = json.dumps(json.loads(data[8 : 8 + size]) | change, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + data[8 + size :]


def test_metadata_and_trailing_bytes_are_refused() -> None:
    data = encode(NAMES, TYPES, tensors())
    for changed in (with_header(data, {"__metadata__": {"author": "x"}}), data + b"\0"):
        with pytest.raises(ProtocolError):
            decode(changed, NAMES, TYPES)


def test_other_tensors_are_refused() -> None:
    data = encode(NAMES, TYPES, tensors())
    with pytest.raises(ProtocolError, match=r"missing \['bias'\]"):
        decode(data, (*NAMES, "bias"), (*TYPES, TYPES[0]))
    with pytest.raises(ProtocolError, match=r"unexpected \['momentum'\]"):
        decode(data, NAMES[:2], TYPES[:2])
    with pytest.raises(ProtocolError, match="expected"):
        decode(data, NAMES, (TensorType(DType.F32, (3, 2)), *TYPES[1:]))
    with pytest.raises(ProtocolError, match="expected"):
        decode(data, NAMES, (TensorType(DType.I32, (2, 3)), *TYPES[1:]))


def test_a_double_is_no_word() -> None:
    data = encode(NAMES, TYPES, tensors())
    changed = with_header(data, {"weight": {"dtype": "F64", "shape": [1, 3], "data_offsets": [0, 24]}})
    with pytest.raises(ProtocolError):
        decode(changed, NAMES, TYPES)


def test_what_cannot_be_encoded() -> None:
    words = tensors()
    with pytest.raises(ProtocolError, match="repeat"):
        encode(("a", "a", "b"), TYPES, words)
    with pytest.raises(ProtocolError, match="words of shape"):
        encode(NAMES, TYPES, [words[0].T, *words[1:]])
    with pytest.raises(ProtocolError, match="no file of tensors"):
        encode(NAMES, TYPES, words[:2])


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1, max_size=6), st.tuples(st.booleans(), SHAPE)))
def test_the_bytes_are_those_of_the_safetensors_package(drawn: dict[str, tuple[bool, tuple[int, ...]]]) -> None:
    """Digests of published tasks and checkpoints are over bytes that the package wrote."""
    random = np.random.default_rng(len(drawn))
    types = [TensorType(DType.F32 if is_float else DType.I32, shape) for is_float, shape in drawn.values()]
    words = [np.asarray(random.integers(0, 2**32, type_.shape, np.uint32)) for type_ in types]
    storage = {DType.F32: np.float32, DType.I32: np.int32}
    theirs = {n: w.view(storage[t.dtype]) for n, t, w in zip(drawn, types, words, strict=True)}
    data = encode(tuple(drawn), types, words)
    assert data == save(theirs)
    for before, after in zip(words, decode(data, tuple(drawn), types), strict=True):
        assert np.array_equal(before, after)


def test_a_file_is_read_in_twice_its_memory() -> None:
    types = (TensorType(DType.F32, (1 << 20,)), TensorType(DType.I32, (1 << 20,)))
    data = encode(("a", "b"), types, [np.zeros(type_.shape, np.uint32) for type_ in types])
    tracemalloc.start()
    decode(data, ("a", "b"), types)
    assert tracemalloc.get_traced_memory()[1] < 1.1 * len(data)  # beside the file itself
    tracemalloc.stop()
