"""Proofs of every step settle a dispute on the chain; those of another step or task don't count."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import proven_market
import pytest
from proven_market import INTERVAL, STEPS, Training, terms_of

import chosen_rows
import toy_market
from pol.chain.account.wallet import Reverted
from pol.chain.desks.challenges import ClaimCharge, ClaimChargeKind
from pol.chain.desks.proven_steps import StepProof
from pol.demo.lying_players import Lie, LyingTrace
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import ReplayPlayer
from pol.roles.monitor.market_reader import MarketReader
from pol.zk.circuits import load_circuit
from pol.zk.exact import exact_prover
from pol.zk.exact.exact_prover import ExactKeys
from pol.zk.network_program import tensor_types
from shared_chain import SharedChain
from toy_market import Ground, ToyMarket

pytestmark = pytest.mark.long


@dataclass
class Proven:
    """A deployed market, a training, and proofs of its ten steps, of which none is on the chain."""

    given: Training
    ground: Ground
    task_id: bytes
    proofs: list[StepProof]
    first: bytes

    def record(self, segment: int) -> int:
        """Bring the proofs of a segment to the chain; returns the gas."""
        begin = segment * INTERVAL
        first = self.first if segment == 0 else self.proofs[begin - 1].after
        wallet = self.ground.wallets["solver"]
        steps = self.proofs[begin : begin + INTERVAL]
        return self.ground.market.proven_steps.prove(wallet, self.task_id, segment, first, steps)

    def tie(self, step: int) -> int:
        """Show the state before a step; returns the gas."""
        types, words = tensor_types(self.given.network), proven_market.state_bytes(self.given, step)
        return self.ground.market.proven_steps.tie(self.ground.wallets["solver"], self.task_id, types, words)


LINEAR, SOFTMAX = "linear_regression", "softmax_stable"


@pytest.fixture(scope="module")
def softmax_keys(tmp_path_factory: pytest.TempPathFactory) -> ExactKeys:
    return exact_prover.setup(load_circuit(SOFTMAX), tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> ExactKeys:
    return exact_prover.setup(load_circuit(LINEAR), tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def ground(chain: SharedChain) -> Iterator[Ground]:
    with toy_market.lent(chain) as ground:
        yield ground


def proven_task(ground: Ground, keys: ExactKeys, seed: int, name: str = LINEAR) -> Proven:
    """A pinned task that isn't submitted yet, and proofs of its steps."""
    given = proven_market.training(seed, name)
    task_id = proven_market.pinned(ground, given, keys)
    run = proven_market.proofs(given, keys, task_id)
    return Proven(given, ground, task_id, proven_market.for_chain(given, run), run.steps[0].before)


def last_bit(honest: SegmentTrace) -> Lie:
    """The result is wrong in one bit of one weight."""
    producer = honest.program.slots[0].producer
    return Lie(honest.first_step + honest.steps - 1, producer, 0, 0, 1, 0)


def challenged(proven: Proven, lie: bool) -> tuple[ToyMarket, int]:
    """The task's verdict, true or a lie, and a dispute about it by somebody who says the opposite."""
    dishonest = None if not lie else (lambda honest: LyingTrace(honest, last_bit(honest)))
    toy = toy_market.at_verdict(proven.ground, dishonest, proven.given.traces)
    assert toy.task_id == proven.task_id
    other = toy.honest if lie else LyingTrace(toy.honest, last_bit(toy.honest))
    return toy, toy.challenge(ReplayPlayer(other))


@pytest.mark.parametrize(
    ("name", "lie"),
    chosen_rows.first([(SOFTMAX, True), (LINEAR, False), (SOFTMAX, False), (LINEAR, True)], 2, others=pytest.mark.slow),
)
def test_proofs_settle_a_dispute_at_once(
    ground: Ground, keys: ExactKeys, softmax_keys: ExactKeys, lie: bool, name: str
) -> None:
    """Also about a softmax classifier, whose step has quotients and powers of e."""
    proven = proven_task(ground, keys if name == LINEAR else softmax_keys, 2 + lie, name)
    toy, number = challenged(proven, lie)
    segment = toy.claim.segment
    begin = segment * INTERVAL
    shown = toy.honest.state_root(begin + INTERVAL)
    placed = toy.market.verdicts.placed(toy.task_id, toy.market.registry.task(toy.task_id).seating, 0)
    about = (number, ClaimCharge(0, ClaimChargeKind.REPLAY, 0), placed, shown)
    anybody, settle = toy.wallets["deployer"], toy.market.challenges.settle_by_proof
    proven.record(segment)
    proven.tie(begin)
    proven.tie(begin + INTERVAL)
    settle(anybody, *about)
    # The bond and the verifier's stake move as if the game had decided.
    toy.market.challenges.settle(anybody, number)
    bond = terms_of(proven.given).bond
    whistleblower = toy.gain("whistleblower")
    assert whistleblower > 0 if lie else whistleblower == -bond
    assert toy.market.challenges.dispute(number).is_settled
    # Whoever looks at the market reads what has happened.
    (seen,) = [
        task
        for task in MarketReader(ground.connection, ground.deployment, "memory://").view().tasks
        if task.task_id == toy.task_id
    ]
    told = [happening.what for happening in seen.happenings]
    assert told.index("says which proofs it will take") < told.index(f"step {begin} is proved in zero knowledge")
    assert "a zero-knowledge proof ends a dispute about the verdict" in told


def test_ten_proofs_chain_over_both_segments(ground: Ground, keys: ExactKeys) -> None:
    """Other refusals: tests/forge/market/ProvenSteps.t.sol and tests/forge/zk."""
    proven = proven_task(ground, keys, 4)
    desk, wallet = ground.market.proven_steps, ground.wallets["solver"]
    ground.market.registry.submit(ground.wallets["submitter"], terms_of(proven.given))
    good, second = proven.proofs[0], proven.proofs[1]
    for wrong in (replace(good, after=second.after), replace(good, proof=second.proof)):
        with pytest.raises(Reverted, match="InvalidProof"):
            desk.prove(wallet, proven.task_id, 0, proven.first, [wrong])
    assert desk.proved(proven.task_id, 0, proven.first)[0] == 0

    proven.record(0)
    proven.record(1)
    assert desk.proved(proven.task_id, 1, proven.proofs[INTERVAL - 1].after) == (INTERVAL, proven.proofs[-1].after)
    told = desk.events("StepProven", taskId=proven.task_id)
    assert [event["step"] for event in told] == list(range(STEPS))
    assert all(a["afterStep"] == b["beforeStep"] for a, b in pairwise(told))


def test_a_proof_is_bound_to_its_task(ground: Ground, keys: ExactKeys) -> None:
    """The same training, step and data: the proof for another task isn't one for this."""
    one, other = proven_task(ground, keys, 5), None
    ground.market.registry.submit(ground.wallets["submitter"], terms_of(one.given))
    other = proven_task(ground, keys, 5)
    assert one.task_id != other.task_id
    ground.market.registry.submit(ground.wallets["submitter"], terms_of(one.given))
    with pytest.raises(Reverted, match="InvalidProof"):
        ground.market.proven_steps.prove(ground.wallets["solver"], one.task_id, 0, one.first, other.proofs[:1])


def test_a_tie_is_of_one_state_and_one_vector(ground: Ground, keys: ExactKeys) -> None:
    proven = proven_task(ground, keys, 6)
    desk = ground.market.proven_steps
    for step in (0, 1, INTERVAL, STEPS):
        proven.tie(step)
        trace = proven.given.traces[step > INTERVAL]
        vector = proven.first if step == 0 else proven.proofs[step - 1].after
        assert desk.tied(proven.task_id, trace.state_root(step)) == vector
