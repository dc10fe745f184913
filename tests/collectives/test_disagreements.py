"""A process that gives something else than the others: a clear error on all, no hang, and no wrong sum."""

import os
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from process_group import run_ranks

from pol.collectives import integer_all_reduce, ordered_all_reduce, ordered_reduce_scatter
from pol.errors import OperationalError, PolError, ProtocolError, UnsupportedError


def flushing() -> list[str]:
    """One process makes zeros of small numbers, then both, then none."""
    said = []
    for ranks in ([1], [0, 1]):
        torch.set_flush_denormal(dist.get_rank() in ranks)
        with pytest.raises(ProtocolError) as error:
            ordered_all_reduce(torch.full((12,), 2.0**-126), "mean")
        said.append(str(error.value))
    torch.set_flush_denormal(False)
    ordered_all_reduce(tiny := torch.full((12,), 2.0**-126), "mean")
    assert (tiny == 2.0**-126).all()
    return said


@pytest.mark.long
def test_a_process_that_flushes_subnormal_numbers_is_refused_on_all(tmp_path: Path) -> None:
    """Before, replicas parted silently where a mean is near 1e-37."""
    first, other = run_ranks(tmp_path, 2, flushing)
    assert first == other
    assert "subnormal numbers: process 1 has flushed to zero, process 0 kept" in first[0]
    assert "torch flushes subnormal numbers to zero in this process" in first[1]


def differing() -> list[str]:
    """What each call says on this process; process 2 differs in one thing at a time."""
    odd = dist.get_rank() == 2
    float32, double = torch.ones(12), torch.ones(12, dtype=torch.float64)
    calls: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = [
        (ordered_all_reduce, (torch.ones(13 if odd else 12),), {}),
        (ordered_all_reduce, (torch.ones(12, dtype=torch.bfloat16) if odd else float32,), {}),
        (ordered_all_reduce, (double if odd else float32,), {}),
        (ordered_all_reduce, ([torch.ones(6), torch.ones(6)] if odd else [float32],), {}),
        (ordered_all_reduce, ([torch.ones(5), torch.ones(7)] if odd else [torch.ones(7), torch.ones(5)],), {}),
        (ordered_all_reduce, (float32, "mean" if odd else "sum"), {}),
        (ordered_all_reduce, (float32,), {"order": "tree" if odd else "ascending"}),
        (ordered_all_reduce, (float32,), {"roster": [0, 2, 1] if odd else [0, 1, 2]}),
        (integer_all_reduce, (float32,), {"bits": 16 if odd else 8}),
        (integer_all_reduce, (float32,), {"transport": "all_reduce" if odd else "slices"}),
        (integer_all_reduce, (float32,), {"residuals": torch.zeros(13 if odd else 12)}),
        (integer_all_reduce, (float32,), {"residuals": torch.zeros(12) if odd else None}),
        (integer_all_reduce if odd else ordered_all_reduce, (float32, "mean"), {}),
    ]
    said = []
    for call, arguments, options in calls:
        with pytest.raises(ProtocolError) as error:
            call(*arguments, **options)
        said.append(str(error.value))
    assert (float32 == 1).all()
    ordered_all_reduce(float32)
    assert (float32 == 3).all()  # the group works on
    return said


@pytest.mark.long
def test_every_process_hears_who_differs(tmp_path: Path) -> None:
    first, *others = run_ranks(tmp_path, 3, differing)
    assert others == [first, first]
    assert [said.split(": give")[0] for said in first if "digest" not in said] == [
        "elements: process 2 has 13, process 0 12",
        "type of the elements: process 2 has torch.bfloat16, process 0 torch.float32",
        "type of the elements: process 2 has none or another, process 0 torch.float32",
        "tensors: process 2 has 2, process 0 1",
        "operation: process 2 has mean, process 0 sum",
        "order: process 2 has tree, process 0 ascending",
        "bits: process 2 has 16, process 0 8",
        "transport: process 2 has all_reduce, process 0 slices",
        "residuals: process 2 has others, process 0 fitting ones",
        "residuals: process 2 has fitting ones, process 0 none or another",
        "collective: process 2 has integer_all_reduce, process 0 ordered_all_reduce",
    ]
    digests = [said.split(": process 2")[0] for said in first if "digest" in said]
    assert digests == ["digest of the tensors' sizes", "digest of the roster"]
    assert all("\n" not in said for said in first)


REFUSED: list[tuple[type[PolError], str, dict[str, Any]]] = [
    (ProtocolError, "no option 'max'", {"operation": "max"}),
    (ProtocolError, "no option 'sum', 'ring'", {"order": "ring"}),
    (ProtocolError, r"the roster \[0, 0\]", {"roster": [0, 0]}),
]


def refused() -> None:
    for kind, message, options in REFUSED:
        with pytest.raises(kind, match=message):
            ordered_all_reduce(torch.ones(3), **options)
    for bits in (1, 2, 25):
        with pytest.raises(ProtocolError, match="choose from 3 to 24"):
            integer_all_reduce(torch.ones(3), bits=bits)
    for tensors in ([], torch.ones(3, dtype=torch.float64), [torch.ones(3), torch.ones(3).half()]):
        with pytest.raises(UnsupportedError, match="convert"):
            ordered_all_reduce(tensors)
    with pytest.raises(ProtocolError, match="isn't 2 slices of 2"):
        ordered_reduce_scatter(torch.empty(2), torch.ones(5))
    with pytest.raises(ProtocolError, match="shapes of the tensors"):
        integer_all_reduce(torch.ones(3), residuals=torch.zeros(4))


@pytest.mark.long
def test_options_that_do_not_exist(tmp_path: Path) -> None:
    run_ranks(tmp_path, 2, refused)


def test_sums_have_to_fit_32_bits() -> None:
    """257 processes of 24 bits would not; nobody starts as many here."""
    from pol.collectives.agreement import agree

    class Crowd:
        ranks = 257

    with pytest.raises(ProtocolError, match="may not fit 32 bits"):
        agree(Crowd(), [torch.ones(1)], collective="integer_all_reduce", operation="sum", bits=24, check=False)
    Crowd.ranks = 256
    agree(Crowd(), [torch.ones(1)], collective="integer_all_reduce", operation="sum", bits=24, check=False)


def outside() -> None:
    group = dist.new_group([0])
    if dist.get_rank() == 1:
        with pytest.raises(ProtocolError, match="this process isn't in the group"):
            ordered_all_reduce(torch.ones(3), group=group)


@pytest.mark.long
def test_a_process_outside_of_the_group(tmp_path: Path) -> None:
    run_ranks(tmp_path, 2, outside)


def leaving() -> str | None:
    ordered_all_reduce(torch.ones(5))
    if dist.get_rank() == 1:
        os._exit(0)
    with pytest.raises(OperationalError, match="see whether all of them are alive") as error:
        ordered_all_reduce(torch.ones(5))
    assert "\n" not in str(error.value)
    os._exit(0)


@pytest.mark.long
def test_a_process_that_ends_is_an_operational_error(tmp_path: Path) -> None:
    run_ranks(tmp_path, 3, leaving)
