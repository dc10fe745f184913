"""DistributedDataParallel and FSDP2 with a defined order: the same bytes by any arrangement."""

from pathlib import Path

import pytest
from averaging_ranks import STEPS, disagreeing, hybrid, integer_training, refused, replicas, shards
from process_group import run_ranks

TENSORS = 6 * (STEPS + 1)
pytestmark = pytest.mark.long


@pytest.mark.parametrize("count", [2, 3, 4])
def test_replicas_and_shards_are_one_process_that_adds_in_order(tmp_path: Path, count: int) -> None:
    found = run_ranks(tmp_path, count, replicas, "ascending")
    expected = found[0]["alone"]
    assert len(expected) == TENSORS
    for one in found:
        assert {name for name, trained in one.items() if trained != expected} == set()
        assert len(one) == 5
    assert run_ranks(tmp_path, count, shards, "ascending") == [expected] * count


def test_two_stages_of_a_tree_are_one_tree(tmp_path: Path) -> None:
    expected = run_ranks(tmp_path, 4, replicas, "tree")[0]
    assert len(set(map(tuple, expected.values()))) == 1
    assert run_ranks(tmp_path, 4, hybrid) == [expected["alone"]] * 4


@pytest.mark.parametrize("feedback", [False, True])
def test_integers_are_the_same_by_any_arrangement(tmp_path: Path, feedback: bool) -> None:
    found = run_ranks(tmp_path, 3, integer_training, feedback)
    expected = next(iter(found[0].values()))
    assert len(expected) == TENSORS
    for one in found:
        assert [trained == expected for trained in one.values()] == [True] * 3


def test_disagreement_ends_the_backward_pass_of_all(tmp_path: Path) -> None:
    for said in run_ranks(tmp_path, 2, disagreeing):
        assert "order: process 1 has tree, process 0 ascending" in said


def test_what_has_no_definition_is_refused(tmp_path: Path) -> None:
    run_ranks(tmp_path, 2, refused)
