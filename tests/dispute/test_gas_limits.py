"""Whatever gas a start, a move or a proof is given: it does what it does with plenty, or it reverts.

What is compared is the head of the dispute and what the market is told. The limits are those of the call; a transaction
has its intrinsic gas on top.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from adversaries import TamperedState
from web3.contract import Contract

import toy_program
from dispute_harness import MOVE_GRACE, REPLAY_GRACE, Court, court, params_of, sides
from lab.disputes.dispute_match import Match, play
from pol.demo.lying_players import Lie, LyingTrace
from pol.dispute.encoding.move_encoding import encode
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.position import Side
from pol.execution.cpu import CpuExecutor
from solidity import compiled, deploy

LIES = {
    "map": Lie(4, 0, 100, 0, 0, 20),
    "chunk": Lie(4, 1, 3, 33, 0, 20),
    "term": Lie(4, 3, 100, 2, 0, 20),
    "body": Lie(4, 2, 7, 0, 30, 20),
    "state": None,
}
NEVER = 2**256 - 1
LIMITS, AT_ONCE = range(200_000), 10_000
"""From too little for anything to twice of what any of these calls takes; so many in one request."""


class Sweeper:
    """The game with a market that tries each call under many limits."""

    def __init__(self, court: Court, url: str) -> None:
        self.court = court
        self.market = deploy(url, "tests/forge/dispute/GasSweep.sol", "GasSweep")
        step, starts = court.game.functions.oneStep().call(), court.game.functions.starts().call()
        graces = (court.bits, REPLAY_GRACE, MOVE_GRACE)
        self.game: Contract = court._deploy("DisputeGame", self.market.address, step, starts, *graces)
        self.seats = tuple(self.market.functions[side]().call() for side in ("asserter", "challenger"))

    def match(self, honest: SegmentTrace, liar: SegmentTrace, side: Side) -> tuple[Match, tuple[Any, ...]]:
        claim, header, asserter, challenger = sides(honest, liar, side)
        params = params_of(claim, *self.seats)
        claim = replace(claim, id=self.court._id(self.game, 1, params))
        return play(claim, header, asserter, challenger, self.court.bits), params

    def sweep(self, match: Match, params: tuple[Any, ...], moves: list[bytes], step: int) -> int:
        """The least limit with which the last of ``moves``, or the start, succeeds. Reverts if any limit differs."""
        about = (self.game.address, params, match.record.header, match.record.payload, moves)
        found = NEVER
        for begin in LIMITS[:: AT_ONCE * step]:
            end = min(begin + AT_ONCE * step, LIMITS.stop)
            least = self.market.functions.sweep(*about, (begin, end, step)).call({"gas": 10**12})
            assert found == NEVER or least == begin, "more gas than is enough does no harm"
            found = min(found, least)
        return int(found)


@pytest.fixture(scope="module")
def sweeper() -> Iterator[Sweeper]:
    compiled("tests/forge/dispute/GasSweep.sol", "GasSweep")
    with court() as found:
        yield Sweeper(found, found.web3.provider.endpoint_uri)  # type: ignore[attr-defined]  # an HTTP provider


def sweep_all(sweeper: Sweeper, name: str, step: int) -> dict[str, int]:
    """Each kind of call in disputes about a lie, on both sides; the least limit of each, NEVER for a proof in vain."""
    program, constants, state = toy_program.build(), toy_program.constants(), toy_program.initial_state()
    found: dict[str, int] = {}
    for side in (Side.ASSERTER, Side.CHALLENGER):
        honest = SegmentTrace(program, constants, CpuExecutor(program, constants, threads=1), state, 3, 2)
        lie = LIES[name]
        liar = LyingTrace(honest, lie) if lie is not None else TamperedState(honest, 4, 1, 17, 0)
        match, params = sweeper.match(honest, liar, side)
        assert match.winner is side.other
        made = [encode(1, position, move) for position, move, _ in match.record.walk()]
        kinds = ["start", *(type(move).__name__ for move in match.record.moves)]
        if match.attempt is not None:
            made.append(encode(1, match.last, match.attempt))
            kinds.append(f"vain {type(match.attempt).__name__}")
        for number, kind in enumerate(kinds):
            if kind in found:
                continue
            least = sweeper.sweep(match, params, made[:number], step)
            assert (least == NEVER) is kind.startswith("vain")
            found[kind] = least
    return found


EXPECTED = {
    "map": {"Answer", "Describe", "ProveStep", "vain ProveStep"},
    "chunk": {"Answer", "Describe", "Unfold", "ProveStep", "vain ProveStep"},
    "term": {"Answer", "Describe", "Unfold", "ProveStep", "vain ProveStep"},
    "body": {"Answer", "Describe", "Unfold", "ProveStep", "vain ProveStep"},
    "state": {"Answer", "OpenState", "ProveSlot", "vain ProveSlot"},
}


@pytest.mark.parametrize("name", LIES)
def test_gas_limits_far_apart_decide_alike_or_revert(sweeper: Sweeper, name: str) -> None:
    assert set(sweep_all(sweeper, name, 331)) >= {"start"} | EXPECTED[name]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", LIES)
def test_every_gas_limit_decides_alike_or_reverts(sweeper: Sweeper, name: str) -> None:
    assert set(sweep_all(sweeper, name, 1)) >= {"start"} | EXPECTED[name]
