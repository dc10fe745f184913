"""A drawn first weight that was tampered with is decided in court, by the rules and on an EVM."""

from collections.abc import Iterator

import pytest
from torch import nn

from dispute_harness import Court, court, sides
from pol.demo.lying_players import Lie, LyingTrace
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.position import Side
from pol.execution.cpu import CpuExecutor
from pol.graph.capture import capture_initialization
from pol.training.storage.store import Store
from pol.training.task import initialization

SEED = 2**40 + 7


@pytest.fixture(scope="module")
def judge() -> Iterator[Court]:
    with court() as opened:
        yield opened


def build() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 20), nn.LayerNorm(20), nn.Embedding(7, 20))


@pytest.mark.parametrize("slot", ["0.weight", "1.weight", "2.weight"])
def test_whoever_draws_rightly_wins(judge: Court, slot: str) -> None:
    """A uniform draw, ones, a normal draw: one step from zeros, at the step where no training gets."""
    store = Store("memory://drawn")
    drawing = initialization.publish_initialization(store, capture_initialization(build, SEED))
    program, constants = initialization.load_program(store, drawing), [drawing.words()]
    before, step = initialization.zeros(program), initialization.STEP
    honest = SegmentTrace(program, constants, CpuExecutor(program, constants), before, step, 1)
    number = program.slots[drawing.slots.index(slot)].producer
    liar = LyingTrace(honest, Lie(step, number, 13, 0, len(program.nodes[number].body.instructions) - 1, 9))
    assert liar.state_root(step + 1) != honest.state_root(step + 1)
    matches = {side: judge.hear(*sides(honest, liar, side)) for side in (Side.ASSERTER, Side.CHALLENGER)}
    assert all(match.winner is side.other for side, match in matches.items())
    # On the side that the last level falls to, the truth proves; on the other one the liar has no move left.
    assert any(match.refuted for match in matches.values())
