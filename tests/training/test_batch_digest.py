"""The digest of a batch covers its content and types."""

import collections
import dataclasses
import datetime
import decimal
import fractions
import warnings
from typing import Any

import numpy as np
import pytest
import torch

from pol.training.state.batch_digest import digest

pytestmark = pytest.mark.rules


@dataclasses.dataclass
class Pair:
    one: Any
    other: Any


class Graph:
    def __init__(self, nodes: list[int]) -> None:
        self.nodes, self.itself = nodes, self


Named = collections.namedtuple("Named", ["one", "other"])
t = torch.tensor
SPARSE = torch.eye(3).to_sparse()


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # torch's, of kinds of tensors that it may change or drop
    CSR = SPARSE.to_sparse_csr()
    NESTED = [torch.nested.nested_tensor([t([1.0]), t([2.0, last])]) for last in (3.0, 4.0)]
    QUANTIZED = [torch.quantize_per_tensor(t([1.0, 2.0]), scale, 0, torch.quint8) for scale in (0.1, 0.2)]


DIFFERENT = {
    "tensor": (t([1.0]), t([2.0])),
    "dtype": (t([1]), t([1.0])),
    "shape": (t([[1.0]]), t([1.0])),
    "complex": (t([1j], dtype=torch.complex128), t([2j], dtype=torch.complex128)),
    "sparse": (SPARSE, 2 * SPARSE),
    "sparse or not": (SPARSE, SPARSE.to_dense()),
    "csr": (CSR, SPARSE),
    "nested": tuple(NESTED),
    "quantized": (QUANTIZED[0], QUANTIZED[0][:1]),
    "scale of quantized": tuple(QUANTIZED),
    "array": (np.array([1.0]), np.array([2.0])),
    "array or tensor": (np.array([1.0]), t([1.0], dtype=torch.float64)),
    "texts": (np.array(["a"]), np.array(["b"])),
    "objects": (np.array([{}, 1], object), np.array([{}, 2], object)),
    "times": (np.array(["2020-01-01"], "M8[D]"), np.array(["2020-01-02"], "M8[D]")),
    "scalar": (np.float32(1), np.float32(2)),
    "bytes": (b"a", b"b"),
    "bytes or text": (b"a", "a"),
    "integer or text": (1, "1"),
    "integer or boolean": (1, True),
    "float": (0.1, 0.2),
    "integer or float": (1, 1.0),
    "nothing": (None, "None"),
    "keys": ({1: t([1.0])}, {"1": t([1.0])}),
    "list or tuple": ([1, 2], (1, 2)),
    "list or items": ([1, [2]], [[1], 2]),
    "set": ({1, 2}, {1, 3}),
    "set or list": ({1}, [1]),
    "complex number": (1j, 2j),
    "decimal": (decimal.Decimal("1.0"), decimal.Decimal("1.00")),
    "fraction": (fractions.Fraction(1, 2), fractions.Fraction(1, 3)),
    "date": (datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)),
    "dataclass": (Pair(1, t([1.0])), Pair(1, t([2.0]))),
    "named tuple": (Named(1, 2), (1, 2)),
    "object": (Graph([1]), Graph([2])),
    "function": (len, max),
    "parameter": (torch.nn.Parameter(t([1.0])), t([1.0])),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_other_content_has_another_digest(name: str) -> None:
    one, other = DIFFERENT[name]
    assert digest([one]) != digest([other])
    assert digest([one]) == digest([one])


def test_order_of_insertion_and_copies_dont_count() -> None:
    assert digest({"a": 1, "b": {1, 2}}) == digest({"b": {2, 1}, "a": 1})
    assert digest(Graph([1])) == digest(Graph([1]))
    assert digest(t([[1.0, 2.0], [3.0, 4.0]]).t()) == digest(t([[1.0, 3.0], [2.0, 4.0]]))


def test_a_type_without_content_is_named_once() -> None:
    with pytest.warns(UserWarning, match=r"builtins.generator, whose content can't be read") as said:
        one, other = digest([0, 1, (x for x in range(2))]), digest([0, 1, (x for x in "")])
    assert one == other
    assert len(said) == 1
