"""Second looks on chain: a segment beyond the thresholds is judged by public reruns, and whoever lies in them loses."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest
from all_parties import FalseClaim, Solver, Verifier, Whistleblower
from role_market import INTERVAL, OFFER, Town, awarded, profiled, settle, stated, submitted, verified

from hostile_players import LyingSums
from pol.chain.desks.challenges import ClaimCharge, ClaimChargeKind
from pol.chain.desks.task_registry import Status, TaskOutcome
from pol.claims.segment_claim import Rerun, SecondLook, SegmentClaim
from pol.demo.lying_players import LyingTrace, draw_lie
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import Player, ReplayPlayer, SumPlayer
from pol.dispute.position import Side
from pol.execution.cpu import CpuExecutor
from pol.training.task.task_recorder import TaskRecorder
from pol.verification.replay.canonical_replay import replay_end
from pol.verification.verdict.verdict import Outcome, Verdict

DRIFT = 1 + 2.0**-16
"""How far each checkpoint is from the canonical one: more than the profile has seen, less than a look may excuse."""


@pytest.fixture(scope="module")
def drifted(node: Town) -> bytes:
    """A task whose solver has committed segments that the thresholds reject."""
    verifier, solver = node.join(Verifier, "v"), node.join(Solver, "t")
    node.join(Whistleblower, "w")
    task_id, _ = submitted(node, replace(OFFER, look_margin=4))
    profiled(verifier, task_id)
    awarded(solver, task_id)
    task = solver.task(task_id)
    recorder, state = TaskRecorder(solver.store, task), task.initial_state
    recorder(0, state)
    for segment in range(task.document.segments):
        executor = CpuExecutor(task.program, task.constants)
        state = [words.copy() for words in replay_end(task.program, executor, state, segment * INTERVAL, INTERVAL)]
        weights = state[0].view(np.float32)
        weights *= np.float32(DRIFT)
        recorder(segment + 1, state)
    solver.commit(task_id, recorder.publish({})[0])
    return task_id


def test_what_the_thresholds_reject_is_looked_at_again_on_chain(drifted: bytes, town: Town) -> None:
    """The contract judges by the reruns what the library judges by them, and watchers find nothing wrong in them."""
    verifier, whistleblower = town.join(Verifier, "v"), town.join(Whistleblower, "w")
    (verdict,) = verified(verifier, drifted)
    market = verifier.market
    assert verdict.second_look is not None
    assert market.verdicts.looks(drifted, 2) == {0: verdict.second_look}
    assert whistleblower.check(drifted) == []
    settle(verifier, drifted)
    outcome = market.registry.task(drifted).outcome
    assert (outcome is TaskOutcome.ACCEPTED) == (verdict.outcome is Outcome.ACCEPTED)


def falsified(verdict: Verdict, kind: ClaimChargeKind) -> Verdict:
    """The verdict with another end of its second rerun, or with another distance of it."""
    assert verdict.second_look is not None
    first, second = verdict.second_look.reruns
    false = replace(second, end=b"\x07" * 32)
    if kind is ClaimChargeKind.LOOK_DISTANCE:
        a, b, c = second.distances
        false = Rerun(second.end, (a, b, c + 1))
    return replace(verdict, second_look=SecondLook(verdict.second_look.segment, (first, false)))


@pytest.mark.parametrize("kind", [ClaimChargeKind.LOOK_RERUN, ClaimChargeKind.LOOK_DISTANCE])
def test_a_false_second_look_is_convicted(drifted: bytes, town: Town, kind: ClaimChargeKind) -> None:
    verifier, whistleblower = town.join(Verifier, "v"), town.join(Whistleblower, "w")
    (verdict,) = verifier.replay(drifted)
    stated(verifier, drifted, [falsified(verdict, kind)])
    (finding,) = whistleblower.check(drifted)
    assert (finding.charge.kind, finding.charge.rerun) == (kind, 1)
    dispute = whistleblower.challenge(drifted, finding)
    play(verifier, whistleblower, drifted, finding, dispute)
    assert verifier.market.game.winner(dispute) is Side.CHALLENGER
    assert verifier.market.registry.task(drifted).status is Status.COMMITTED


class Seer(Whistleblower):
    """Sees something wrong in a second look that isn't."""

    def player(self, task_id: bytes, claim: SegmentClaim, charge: ClaimCharge) -> Player:
        honest = super().player(task_id, claim, charge)
        if isinstance(honest, SumPlayer):
            return SumPlayer(LyingSums(honest.sums, 0, 0, 1))
        assert isinstance(honest, ReplayPlayer)
        assert isinstance(honest.trace, SegmentTrace)
        lie = draw_lie(honest.trace, range(len(honest.trace.program.nodes)), Random(5))
        return ReplayPlayer(LyingTrace(honest.trace, lie))


@pytest.mark.parametrize(("kind", "component"), [(ClaimChargeKind.LOOK_RERUN, 0), (ClaimChargeKind.LOOK_DISTANCE, 1)])
def test_an_honest_second_look_is_defended(drifted: bytes, town: Town, kind: ClaimChargeKind, component: int) -> None:
    """By a new process, from chain and store alone."""
    verified(town.join(Verifier, "v"), drifted)
    seer = town.join(Seer, "w")
    (claim,) = seer.market.verdicts.claims(drifted, 2)
    finding = FalseClaim(ClaimCharge(0, kind, component, rerun=1), claim)
    dispute = seer.challenge(drifted, finding)
    play(town.join(Verifier, "v"), seer, drifted, finding, dispute)
    assert seer.market.game.winner(dispute) is Side.ASSERTER


def play(verifier: Verifier, whistleblower: Whistleblower, task_id: bytes, finding: FalseClaim, dispute: int) -> None:
    """Both sides move until the game has a winner."""
    sides = verifier.session(task_id, dispute), whistleblower.session(task_id, dispute)
    while sides[0].game.winner(dispute) is Side.NONE:
        assert sides[0].advance() or sides[1].advance()
