"""One document has one encoding."""

import sys
import tracemalloc

import pytest

from pol.commitments.canonical_json import MAX_MEMBERS, Fields, decode, encode, parse
from pol.errors import ProtocolError

pytestmark = pytest.mark.rules


def test_round_trip() -> None:
    document = {"b": [1, "x", {"y": None}], "a": 2**53 - 1, "c": True}
    assert decode(encode(document), "it") == document


@pytest.mark.parametrize(
    "data",
    [
        b"", b"[1]", b"{", b'{"a": 1}', b'{"b":1,"a":2}', b'{"a":1,"a":1}', b'{"a":1.0}', b'{"a":NaN}',
        b'{"a":9007199254740993}', b'{"a":"\xff"}', b"[" * 100_000, b'{"a":' * 65 + b"1" + b"}" * 65,
        b'{"a":1}\n',
    ],
)  # fmt: skip
def test_anything_but_the_canonical_bytes_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError, match=r"^it isn't"):
        decode(data, "it")


@pytest.mark.parametrize(
    "data",
    [
        b'\\"' * 4_000_000,
        b'"' + b'\\"' * 4_000_000,
        b'"\\' * 3_000_000,
        b'"' * 8_000_001,
        b'{"a":"' + b"\\" * 8_000_001,
        b'{"' + b'":{"' * 2_000_000,
    ],
    ids=["quoted quotes", "no end", "quotes and backslashes", "quotes", "backslashes", "keys"],
)
def test_hostile_bytes_take_linear_time(data: bytes) -> None:
    """With a square of the length these would take hours: the time limit of the test ends it."""
    with pytest.raises(ProtocolError, match=r"isn't valid JSON|more members"):
        parse(data, "it")


@pytest.mark.long
def test_members_are_counted_before_they_take_memory() -> None:
    many = b"{" + b",".join(b'"%d":0' % number for number in range(MAX_MEMBERS + 1)) + b"}"
    tracemalloc.start()
    with pytest.raises(ProtocolError, match="it has more members than any document here"):
        parse(many, "it")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < len(many)
    # Text is not counted.
    assert parse(b'{"a":"' + b":" * (MAX_MEMBERS + 1) + b'"}', "it")["a"][0] == ":"


def test_brackets_in_another_encoding_are_counted_or_refused() -> None:
    """The parser would guess UTF-16; there the byte of a quote stands within another character."""
    hidden = '["\u2200",' + "[" * 200 + "]" * 200 + "]"
    with pytest.raises(ProtocolError, match="isn't valid JSON"):
        parse(hidden.encode("utf-16-le"), "it")


def test_depth_is_refused_before_the_parser_recurses() -> None:
    """Some libraries raise the recursion limit so far that the C parser would run off its stack."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1 << 30)
    try:
        with pytest.raises(ProtocolError, match="nested"):
            decode(b"[" * 1_000_000, "it")
    finally:
        sys.setrecursionlimit(limit)
    assert decode(b'{"a":"[[[[\\"[[[["}', "it") == {"a": '[[[["[[[['}


def test_fields_are_typed() -> None:
    digest = "ab" * 32
    fields = Fields({"n": 3, "s": "x", "d": digest, "w": "12", "l": [1], "o": {"k": 1}}, "doc", "nsdwlo")
    assert fields.integer("n") == 3
    assert fields.text("s") == "x"
    assert fields.digest("d") == digest
    assert fields.hash("d") == bytes.fromhex(digest)
    assert fields.decimal("w", 64) == 12
    assert fields.items("l") == [1]
    assert fields.member("o", "k").integer("k") == 1
    for call in (
        lambda: fields.integer("s"),
        lambda: fields.integer("n", 4),
        lambda: fields.integer("n", 0, 2),
        lambda: fields.text("n"),
        lambda: fields.digest("s"),
        lambda: fields.decimal("n", 64),
        lambda: fields.decimal("s", 64),
        lambda: fields.decimal("w", 3),
        lambda: fields.items("o"),
        lambda: fields.member("o", "z"),
        lambda: fields.member("l", "z"),
    ):
        with pytest.raises(ProtocolError, match=r"doc[. ]"):
            call()


def test_true_is_no_integer_and_leading_zeros_no_decimal() -> None:
    fields = Fields({"t": True, "z": "012"}, "doc", "tz")
    with pytest.raises(ProtocolError):
        fields.integer("t")
    with pytest.raises(ProtocolError):
        fields.decimal("z", 64)


def test_bytes_have_one_form() -> None:
    fields = Fields({"a": "0aff", "u": "0AFF", "o": "abc", "s": "0a ff", "e": "", "n": 1}, "doc", "auosen")
    assert fields.octets("a") == fields.octets("a", 0, 2) == b"\x0a\xff"
    assert fields.octets("e") == fields.octets("e", 0, 256) == b""
    for name, sizes in (("u", ()), ("o", ()), ("s", ()), ("n", ()), ("a", (0, 3)), ("e", (2,))):
        with pytest.raises(ProtocolError, match=r"doc\."):
            fields.octets(name, *sizes)


def test_kind_and_version_of_a_document() -> None:
    document = {"kind": "pol/x", "version": 2, "n": 3}
    assert Fields.of_document(encode(document), "it", "pol/x", 2, ["n"]).integer("n") == 3
    for change in ({"kind": "pol/y"}, {"version": 1}, {"version": True}, {"more": 1}):
        with pytest.raises(ProtocolError, match="it"):
            Fields.of_document(encode(document | change), "it", "pol/x", 2, ["n"])
