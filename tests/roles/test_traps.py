"""What a party refuses before it stakes, and what it says where the contract leaves it alone."""

import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import astuple, replace

import pytest
from all_parties import FalseClaim, Solver, Verifier, Whistleblower
from eth_typing import ChecksumAddress
from role_market import (
    OFFER,
    OFTEN,
    Town,
    awarded,
    captured,
    conclude,
    disclosed,
    gain,
    profiled,
    seated,
    seated_with_duty,
    settle,
    submitted,
    verified,
)

from pol.chain.account.wallet import Reverted
from pol.chain.contract.binding import Binding, deploy_contract
from pol.chain.court.dispute_game import DisputeGame
from pol.chain.deployment_rules import GameRules
from pol.chain.desks.challenges import ClaimCharge, ClaimChargeKind
from pol.chain.desks.proven_steps import PinnedProofs
from pol.chain.desks.task_registry import Status, TaskOutcome, Terms
from pol.commitments.checkpoint_log import CheckpointLog
from pol.commitments.keccak import keccak256
from pol.errors import Fault, OperationalError, ProtocolError, UnsupportedError
from pol.roles.party import data_availability
from pol.roles.party.policy import PUBLIC_CHAIN, TEST_NETWORK, TrustedKey
from pol.roles.submitter.submitter import Offer, Submitter
from pol.training.task.task_recorder import TaskRecorder
from pol.verification.profile.profile_claim import claim
from pol.verification.profile.profile_document import Profile
from pol.verification.verdict.verdict import Outcome, Reason

pytestmark = pytest.mark.long

MARKET_RULES, JOINED = OFTEN, ()
DAY = 24 * 3600
WINDOWS = ("profile", "bid", "seat", "watch", "disclosure", "training", "verification", "challenge")
TRAPS = [(f"{name}Window", f"{name}_window", 60, (365 if name == "training" else 90) * DAY) for name in WINDOWS]


@pytest.fixture(scope="module")
def final(node: Town) -> bytes:
    """A task with a final profile."""
    verifier = node.join(Verifier, "v")
    task_id, _ = submitted(node)
    profiled(verifier, task_id)
    return task_id


def won(town: Town, task_id: bytes) -> tuple[Verifier, Solver]:
    """The solver ``t`` has the task."""
    solver = town.join(Solver, "t")
    awarded(solver, task_id)
    return town.join(Verifier, "v"), solver


def commit(solver: Solver, task_id: bytes, root: Callable[[int], bytes]) -> None:
    """Commit without training: every checkpoint is the initial state, and all but the first have a root made up."""
    task = solver.task(task_id)
    recorder = TaskRecorder(solver.store, task)
    for index in range(task.document.segments + 1):
        recorder(index, task.initial_state)
    forged = [
        entry if entry.index == 0 else replace(entry, state_root=root(entry.index)) for entry in recorder.checkpoints
    ]
    recorder.checkpoints[:] = forged
    digest, proof = recorder.publish({})
    log = CheckpointLog([entry.state_root for entry in forged])
    assert proof.log_root == log.root()
    arguments = (len(forged), log.root(), [], bytes.fromhex(digest), log.inclusion(0))
    solver.market.proofs.commit(solver.wallet, task_id, *arguments)


# --- terms ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def terms(node: Town, final: bytes) -> Terms:
    """Of an ordinary task."""
    return node.join(Submitter, "s").market.registry.terms(final)


@pytest.mark.parametrize(("name", "field", "low", "high"), [*TRAPS, ("clock", "clock", 600, 14 * DAY)])
def test_terms_outside_of_a_policy_are_named(terms: Terms, name: str, field: str, low: int, high: int) -> None:
    PUBLIC_CHAIN.require(terms)
    for seconds in (low, high):
        trap = replace(terms, **{field: seconds})  # type: ignore[arg-type]  # each field is a number
        with pytest.raises(ProtocolError, match=rf"(?s){name} of {seconds} s.*Policy"):
            PUBLIC_CHAIN.require(trap)
        with pytest.raises(ProtocolError, match="clock") if field == "clock" else nullcontext():
            PUBLIC_CHAIN.require_clock(trap)


def test_terms_with_cheap_words_are_left_alone(terms: Terms) -> None:
    """The verifier's stake bounds the bond of a false word, which costs the solver its stake and price."""
    least = -(-(terms.maximum_price + terms.solver_stake) * 6_600 // 10_000)
    PUBLIC_CHAIN.require(replace(terms, verifier_stake=least))
    with pytest.raises(ProtocolError, match=f"verifier's stake of {least - 1}.*false words"):
        PUBLIC_CHAIN.require(replace(terms, verifier_stake=least - 1))


def test_proofs_that_this_party_does_not_trust(town: Town, terms: Terms) -> None:
    """A submitter that can forge proofs would win any dispute about a replay, and with it somebody's stake."""
    submitter = town.join(Submitter, "s")
    verifier = deploy_contract(submitter.wallet, "Groth16Verifier", bytes(18 * 32))
    pin = PinnedProofs(verifier, b"\1" * 32, b"\2" * 32, 20)
    nonce = int(submitter.market.registry.read("nonces", submitter.wallet.address))
    task_id = submitter.market.proven_steps.pin(submitter.wallet, nonce, terms, pin)
    assert submitter.market.registry.submit(submitter.wallet, terms) == task_id
    for party in (town.join(Verifier, "v"), town.join(Solver, "t"), town.join(Whistleblower, "w")):
        with pytest.raises(ProtocolError, match=f"proofs for the verifier {verifier} decide disputes"):
            party.require_proofs(task_id)
        key = bytes(submitter.market.proven_steps.key_digest(verifier))
        other = {verifier: TrustedKey("linear_regression", bytes(32))}
        party.policy = replace(party.policy, trusted_verifiers=other)
        with pytest.raises(ProtocolError, match="another key"):
            party.require_proofs(task_id)
        # A contract that says what this party trusts, and keeps a key of its own, or none.
        loader, code = bytes.fromhex("600b5981380380925939f3"), party.connection.web3.eth.get_code(verifier)
        says = party.wallet.deploy(loader + bytes(code).replace(key, bytes(32)))
        party.policy = replace(party.policy, trusted_verifiers={says: TrustedKey("linear_regression", bytes(32))})
        assert Binding(party.connection, says, "Groth16Verifier").read("keyDigest") == bytes(32)
        with pytest.raises(ProtocolError, match="isn't this package's Groth16Verifier"):
            party.trusted_network(says)
        # A key that it trusts, of a circuit that computes something else than this task.
        party.policy = replace(party.policy, trusted_verifiers={verifier: TrustedKey("linear_regression", key)})
        with pytest.raises(ProtocolError, match="another step than the task's program"):
            party.require_proofs(task_id)
    with pytest.raises(ProtocolError, match="--trust-verifier"):
        town.join(Verifier, "v").claim_seat(task_id)
    with pytest.raises(ProtocolError, match="--trust-verifier"):
        town.join(Solver, "t").bid(task_id)


def test_the_policies_follow_the_contract(final: bytes, town: Town, terms: Terms) -> None:
    """What the widest policy admits is what the contract admits, to the second."""
    submitter = town.join(Submitter, "s")
    low, high = TEST_NETWORK.min_clock, TEST_NETWORK.max_clock
    for clock in (low, high):
        submitter.market.registry.submit(submitter.wallet, replace(terms, clock=clock))
    for clock in (low - 1, high + 1):
        with pytest.raises(Reverted, match=r"InvalidTerms\(clock\)"):
            submitter.market.registry.submit(submitter.wallet, replace(terms, clock=clock))
        with pytest.raises(ProtocolError, match="clock"):
            TEST_NETWORK.require(replace(terms, clock=clock))
    assert astuple(TEST_NETWORK) != astuple(PUBLIC_CHAIN)


def test_nobody_stakes_on_a_clock_that_loses(town: Town) -> None:
    """Terms that the contract admits on test networks: every role refuses them until its policy allows them."""
    verifier, solver = town.join(Verifier, "v", TEST_NETWORK), town.join(Solver, "t", TEST_NETWORK)
    task_id, _ = submitted(town, replace(OFFER, clock=600, challenge_window=600))
    with pytest.raises(ProtocolError, match="challengeWindow of 600 s"):
        town.join(Verifier, "v").claim_seat(task_id)
    profiled(verifier, task_id)
    with pytest.raises(ProtocolError, match="challengeWindow of 600 s"):
        town.join(Solver, "t").bid(task_id)
    awarded(solver, task_id)
    solver.train(task_id)
    verified(verifier, task_id)
    (claim,) = verifier.market.verdicts.claims(task_id, 2)
    with pytest.raises(ProtocolError, match="clock of 600 s"):
        town.join(Whistleblower, "w").challenge(task_id, FalseClaim(ClaimCharge(0, ClaimChargeKind.REPLAY, 0), claim))


@pytest.mark.parametrize(
    ("message", "rules"),
    [
        ("moveGrace of 0 s", GameRules(move_grace=0)),
        ("replayGrace of 0 s", GameRules(replay_grace=0)),
        ("longest dispute of", GameRules(replay_grace=DAY)),
    ],
)
def test_nobody_plays_where_a_move_leaves_no_time_or_a_dispute_holds_money_for_a_season(
    town: Town, message: str, rules: GameRules
) -> None:
    verifier, task_id = town.join(Verifier, "v"), submitted(town)[0]
    other = deploy_contract(verifier.wallet, "DisputeGame", *court(town, rules))
    verifier.market = replace(verifier.market, game=DisputeGame(verifier.connection, other))
    with pytest.raises(ProtocolError, match=message):
        verifier.claim_seat(task_id)
    verifier.policy = TEST_NETWORK
    verifier.claim_seat(task_id)


def court(town: Town, rules: GameRules) -> tuple[ChecksumAddress | int, ...]:
    """What the game of a deployment with these rules is made of."""
    deployment = town.deployment
    contracts = (deployment.desks.challenges, deployment.one_step, deployment.starts)
    return (*contracts, rules.bits, rules.replay_grace, rules.move_grace)


# --- profiles ---------------------------------------------------------------------------------------------------------


def sitting(town: Town, offer: Offer = OFFER) -> tuple[bytes, Verifier]:
    """Who is going to profile a new task."""
    verifier = town.join(Verifier, "v")
    task_id, _ = submitted(town, offer)
    seated(verifier, task_id)
    return task_id, verifier


def test_a_solver_reads_the_profile_before_it_stakes(town: Town) -> None:
    """The thresholds decide over its stake, so they have to be final, and those of a profile that it can read."""
    solver = town.join(Solver, "t")
    task_id, verifier = sitting(town)
    with pytest.raises(OperationalError, match="no final profile"):
        solver.bid(task_id)
    honest = verifier.measure(task_id)
    tight = replace(honest.claim.reruns[0], distances=(1, 0, 0))
    doubled = claim(honest.claim.margin, honest.claim.portions, [tight, *honest.claim.reruns[1:]])
    verifier.store.put(honest.encode())
    verifier.market.profiles.post(verifier.wallet, task_id, doubled, honest.digest)
    with pytest.raises(OperationalError, match="no final profile"):
        solver.bid(task_id)
    conclude(verifier, task_id)
    with pytest.raises(ProtocolError, match=r"other thresholds|never measured"):
        solver.bid(task_id)


def test_a_profile_that_nobody_can_read_is_not_agreed_to(town: Town) -> None:
    solver = town.join(Solver, "t")
    task_id, verifier = sitting(town)
    post(verifier, task_id, verifier.measure(task_id), b"\x05" * 32)
    with pytest.raises(OperationalError, match="read object"):
        solver.bid(task_id)


def post(verifier: Verifier, task_id: bytes, profile: Profile, digest: bytes) -> None:
    """Post what a profile claims, and wait until it is final."""
    verifier.market.profiles.post(verifier.wallet, task_id, profile.claim, digest)
    conclude(verifier, task_id)


def test_an_invented_profile_is_found_out_by_repeating_it(town: Town) -> None:
    """Distances of zero fit thresholds at the floor; only a rerun tells that they were never measured."""
    solver = town.join(Solver, "t")
    task_id, verifier = sitting(town)
    honest = verifier.measure(task_id)
    reruns = [replace(rerun, distances=(0, 0, 0)) for rerun in honest.claim.reruns]
    invented = replace(honest, claim=claim(honest.claim.margin, honest.claim.portions, reruns))
    verifier.store.put(invented.encode())
    post(verifier, task_id, invented, invented.digest)
    with pytest.raises(ProtocolError, match="never measured"):
        solver.bid(task_id)


def test_a_solver_wants_a_margin(town: Town) -> None:
    solver = town.join(Solver, "t")
    task_id, _ = submitted(town, replace(OFFER, margin=1))
    with pytest.raises(ProtocolError, match="margin of 1"):
        solver.bid(task_id)


def test_terms_that_name_other_reruns_are_refused_by_everybody(final: bytes, town: Town, terms: Terms) -> None:
    """Whoever chooses the reordered programs chooses the thresholds: recomputed before anything is staked."""
    submitter, verifier, solver = town.join(Submitter, "s"), town.join(Verifier, "v"), town.join(Solver, "t")
    for change in ({"reruns": b"\x07" * 32}, {"rerun_count": 1}, {"looks": 1}):
        wrong = submitter.market.registry.submit(submitter.wallet, replace(terms, **change))
        for verb in (verifier.claim_seat, solver.bid):
            with pytest.raises(ProtocolError, match="other programs for the reruns"):
                verb(wrong)


def test_nobody_makes_more_reordered_programs_than_it_wants_to(final: bytes, town: Town, terms: Terms) -> None:
    submitter, verifier = town.join(Submitter, "s"), town.join(Verifier, "v")
    flood = submitter.market.registry.submit(submitter.wallet, replace(terms, rerun_count=1 << 15))
    with pytest.raises(ProtocolError, match="takes 65536 reruns"):
        verifier.claim_seat(flood)


def test_exact_training_needs_no_profile(town: Town) -> None:
    """The solver computes the defined bits, roots are equal, and the market pays."""
    verifier, solver = town.join(Verifier, "v"), town.join(Solver, "t")
    task_id, _ = submitted(town, replace(OFFER, margin=0))
    with pytest.raises(ProtocolError, match="needs no profile"):
        verifier.profile(task_id)
    awarded(solver, task_id)
    solver.train(task_id)
    (verdict,) = verified(verifier, task_id)
    assert verdict.outcome is Outcome.ACCEPTED
    assert verdict.reasons == (Reason.EQUAL_ROOTS,)
    settle(verifier, task_id)
    assert verifier.market.registry.task(task_id).outcome is TaskOutcome.ACCEPTED


# --- evidence that can't be replayed ----------------------------------------------------------------------------------


def test_bad_evidence_is_called_that_and_costs_the_solver_its_stake(final: bytes, town: Town) -> None:
    """The file that is published isn't the state that the log commits to: the solver can't show that state on chain."""
    verifier, solver = won(town, final)
    commit(solver, final, lambda index: keccak256(b"state %d" % index))
    before = gain(verifier)
    seated(verifier, final)
    verdicts = verifier.replay(final)
    assert [(v.outcome, v.reasons) for v in verdicts] == [(Outcome.REJECTED, (Fault.WRONG_ROOT,))]
    market, terms = verifier.market, verifier.market.registry.terms(final)
    deadline, submitter = market.registry.task(final).deadline, town.join(Submitter, "s")
    with pytest.raises(ProtocolError, match=f"before second {deadline}"):
        verifier.post(final, verdicts)
    with pytest.raises(ProtocolError, match="no claim about it can be defended"):
        verifier.verify(final)
    demands = market.demands.demands(final)
    assert [demand.entry for demand in demands] == [max(verdicts[0].segment, 1)]
    with pytest.raises(ProtocolError, match="state root"):
        data_availability.answer_demands(solver, final)
    asked, earned = gain(submitter), market.vault.free(solver.wallet.address)
    town.connection.wait_until(demands[-1].deadline)
    assert data_availability.expire_demands(town.join(Whistleblower, "w"), final) == demands
    assert gain(verifier) - before == terms.solver_stake // 16
    assert gain(submitter) - asked == terms.solver_stake // 2
    assert market.vault.free(solver.wallet.address) == earned
    state = market.registry.task(final)
    assert (state.status, state.is_seated, int(state.solver, 16)) == (Status.BIDDING, False, 0)


def test_a_missing_file_is_not_evidence(final: bytes, town: Town) -> None:
    verifier, solver = won(town, final)
    commit(solver, final, lambda index: keccak256(b"state %d" % index))
    seated(verifier, final)
    (verdict,) = verifier.replay(final)
    missing = replace(verdict, outcome=Outcome.INCONCLUSIVE, reasons=(Reason.NOT_AVAILABLE,), detail="not there")
    with pytest.raises(OperationalError, match="can't be replayed: not there"):
        verifier.post(final, [missing])


@pytest.mark.parametrize("forced", [False, True])
def test_a_zero_state_is_rejected_without_a_replay(final: bytes, town: Town, forced: bool) -> None:
    """Zero is no state: the contract rejects whatever is said about it, so the verifier says it and is paid.

    Also if it has to err about that very segment: there is nothing to replay when it discloses what is true.
    """
    verifier, solver = won(town, final)
    commit(solver, final, lambda index: bytes(32))
    seated_with_duty(verifier, final, forced)
    (verdict,) = verifier.verify(final)
    assert verdict.outcome is Outcome.REJECTED
    assert disclosed(verifier, final) == forced
    whistleblower = town.join(Whistleblower, "w")
    assert whistleblower.check(final) == []
    market = whistleblower.market
    settle(verifier, final)
    assert market.registry.task(final).outcome is TaskOutcome.REJECTED


# --- verbs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["submitter", "verifier", "whistleblower"])
def test_only_training_needs_torch(role: str) -> None:
    """Whoever replays or pays doesn't have to install it; a fresh process tells."""
    code = f"import sys, pol.roles.{role}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_profiler_measures_before_it_stakes(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    """From this start there is no threshold, whoever measures: the stake would be lost for want of a profile."""
    task = captured()
    start = [words.copy() for words in task.state]
    start[0].flat[0] = 0x7FC00000  # NaN
    # Whom this library doesn't keep from it.
    monkeypatch.setattr("pol.roles.submitter.submitter.require_distances", lambda *_: None)
    monkeypatch.setattr("pol.roles.submitter.submitter.bounded", lambda _store, task, *_: (task, None))
    monkeypatch.setattr("pol.roles.party.task_reader.require_distances", lambda *_: None)
    task_id = town.join(Submitter, "s").submit(replace(task, state=start), OFFER)
    verifier = town.join(Verifier, "v")
    before = gain(verifier)
    with pytest.raises(UnsupportedError, match="finite"):
        verifier.claim_seat(task_id)
    assert gain(verifier) == before
    assert verifier.market.seats.seating(task_id).until == 0
