"""What a party refuses before it stakes, and what it says where the contract leaves it alone."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import astuple, replace
from pathlib import Path

import pytest
from town import OFFER, Town, profiled

from pol.chain.deployment import GameRules
from pol.chain.market import Status, TaskOutcome, Terms
from pol.chain.wallet import Reverted
from pol.commitments.keccak import keccak256
from pol.commitments.log import CheckpointLog
from pol.commitments.program import program_header
from pol.dispute.position import Kind
from pol.errors import OperationalError, ProtocolError
from pol.roles.policy import PUBLIC_CHAIN, TEST_NETWORK
from pol.roles.solver import Solver
from pol.roles.submitter import Offer, Submitter
from pol.roles.verifier import Verifier
from pol.roles.whistleblower import Finding, Whistleblower
from pol.training import digits
from pol.training.solver import TaskRecorder
from pol.verification.profile import Profile
from pol.verification.profile_claim import claim
from pol.verification.verdict import Outcome, Reason

DAY = 24 * 3600
TRAPS = [
    ("profileWindow", {"profile_window": 60}),
    ("profileWindow", {"profile_window": 90 * DAY}),
    ("trainingWindow", {"training_window": 60}),
    ("trainingWindow", {"training_window": 365 * DAY}),
    ("verificationWindow", {"verification_window": 60}),
    ("verificationWindow", {"verification_window": 90 * DAY}),
    ("challengeWindow", {"challenge_window": 60}),
    ("challengeWindow", {"challenge_window": 90 * DAY}),
    ("clock", {"clock": 600}),
    ("clock", {"clock": 14 * DAY}),
]


@pytest.fixture
def town(tmp_path: Path) -> Town:
    return Town(tmp_path)


def opened(town: Town, offer: Offer = OFFER) -> tuple[bytes, Submitter]:
    submitter = town.join(Submitter, "s")
    return submitter.submit(digits.captured(2), offer), submitter


def accepted(town: Town) -> tuple[bytes, Verifier, Solver]:
    task_id, _ = opened(town)
    verifier, solver = town.join(Verifier, "v"), town.join(Solver, "t")
    verifier.join(task_id)
    profiled(verifier, task_id)
    solver.accept(task_id)
    return task_id, verifier, solver


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
    solver.market.commit_proof(solver.wallet, task_id, *arguments)


# --- terms ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("field", "change"), TRAPS, ids=[f"{f}-{next(iter(c.values()))}" for f, c in TRAPS])
def test_terms_outside_of_a_policy_are_named(field: str, change: dict[str, int]) -> None:
    terms = Terms(*[b"\x01" * 32] * 5, 100, 10, 1, 1000, 4, 4, 1, 1, 8, 2, 64, DAY, DAY, DAY, DAY, 6 * 3600)
    PUBLIC_CHAIN.require(terms)
    with pytest.raises(ProtocolError, match=f"{field} of {next(iter(change.values()))} s") as refused:
        PUBLIC_CHAIN.require(replace(terms, **change))
    assert "Policy" in str(refused.value)
    if field == "clock":
        with pytest.raises(ProtocolError, match="clock"):
            PUBLIC_CHAIN.require_clock(replace(terms, **change))
    else:
        PUBLIC_CHAIN.require_clock(replace(terms, **change))


def test_the_policies_follow_the_contract(town: Town) -> None:
    """What the widest policy admits is what the contract admits, to the second."""
    task_id, submitter = opened(town)
    terms, fee = submitter.market.terms(task_id), submitter.market.task(task_id).fee
    low, high = TEST_NETWORK.min_clock, TEST_NETWORK.max_clock
    for clock in (low, high):
        submitter.market.submit(submitter.wallet, replace(terms, clock=clock), fee)
    for clock in (low - 1, high + 1):
        with pytest.raises(Reverted, match=r"InvalidTerms\(clock\)"):
            submitter.market.submit(submitter.wallet, replace(terms, clock=clock), fee)
        with pytest.raises(ProtocolError, match="clock"):
            TEST_NETWORK.require(replace(terms, clock=clock))
    assert astuple(TEST_NETWORK) != astuple(PUBLIC_CHAIN)


def test_nobody_stakes_on_a_clock_that_loses(town: Town) -> None:
    """Terms that the contract admits on test networks: every role refuses them until its policy allows them."""
    quick = replace(OFFER, clock=600, challenge_window=600)
    task_id, _ = opened(town, quick)
    with pytest.raises(ProtocolError, match="challengeWindow of 600 s"):
        town.join(Verifier, "v").join(task_id)
    verifier = town.join(Verifier, "v", TEST_NETWORK)
    verifier.join(task_id)
    profiled(verifier, task_id)
    with pytest.raises(ProtocolError, match="challengeWindow of 600 s"):
        town.join(Solver, "t").accept(task_id)
    solver = town.join(Solver, "t", TEST_NETWORK)
    solver.accept(task_id)
    solver.train(task_id)
    verifier.verify(task_id)
    claim = verifier.market.claims(task_id, 1)[0]
    with pytest.raises(ProtocolError, match="clock of 600 s"):
        town.join(Whistleblower, "w").challenge(task_id, Finding(0, claim, Kind.REPLAY, 0))


@pytest.mark.parametrize(
    ("field", "rules"), [("moveGrace", GameRules(move_grace=0)), ("replayGrace", GameRules(replay_grace=0))]
)
def test_nobody_plays_where_a_late_move_leaves_no_time(tmp_path: Path, field: str, rules: GameRules) -> None:
    town = Town(tmp_path, rules)
    task_id, _ = opened(town)
    with pytest.raises(ProtocolError, match=f"{field} of 0 s"):
        town.join(Verifier, "v").join(task_id)
    town.join(Verifier, "v", TEST_NETWORK).join(task_id)


def test_nobody_lets_a_dispute_hold_its_money_for_a_season(tmp_path: Path) -> None:
    town = Town(tmp_path, GameRules(replay_grace=DAY))
    task_id, _ = opened(town)
    with pytest.raises(ProtocolError, match="longest dispute of"):
        town.join(Verifier, "v").join(task_id)


# --- profiles ---------------------------------------------------------------------------------------------------------


def test_a_solver_reads_the_profile_before_it_stakes(town: Town) -> None:
    """The thresholds decide over its stake, so they have to be final, and those of a profile that it can read."""
    task_id, _ = opened(town)
    verifier, solver = town.join(Verifier, "v"), town.join(Solver, "t")
    with pytest.raises(OperationalError, match="no profile"):
        solver.accept(task_id)
    verifier.join(task_id)
    with pytest.raises(OperationalError, match="no profile"):
        solver.accept(task_id)
    honest = verifier.profile(task_id)
    with pytest.raises(OperationalError, match="aren't final yet"):
        solver.accept(task_id)
    with pytest.raises(Reverted, match="Contestable"):
        verifier.market.leave_as_verifier(verifier.wallet, task_id)
    town.connection.wait_until(verifier.profiles.standing(task_id).deadline)
    verifier.market.leave_as_verifier(verifier.wallet, task_id)
    with pytest.raises(OperationalError, match="no profile"):
        solver.accept(task_id)

    verifier.join(task_id)
    tight = replace(honest.claim.reruns[0], distances=(1, 0, 0))
    doubled = claim(honest.claim.margin, honest.claim.portions, [tight, *honest.claim.reruns[1:]])
    post(verifier, task_id, replace(honest, claim=doubled), honest.digest)
    with pytest.raises(ProtocolError, match=r"other thresholds|never measured"):
        solver.accept(task_id)
    assert solver.market.task(task_id).status is Status.OPEN


def test_a_profile_that_nobody_can_read_is_not_agreed_to(town: Town) -> None:
    task_id, _ = opened(town)
    verifier, solver = town.join(Verifier, "v"), town.join(Solver, "t")
    verifier.join(task_id)
    post(verifier, task_id, verifier.measure(task_id), b"\x05" * 32)
    with pytest.raises(OperationalError, match="read object"):
        solver.accept(task_id)


def post(verifier: Verifier, task_id: bytes, profile: Profile, digest: bytes) -> None:
    """Post what a profile claims, and wait until it is final."""
    verifier.profiles.post(verifier.wallet, task_id, profile.claim, digest)
    verifier.connection.wait_until(verifier.profiles.standing(task_id).deadline)


def test_an_invented_profile_is_found_out_by_repeating_it(town: Town) -> None:
    """Distances of zero fit thresholds at the floor; only a rerun tells that they were never measured."""
    task_id, _ = opened(town)
    verifier, solver = town.join(Verifier, "v"), town.join(Solver, "t")
    verifier.join(task_id)
    honest = verifier.measure(task_id)
    reruns = [replace(rerun, distances=(0, 0, 0)) for rerun in honest.claim.reruns]
    invented = replace(honest, claim=claim(honest.claim.margin, honest.claim.portions, reruns))
    verifier.store.put(invented.encode())
    post(verifier, task_id, invented, invented.digest)
    with pytest.raises(ProtocolError, match="never measured"):
        solver.accept(task_id)
    verifier.market.leave_as_verifier(verifier.wallet, task_id)
    verifier.join(task_id)
    profiled(verifier, task_id)
    solver.accept(task_id)
    assert solver.market.task(task_id).status is Status.TRAINING


def test_a_solver_wants_a_margin(town: Town) -> None:
    task_id, _ = opened(town, replace(OFFER, margin=1))
    with pytest.raises(ProtocolError, match="margin of 1"):
        town.join(Solver, "t").accept(task_id)


def test_terms_that_name_other_reruns_are_refused_by_everybody(town: Town) -> None:
    """Whoever chooses the reordered programs chooses the thresholds: recomputed before anything is staked."""
    task_id, submitter = opened(town)
    terms, fee = submitter.market.terms(task_id), submitter.market.task(task_id).fee
    chosen = submitter.market.submit(submitter.wallet, replace(terms, reruns=b"\x07" * 32), fee)
    fewer = submitter.market.submit(submitter.wallet, replace(terms, rerun_count=1), fee)
    for wrong in (chosen, fewer):
        with pytest.raises(ProtocolError, match="other programs for the reruns"):
            town.join(Verifier, "v").join(wrong)
        with pytest.raises(ProtocolError, match="other programs for the reruns"):
            town.join(Solver, "t").accept(wrong)


def test_nobody_makes_more_reordered_programs_than_it_wants_to(town: Town) -> None:
    task_id, submitter = opened(town)
    terms, fee = submitter.market.terms(task_id), submitter.market.task(task_id).fee
    flood = submitter.market.submit(submitter.wallet, replace(terms, rerun_count=1 << 16), fee)
    with pytest.raises(ProtocolError, match="takes 65536 reruns"):
        town.join(Verifier, "v").join(flood)


def test_exact_training_needs_no_profile(town: Town) -> None:
    """The solver computes the defined bits, roots are equal, and the market pays."""
    task_id, _ = opened(town, replace(OFFER, margin=0))
    verifier, solver = town.join(Verifier, "v"), town.join(Solver, "t")
    verifier.join(task_id)
    with pytest.raises(ProtocolError, match="needs no profile"):
        verifier.profile(task_id)
    solver.accept(task_id)
    solver.train(task_id)
    (verdict,) = verifier.verify(task_id)
    assert verdict.outcome is Outcome.ACCEPTED
    assert verdict.reasons == (Reason.EQUAL_ROOTS,)
    assert verifier.market.task(task_id).accepted


# --- evidence that can't be replayed ----------------------------------------------------------------------------------


def test_bad_evidence_is_called_that_and_costs_the_stake_by_default(town: Town) -> None:
    """The file that is published isn't the state that the log commits to: nothing can be said about it on chain."""
    task_id, verifier, solver = accepted(town)
    commit(solver, task_id, lambda index: keccak256(b"state %d" % index))
    verdicts = verifier.replay(task_id)
    assert [(v.outcome, v.reasons) for v in verdicts] == [(Outcome.REJECTED, (Reason.WRONG_ROOT,))]
    with pytest.raises(ProtocolError, match="no availability challenge") as refused:
        verifier.post(task_id, verdicts)
    state, terms = verifier.market.task(task_id), verifier.market.terms(task_id)
    assert str(state.deadline) in str(refused.value)
    with pytest.raises(Reverted, match="WrongStatus"):
        verifier.market.leave_as_verifier(verifier.wallet, task_id)
    stranger = town.join(Whistleblower, "w")
    with pytest.raises(Reverted, match="DeadlineNotPassed"):
        stranger.market.claim_verifier_default(stranger.wallet, task_id)
    town.connection.wait_until(state.deadline)
    stranger.market.claim_verifier_default(stranger.wallet, task_id)
    assert stranger.market.credit(state.submitter) == terms.verifier_stake // 2
    state = stranger.market.task(task_id)
    assert (state.status, int(state.verifier, 16), state.deadline) == (Status.DRAWN, 0, 0)


def test_a_verifier_that_vanishes_is_replaced(town: Town) -> None:
    task_id, verifier, solver = accepted(town)
    solver.train(task_id)
    verifier.replay(task_id)
    town.connection.wait_until(verifier.market.task(task_id).deadline)
    solver.market.claim_verifier_default(solver.wallet, task_id)
    late = town.join(Verifier, "late")
    late.join(task_id)
    late.verify(task_id)
    town.connection.wait_until(late.market.task(task_id).deadline)
    late.market.settle(late.wallet, task_id)
    terms = late.market.terms(task_id)
    assert late.market.credit(late.wallet.address) == terms.verifier_fee + terms.verifier_stake
    assert late.market.credit(verifier.wallet.address) == 0


def test_a_missing_file_is_not_evidence(town: Town) -> None:
    task_id, verifier, solver = accepted(town)
    commit(solver, task_id, lambda index: keccak256(b"state %d" % index))
    (verdict,) = verifier.replay(task_id)
    missing = replace(verdict, outcome=Outcome.INCONCLUSIVE, reasons=(Reason.NOT_AVAILABLE,), detail="not there")
    with pytest.raises(OperationalError, match="can't be replayed: not there"):
        verifier.post(task_id, [missing])


def test_a_zero_state_is_rejected_without_a_replay(town: Town) -> None:
    """Zero is no state: the contract rejects whatever is said about it, so the verifier says it and is paid."""
    task_id, verifier, solver = accepted(town)
    commit(solver, task_id, lambda index: bytes(32))
    (verdict,) = verifier.verify(task_id)
    assert verdict.outcome is Outcome.REJECTED
    whistleblower = town.join(Whistleblower, "w")
    assert whistleblower.check(task_id) == []
    claim = whistleblower.market.claims(task_id, 1)[0]
    header, market = program_header(whistleblower.task(task_id).program), whistleblower.market
    for kind, component in ((Kind.REPLAY, 0), (Kind.DISTANCE, 1)):
        with pytest.raises(Reverted, match="InvalidChallenge"):
            market.challenge(whistleblower.wallet, task_id, 0, claim, kind, component, header, b"")
    town.connection.wait_until(verifier.market.task(task_id).deadline)
    verifier.market.settle(verifier.wallet, task_id)
    assert verifier.market.task(task_id).outcome is TaskOutcome.REJECTED


# --- verbs ------------------------------------------------------------------------------------------------------------


def test_a_cancelled_task_pays_everything_back(town: Town) -> None:
    task_id, submitter = opened(town)
    verifier = town.join(Verifier, "v")
    verifier.join(task_id)
    terms, state = submitter.market.terms(task_id), submitter.market.task(task_id)
    with pytest.raises(Reverted, match="NotAllowed"):
        verifier.market.cancel(verifier.wallet, task_id)
    submitter.market.cancel(submitter.wallet, task_id)
    assert submitter.market.task(task_id).outcome is TaskOutcome.CANCELLED
    assert submitter.market.credit(submitter.wallet.address) == state.fee
    assert submitter.market.credit(verifier.wallet.address) == terms.verifier_stake


def test_every_challenge_costs_the_next_one_twice_as_much(town: Town) -> None:
    """The bond of the moment is paid, whatever the terms say; who loses by its clock loses it."""
    task_id, verifier, solver = accepted(town)
    solver.train(task_id)
    verifier.verify(task_id)
    whistleblower = town.join(Whistleblower, "w")
    market, bond = whistleblower.market, whistleblower.market.terms(task_id).bond
    claim = market.claims(task_id, 1)[0]
    header = program_header(whistleblower.task(task_id).program)
    # State roots that nobody executed: the steps of a segment are opened in eight parts.
    roots = b"".join(keccak256(b"root %d" % i) for i in range(8))
    for earlier in range(2):
        assert market.bond_of(task_id) == bond << earlier
        dispute = market.challenge(whistleblower.wallet, task_id, 0, claim, Kind.REPLAY, 0, header, roots)
        assert market.events("Challenged", dispute=dispute)[0]["bond"] == bond << earlier
        verifier.defend(task_id).advance()
        town.connection.wait_until(whistleblower.game.deadline(dispute))
        verifier.game.timeout(verifier.wallet, dispute)
        state = market.task(task_id)
        assert (state.status, state.challenges, state.open) == (Status.VERDICT, earlier + 1, 0)
    assert market.credit(verifier.wallet.address) == sum((bond << earlier) // 2 for earlier in range(2))


@pytest.mark.parametrize("role", ["submitter", "verifier", "whistleblower"])
def test_only_training_needs_torch(role: str) -> None:
    """Whoever replays or pays doesn't have to install it; a fresh process tells."""
    code = f"import sys, pol.roles.{role}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_task_id_is_what_the_specification_says(town: Town) -> None:
    """docs/spec/market.md: twenty-five words, recomputed without the contract."""
    task_id, submitter = opened(town)
    market, terms = submitter.market, submitter.market.terms(task_id)
    hashes, numbers = astuple(terms)[:5], astuple(terms)[5:]
    addresses = [bytes(12) + bytes.fromhex(a[2:]) for a in (market.address, submitter.wallet.address)]
    words = [town.connection.chain_id.to_bytes(32, "big"), *addresses, bytes(32), *hashes]
    words += [number.to_bytes(32, "big") for number in numbers]
    assert len(words) == 25
    assert keccak256(b"".join(words)) == task_id
