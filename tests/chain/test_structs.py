"""Structs as web3 decodes them, turned into dataclasses."""

from dataclasses import astuple, dataclass
from enum import IntEnum

import pytest
from hexbytes import HexBytes
from web3.datastructures import AttributeDict

from pol.chain.contract.structs import decoded

pytestmark = pytest.mark.rules


class Kind(IntEnum):
    FIRST = 1


@dataclass(frozen=True)
class Inner:
    root: bytes
    three: tuple[int, int, int]


@dataclass(frozen=True)
class Outer:
    kind: Kind
    inner: Inner
    path: tuple[bytes, ...]
    list_of: tuple[Inner, ...]


INNER = (HexBytes(b"\1" * 32), [1, 2, 3])
OUTER = Outer(Kind.FIRST, Inner(b"\1" * 32, (1, 2, 3)), (b"a", b"b"), (Inner(b"\1" * 32, (1, 2, 3)),))


def test_a_struct_of_a_view_and_one_of_an_event_are_the_same() -> None:
    of_event = AttributeDict({"root": INNER[0], "three": INNER[1]})
    for inner in (INNER, of_event):
        found = decoded(Outer, (1, inner, [b"a", HexBytes(b"b")], [inner]))
        assert found == OUTER
        assert [type(part) for part in (found.kind, found.inner.root, found.path[1])] == [Kind, bytes, bytes]
    assert decoded(Outer, astuple(OUTER)) == OUTER


@pytest.mark.parametrize(
    "value",
    [
        (2, INNER, [], []),
        (1, INNER, []),
        (1, INNER, [], [], 7),
        (1, (b"", [1, 2]), [], []),
        (1, (b"", [1, 2, 3, 4]), [], []),
    ],
)
def test_another_enum_or_number_of_members_is_refused(value: tuple[object, ...]) -> None:
    with pytest.raises(ValueError, match=r"zip|not a valid"):
        decoded(Outer, value)
