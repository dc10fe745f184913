"""Trainings captured from torch, one thing tampered with anywhere in them: the truth wins on an EVM, on either side.

The whole number of disputes that the project claims: `pytest -m slow tests/dispute/test_random_disputes.py`.
"""

from collections import Counter
from collections.abc import Iterator
from functools import cache
from random import Random

import pytest
from adversaries import DRAW, KINDS, Other, TamperedTrace, tampered

from dispute_harness import Court, court, dearest_lie, sides
from lab.benchmarks.training_bits import MODELS
from pol.demo.lying_players import LyingTrace
from pol.dispute.agreed_facts import node_of
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.position import Level, Side
from pol.execution.cpu import CpuExecutor
from pol.graph.node import Source
from pol.graph.state_perturbation import perturb
from pol.graph.step_program import Component
from pol.graph.sum_reordering import reorder
from pol.verification.verdict.second_look import look_program

STEPS = 8
SHARES = {"mlp": 50, "cnn": 30, "gpt": 20}
"""Disputes of a hundred: the greater the model, the longer a lie takes to be worked out."""


@pytest.fixture(scope="module", params=[4, 5])
def a_court(request: pytest.FixtureRequest) -> Iterator[Court]:
    with court(bits=request.param) as found:
        yield found


TAMPERED = (*KINDS, DRAW)
PARTS = ("forward", "backward", "optimizer")


@cache
def parts(name: str) -> tuple[str, ...]:
    """Of the training step, what each node belongs to; running statistics belong to the forward pass."""
    captured, found = MODELS[name](STEPS), []
    slots = zip(captured.names.slots, captured.program.slots, strict=True)
    updates = {f"update.{slot_name}" for slot_name, slot in slots if slot.component is not Component.BUFFER}
    for node in captured.names.nodes:
        if node.name.startswith("backward.") or "grad" in node.name.split("."):
            found.append("backward")
        else:
            found.append("optimizer" if node.name in updates else "forward")
    return tuple(found)


@cache
def honest(name: str, first: int, steps: int) -> SegmentTrace:
    captured = MODELS[name](STEPS)
    executor = CpuExecutor(captured.program, captured.constants, threads=1)
    return SegmentTrace(captured.program, captured.constants, executor, captured.state, first, steps)


def convict(court: Court, disputes: int, seed: str) -> Counter[str]:
    """So many disputes; how often what was tampered with, and how they ended."""
    random, seen = Random(seed), Counter[str]()
    while seen["disputes"] < disputes:
        name = random.choices(list(SHARES), list(SHARES.values()))[0]
        trace = honest(name, *random.choice([(0, 1), (0, 2), (0, 5), (2, 6)]))
        kind, side = random.choice(TAMPERED), random.choice([Side.ASSERTER, Side.CHALLENGER])
        liar = tampered(trace, kind, random)
        if liar is None:
            continue
        match = court.hear(*sides(trace, liar, side))
        assert match.winner is side.other, (name, kind, side, match.detail)
        seen.update(["disputes", name, kind, side.name, match.last.level.name, f"refuted {match.refuted}"])
        if match.last.level in (Level.LEAVES, Level.LEAF, Level.TERMS, Level.BODY):
            seen[parts(name)[node_of(match.last.facts).number]] += 1
    return seen


@pytest.mark.long
def test_the_truth_wins_disputes_about_trainings(a_court: Court) -> None:
    seen = convict(a_court, 80, f"fast {a_court.bits}")
    assert min(seen[kind] for kind in TAMPERED if kind != "fill") > 0
    assert min(seen[key] for key in ("ASSERTER", "CHALLENGER", "refuted True", "refuted False", *PARTS)) > 0


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", range(10))
def test_the_truth_wins_ten_thousand_disputes(a_court: Court, seed: int) -> None:
    seen = convict(a_court, 500, f"{seed} {a_court.bits}")
    sides_and_ends = ("ASSERTER", "CHALLENGER", "refuted True", "refuted False")
    missed = [key for key in (*TAMPERED, *PARTS, *SHARES, *sides_and_ends) if not seen[key]]
    assert not missed, sorted(seen.items())


LOOK_STEPS = 2


@pytest.fixture(scope="module")
def look_court() -> Iterator[Court]:
    with court(bits=5) as found:
        yield found


@cache
def look_honest() -> SegmentTrace:
    """Rerun 1 of a segment that doesn't begin at step 0."""
    captured = MODELS["mlp"](8)
    program = look_program(captured.program, 1)
    executor = CpuExecutor(program, captured.constants, threads=1)
    return SegmentTrace(program, captured.constants, executor, captured.state, 3, LOOK_STEPS)


@pytest.mark.parametrize("side", [Side.ASSERTER, Side.CHALLENGER])
@pytest.mark.parametrize("what", ["the draw", "the moved number"])
def test_a_lie_in_the_noise_is_convicted(look_court: Court, what: str, side: Side) -> None:
    program = look_honest().program
    draws = [number for number, node in enumerate(program.nodes) if not node.operands and not node.fold]
    moved = next(
        number
        for number, node in enumerate(program.nodes)
        if any((operand.source, operand.index) == (Source.NODE, draws[0]) for operand in node.operands)
    )
    lie = dearest_lie(look_honest(), draws[0] if what == "the draw" else moved, Random(f"{what} {side}"))
    match = look_court.hear(*sides(look_honest(), LyingTrace(look_honest(), lie), side))
    assert match.winner is side.other
    assert match.refuted or side is Side.CHALLENGER  # a challenger that can't prove anything gives up


@pytest.mark.parametrize("side", [Side.ASSERTER, Side.CHALLENGER])
def test_a_rerun_of_another_index_is_convicted(look_court: Court, side: Side) -> None:
    """The same sums, moved by another seed."""
    captured = MODELS["mlp"](8)
    other = reorder(perturb(captured.program, 2), 1)
    assert len(other.nodes) == len(look_honest().program.nodes)
    liar = TamperedTrace(look_honest(), 4, Other("seed", other, captured.constants, 4))
    assert look_court.hear(*sides(look_honest(), liar, side)).winner is side.other
