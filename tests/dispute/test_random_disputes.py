"""Trainings captured from torch, one thing tampered with anywhere in them: the truth wins on an EVM, on either side.

The whole number of disputes that the project claims: `pytest -m slow tests/dispute/test_random_disputes.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from random import Random

import pytest
from adversaries import KINDS, tampered
from court import Court, court, sides

from pol.cli.benchmarks.bits import MODELS
from pol.dispute.evidence import SegmentTrace
from pol.dispute.position import Side
from pol.execution.cpu import CpuExecutor

STEPS = 8
SHARES = {"mlp": 50, "cnn": 30, "gpt": 20}
"""Disputes of a hundred: the greater the model, the longer a lie takes to be worked out."""


@pytest.fixture(scope="module", params=[4, 5])
def a_court(request: pytest.FixtureRequest) -> Iterator[Court]:
    with court(bits=request.param) as found:
        yield found


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
        kind, side = random.choice(KINDS), random.choice([Side.ASSERTER, Side.CHALLENGER])
        liar = tampered(trace, kind, random)
        if liar is None:
            continue
        match = court.hear(*sides(trace, liar, side))
        assert match.winner is side.other, (name, kind, side, match.detail)
        seen.update(["disputes", name, kind, side.name, match.last.level.name, f"refuted {match.refuted}"])
    return seen


def test_the_truth_wins_disputes_about_trainings(a_court: Court) -> None:
    seen = convict(a_court, 80, f"fast {a_court.bits}")
    assert min(seen[kind] for kind in KINDS if kind != "fill") > 0
    assert min(seen[key] for key in ("ASSERTER", "CHALLENGER", "refuted True", "refuted False")) > 0


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", range(10))
def test_the_truth_wins_ten_thousand_disputes(a_court: Court, seed: int) -> None:
    seen = convict(a_court, 500, f"{seed} {a_court.bits}")
    print(sorted(seen.items()))
