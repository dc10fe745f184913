"""The rules as pure functions: whoever tells the truth wins, on either side, whatever was tampered with."""

from collections import Counter
from collections.abc import Sequence
from random import Random

import pytest
from adversaries import KINDS, tampered

import toy_program
from hostile_players import LyingSums, RandomPlayer
from lab.disputes.dispute_match import Match, play
from pol.arithmetic.primitives import Words
from pol.commitments.program_hash import ProgramCommitment
from pol.commitments.tensor import constants_root
from pol.dispute.dispute_record import DisputeRecord
from pol.dispute.disputed_claim import ReplayClaim, SumClaim
from pol.dispute.moves import IllegalMove
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import Player, ReplayPlayer, SumEvidence, SumPlayer
from pol.dispute.position import Side
from pol.dispute.rules import apply
from pol.errors import ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.graph.step_program import Component, StepProgram

pytestmark = pytest.mark.rules

ID = bytes(range(32))


def trace(
    program: StepProgram, constants: Sequence[Words], state: Sequence[Words], first: int, steps: int
) -> SegmentTrace:
    return SegmentTrace(program, constants, CpuExecutor(program, constants, threads=1), state, first, steps)


def replay_claim(honest: SegmentTrace, asserted: SegmentTrace) -> ReplayClaim:
    first, last = honest.first_step, honest.first_step + honest.steps
    constants = constants_root(honest.program.constants, honest.constants)
    program = ProgramCommitment.of(honest.program).hash
    return ReplayClaim(ID, program, constants, first, honest.steps, honest.state_root(first), asserted.state_root(last))


def dispute(honest: SegmentTrace, liar: SegmentTrace, side: Side, bits: int, player: Player | None = None) -> Match:
    """``liar`` plays ``side``, the honest one the other."""
    players = {side: player or ReplayPlayer(liar), side.other: ReplayPlayer(honest)}
    claim = replay_claim(honest, liar if side is Side.ASSERTER else honest)
    header = ProgramCommitment.of(honest.program).header
    return play(claim, header, players[Side.ASSERTER], players[Side.CHALLENGER], bits)


@pytest.mark.parametrize("bits", [1, 2, 4, 5])
@pytest.mark.parametrize("side", [Side.ASSERTER, Side.CHALLENGER])
def test_whoever_tells_the_truth_wins(side: Side, bits: int) -> None:
    random = Random(f"{side} {bits}")
    program, constants, state = toy_program.build(), toy_program.constants(), toy_program.initial_state()
    seen: Counter[str] = Counter()
    while missing := [kind for kind in KINDS if seen[kind] < 2]:
        kind = random.choice(missing)
        honest = trace(program, constants, state, 3, random.choice([1, 2, 7, 20]))
        liar = tampered(honest, kind, random)
        if liar is None:
            continue
        match = dispute(honest, liar, side, bits)
        assert match.winner is side.other, (kind, match.detail)
        seen[kind] += 1


@pytest.mark.parametrize("side", [Side.ASSERTER, Side.CHALLENGER])
def test_whoever_plays_at_random_loses(side: Side) -> None:
    random = Random(f"random {side}")
    program, constants, state = toy_program.build(), toy_program.constants(), toy_program.initial_state()
    for _ in range(60):
        honest = trace(program, constants, state, 3, random.choice([1, 2, 7, 20]))
        liar = tampered(honest, "state", random)
        if liar is None:
            continue
        match = dispute(honest, liar, side, 4, RandomPlayer(random, program))
        assert match.winner is side.other, match.detail


@pytest.mark.parametrize("side", [Side.ASSERTER, Side.CHALLENGER])
@pytest.mark.parametrize("component", list(Component))
def test_whoever_adds_up_rightly_wins(component: Component, side: Side) -> None:
    random = Random(f"{component} {side}")
    program, constants, state = toy_program.build(), toy_program.constants(), toy_program.initial_state()
    honest_trace = trace(program, constants, state, 3, 2)
    x, y = honest_trace.state(5), honest_trace.state(3)
    commitment = ProgramCommitment.of(program)
    honest = SumEvidence(program, component, x, y)
    for slot in range(len(program.slots)):
        for excess in (1, 1 << 190):
            liar = LyingSums(honest, slot, random.randrange(program.slots[slot].type.leaves), excess)
            asserted = liar if side is Side.ASSERTER else honest
            roots = (honest_trace.state_root(5), honest_trace.state_root(3))
            claim = SumClaim(ID, commitment.hash, component, roots[0], roots[1], asserted.total())
            players = {side: SumPlayer(liar), side.other: SumPlayer(honest)}
            match = play(claim, commitment.header, players[Side.ASSERTER], players[Side.CHALLENGER])
            assert match.winner is side.other, match.detail


def test_a_claim_that_is_right_cannot_be_opened_against() -> None:
    honest = trace(toy_program.build(), toy_program.constants(), toy_program.initial_state(), 3, 4)
    with pytest.raises(IllegalMove, match="just what the other side said"):
        dispute(honest, honest, Side.ASSERTER, 4)


def test_a_dispute_is_a_document() -> None:
    random = Random(5)
    honest = trace(toy_program.build(), toy_program.constants(), toy_program.initial_state(), 3, 20)
    liar = tampered(honest, "scalar", random) or tampered(honest, "state", random)
    assert liar is not None
    match = dispute(honest, liar, Side.ASSERTER, 4)
    record = DisputeRecord.from_dict(match.record.to_dict())
    assert record == match.record
    assert [position.level for position, _, _ in record.walk()][-1] is match.last.level


def test_every_move_is_refused_at_every_other_position() -> None:
    """A move that was legal where it was made is not legal where the dispute stood before or after."""
    random = Random(6)
    honest = trace(toy_program.build(), toy_program.constants(), toy_program.initial_state(), 3, 20)
    matches = []
    for kind in ("scalar", "state", "op", "constants"):
        liar = tampered(honest, kind, random)
        if liar is not None:
            matches.append(dispute(honest, liar, Side.ASSERTER, 4))
    walked = [list(match.record.walk()) for match in matches]
    for walk in walked:
        for i, (position, _, _) in enumerate(walk):
            for j, (other, move, _) in enumerate(walk):
                if i != j and other.level is not position.level:
                    with pytest.raises(ProtocolError):
                        apply(position, move)
