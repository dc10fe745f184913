"""Options of trainers that can't be are refused with their name, before a worker begins."""

import pytest

from pol.decentralised import DiLoCo, DiPaCo, DisTrO, LoFi, NoLoCo, Pipeline, PrivateTraining
from pol.decentralised.parts.small_gpt import Shape
from pol.errors import ProtocolError

pytestmark = pytest.mark.rules


@pytest.mark.parametrize("options", [DiLoCo, DiPaCo, DisTrO, LoFi, NoLoCo, Pipeline])
def test_batches_need_rows(options: type) -> None:
    assert options(rows=8, batch=8).rows == 8
    with pytest.raises(ProtocolError, match="a batch of 16 rows can't be drawn from 8"):
        options(rows=8, batch=16)


@pytest.mark.parametrize(
    ("options", "name"),
    [(DiLoCo, "rounds"), (DiPaCo, "steps"), (DisTrO, "kept"), (LoFi, "parts"), (PrivateTraining, "seats")],
)
def test_counts_are_positive(options: type, name: str) -> None:
    for wrong in (0, -3):
        with pytest.raises(ProtocolError, match=f"{name} is {wrong}: give 1 or more"):
            options(**{name: wrong})


def test_sizes_of_rosters_and_networks() -> None:
    with pytest.raises(ProtocolError, match="rosters of"):
        DiLoCo(sizes=(0, 2))
    with pytest.raises(ProtocolError, match="a width of 30 in 4 heads"):
        Shape(width=30)
