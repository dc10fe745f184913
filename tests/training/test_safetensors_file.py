"""Headers of strangers' safetensors files: refused in words, or read as the safetensors package reads them.

Checkpoints hold tensors and nothing else, in one encoding.
"""

import json
import random
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save

from pol.arithmetic.primitives import Words
from pol.errors import EvidenceError, OperationalError, PolError, ProtocolError
from pol.graph.tensor_type import DType, TensorType
from pol.roles.party.kept_store import KeptStore
from pol.training.storage.party_database import PartyDatabase
from pol.training.storage.safetensors_format import parse_header
from pol.training.storage.store import Store
from pol.training.storage.tensor_folder import SafetensorsFile
from pol.training.task.task_tensors import decode, encode, load, pieces

pytestmark = pytest.mark.rules

GOOD: dict[str, Any] = {
    "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
    "b": {"dtype": "U8", "shape": [], "data_offsets": [8, 9]},
    "c": {"dtype": "I64", "shape": [0, 3], "data_offsets": [9, 9]},
}


def header(**changes: Any) -> bytes:
    return json.dumps(GOOD | changes).encode()


def tensor(shape: object = (2,), offsets: object = (0, 8), dtype: object = "F32", **more: object) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets, **more}


def test_a_header_is_read() -> None:
    types, offsets, metadata = parse_header(header(__metadata__={"format": "pt"}) + b"   ", 9, "a file")
    assert [(n, t.element.name, t.shape) for n, t in types.items()] == [
        ("a", "F32", (2,)),
        ("b", "U8", ()),
        ("c", "I64", (0, 3)),
    ]
    assert offsets == {"a": (0, 8), "b": (8, 9), "c": (9, 9)}
    assert metadata == {"format": "pt"}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "doesn't begin with"),
        (b" " + header(), "doesn't begin with"),
        (b"{", "isn't valid JSON"),
        (b'{"a": ' * 100, "nested deeper than 64"),
        (b'{"\xff": {}}', "isn't valid JSON"),
        (header().replace(b'"b"', b'"a"'), "the key 'a' stands there twice"),
        (header().replace(b'"shape": []', b'"shape": [], "shape": []'), "the key 'shape' stands there twice"),
        (header(__metadata__={"format": 1}), "isn't an object of texts"),
        (header(__metadata__=[]), "isn't an object of texts"),
        (header(a=tensor(more=1)), "has the members"),
        (header(a=[]), "isn't a JSON object"),
        (header(a=tensor(dtype="F4")), "unknown element type 'F4'"),
        (header(a=tensor(shape=[2.0])), "an array of integers"),
        (header(a=tensor(shape=[True, 2])), "an array of integers"),
        (header(a=tensor(shape=[-2])), "not in 0 .. 2"),
        (header(a=tensor(shape=[1 << 31, 1 << 31])), "more than 2.40 bytes"),
        (header(a=tensor(shape=[1 << 31, 1 << 31, 0])), "more than 2.40 bytes"),
        (header(a=tensor(shape=[1] * 33)), "more than 32 dimensions"),
        (header(a=tensor(shape=[3])), "12 bytes by its type, 8 by its offsets"),
        (header(a=tensor(offsets=[8, 0])), "where it begins and where it ends"),
        (header(a=tensor(offsets=[-8, 0])), "where it begins and where it ends"),
        (header(a=tensor(offsets=[0, 8, 9])), "where it begins and where it ends"),
        (header(b=tensor(shape=[], dtype="U8", offsets=[7, 8])), "an overlap at tensor b"),
        (header(b=tensor(shape=[], dtype="U8", offsets=[10, 11])), "a hole before"),
        (header(a=tensor(shape=[0], offsets=[0, 0])), "a hole before tensor b"),
        (header(d=tensor(shape=[1], dtype="U8", offsets=[9, 10])), "end at byte 10 of 9"),
        (header(**{"": tensor(shape=[0], offsets=[9, 9])}), "expected 1 to 1024"),
        (header(**{"x\n": tensor(shape=[0], offsets=[9, 9])}), "can't be printed"),
        (header(**{"\ud800": tensor(shape=[0], offsets=[9, 9])}), "isn't valid Unicode"),
        (header(**{"n" * 2000: tensor(shape=[0], offsets=[9, 9])}), "has 2000 bytes"),
    ],
)
def test_a_bad_header_is_refused_in_words(data: bytes, problem: str) -> None:
    with pytest.raises(ProtocolError, match=problem):
        parse_header(data, 9, "a file")


@pytest.mark.parametrize("length", [1, 1 << 20, 100_000_001, 1 << 63, (1 << 64) - 1])
def test_a_length_that_the_file_does_not_have(tmp_path: Path, length: int) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(length.to_bytes(8, "little"))
    with pytest.raises(ProtocolError, match=f"a header of {length} bytes"):
        SafetensorsFile(path)
    path.write_bytes(b"1234567")
    with pytest.raises(ProtocolError, match="has 7 bytes"):
        SafetensorsFile(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 1 << 66) | st.floats() | st.sampled_from(["F32", "U8", "a", ""]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
TENSOR = st.fixed_dictionaries(
    {
        "dtype": st.sampled_from(["F32", "U8", "I64", "BOOL", "F4", "C64"]) | JSON,
        "shape": st.lists(st.integers(0, 4), max_size=3) | JSON,
        "data_offsets": st.lists(st.integers(0, 40), min_size=2, max_size=2) | JSON,
    }
)


@given(st.dictionaries(st.text(max_size=3), TENSOR | JSON, max_size=4), st.integers(0, 40))
def test_nothing_but_our_own_error_comes_out(document: dict[str, Any], size: int) -> None:
    try:
        types, offsets, _ = parse_header(json.dumps(document).encode(), size, "a file")
    except PolError:
        return
    assert sum(type_.nbytes for type_ in types.values()) == size
    assert offsets.keys() == types.keys()


def test_what_is_accepted_is_what_the_safetensors_package_reads(tmp_path: Path) -> None:
    """Valid files with some bytes changed: if ours takes one, the package does, and gives the same bytes."""
    taken = sum(is_read_alike(tmp_path / "x.safetensors", seed) for seed in range(600))
    assert 100 < taken < 500


def is_read_alike(path: Path, seed: int) -> bool:
    draw = random.Random(seed)
    names = ["weight", "bias", "mask", "scale"][: draw.randint(1, 4)]
    kinds = ["<f4", "<f2", "<i8", "|u1", "<u2"]
    shapes = [tuple(draw.randint(0, 4) for _ in range(draw.randint(0, 3))) for _ in names]
    values = {name: np.zeros(shape, draw.choice(kinds)) for name, shape in zip(names, shapes, strict=True)}
    data = bytearray(save(values, metadata={"format": "np"} if draw.random() < 0.5 else None))
    end = 8 + int.from_bytes(data[:8], "little")
    for _ in range(draw.randint(0, 2)):
        digits = [i for i in range(8, end) if chr(data[i]).isdigit()]
        at = draw.choice(digits) if draw.random() < 0.7 else draw.randrange(min(len(data), end + 8))
        data[at] = draw.choice(b'0123456789"{}[],: abF') if at >= 8 else draw.randrange(256)
    path.unlink(missing_ok=True)  # the file before is still mapped
    path.write_bytes(data)
    try:
        found = SafetensorsFile(path)
        ours = {name: found.array(name) for name in found.types}
    except PolError:
        return False
    theirs = dict(safetensors.deserialize(bytes(data)))
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        assert bytes(array.data) == bytes(theirs[name]["data"])
        assert list(array.type.shape) == theirs[name]["shape"]
        assert array.type.element.name == theirs[name]["dtype"]
    return True


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
    reader = store if folder is None else KeptStore(store.url, PartyDatabase(tmp_path / folder))
    tracemalloc.start()
    try:
        found = load(reader, digest, names, types)
        assert tracemalloc.get_traced_memory()[1] < 1.4 * (20 << 20)
    finally:
        tracemalloc.stop()
    assert all(np.array_equal(a, b) for a, b in zip(found, words, strict=True))
    if folder is not None:
        (tmp_path / folder / "evidence" / digest[:2] / digest).write_bytes(b"damaged")
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


def test_metadata_trailing_bytes_and_a_double_are_refused() -> None:
    data = encode(NAMES, TYPES, tensors())
    double = {"weight": {"dtype": "F64", "shape": [1, 3], "data_offsets": [0, 24]}}
    for changed in (with_header(data, {"__metadata__": {"author": "x"}}), data + b"\0", with_header(data, double)):
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
