"""A submitter publishes a circuit's steps and pins a verifier of their proofs; what isn't sound stakes nothing."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import role_market
from all_parties import Solver, Verifier, next_of_solver
from proven_town import EXACT, ProvenTown
from role_market import Town, awarded, captured, waits

from circuit_steps import CIRCUIT, INTERVAL, STEPS, drawn_step
from pol.chain.desks.task_registry import TaskRegistry
from pol.errors import ProtocolError
from pol.roles.party.decisions import Action
from pol.roles.party.policy import PUBLIC_CHAIN, TrustedKey
from pol.roles.party.proof_pins import pin_of
from pol.roles.submitter.submitter import TOLERANT, Offer, Submitter, terms_of
from pol.training.task import published_task
from pol.training.task.learning_proof import load_checkpoint
from pol.training.task.task_source import TaskStep
from pol.verification.profile.profiling import rerun_programs, rerun_programs_root
from pol.zk.fixed_point import integer_step, quantize

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def proven(node: Town, tmp_path_factory: pytest.TempPathFactory) -> ProvenTown:
    return ProvenTown.of(node, tmp_path_factory.mktemp("keys"))


@pytest.fixture
def submitter(proven: ProvenTown, town: Town) -> Submitter:
    return town.join(Submitter, "s", proven.policy)


@contextmanager
def nothing_happens(submitter: Submitter) -> Iterator[None]:
    """Nothing is sent, and nothing put into the store."""
    folder, sent = Path(submitter.store.url.removeprefix("file://")), len(submitter.wallet.receipts)
    files = set(folder.iterdir())
    yield
    assert (set(folder.iterdir()), len(submitter.wallet.receipts)) == (files, sent)


def test_it_is_pinned_before_it_exists_and_trained_like_any_other(proven: ProvenTown, submitter: Submitter) -> None:
    step, solver = drawn_step(), proven.solver()
    task_id = submitter.submit(step, EXACT, verifier=proven.verifier)
    desk = submitter.market.proven_steps
    expected = pin_of(proven.verifier, step.program, step.constants, STEPS, step.network)
    assert desk.pinned(task_id) == expected
    (pinned,), (opened,) = desk.events("Pinned"), submitter.market.registry.events("TaskSubmitted")
    assert pinned["taskId"] == opened["taskId"] == task_id
    awarded(solver, task_id)
    solver.train(task_id)
    # The trained vector is the one of the integer rule.
    proof = submitter.proof(task_id)
    (end,) = load_checkpoint(submitter.store, submitter.task(task_id), proof.checkpoints[-1])
    network = step.network
    vector, *data = (quantize(words.view(np.float32), network.scale) for words in (*step.state, *step.constants))
    for inputs in zip(*(np.split(numbers, STEPS) for numbers in data), strict=True):
        vector = integer_step(network, [vector, *inputs])
    assert np.array_equal(quantize(end.view(np.float32), network.scale), vector)
    assert submitter.has_model(task_id)


def test_without_a_verifier_it_asks_for_no_proofs(proven: ProvenTown, submitter: Submitter) -> None:
    task_id = submitter.submit(drawn_step(), EXACT)
    assert not submitter.market.proven_steps.pinned(task_id).is_pinned
    solver = proven.town.join(Solver, "t")  # it trusts no verifier, and has no keys
    awarded(solver, task_id)
    solver.train(task_id)
    decision = next_of_solver(solver, task_id)
    assert not isinstance(decision, Action) or decision.verb != "publish proofs"
    assert submitter.market.registry.terms(task_id).is_exact


def test_an_offer_that_admits_a_distance_is_refused(submitter: Submitter) -> None:
    tolerant = replace(EXACT, margin=TOLERANT, rerun_count=2, looks=2)
    for attempt in (submitter.quote, submitter.submit):
        with nothing_happens(submitter), pytest.raises(ProtocolError, match=r"a margin of \d+, and a circuit's steps"):
            attempt(drawn_step(), tolerant)


def test_data_of_another_number_of_steps_are_refused(submitter: Submitter) -> None:
    with nothing_happens(submitter), pytest.raises(ProtocolError, match="aren't those of 15 steps"):
        submitter.submit(drawn_step(), replace(EXACT, steps=STEPS + INTERVAL))


def test_a_verifier_of_other_proofs_is_not_pinned(proven: ProvenTown, submitter: Submitter) -> None:
    def refused(step: TaskStep, offer: Offer, circuit: str, key: bytes, problem: str) -> None:
        submitter.policy = replace(
            PUBLIC_CHAIN, trusted_verifiers={proven.verifier: TrustedKey(circuit, key)} if key else {}
        )
        with nothing_happens(submitter), pytest.raises(ProtocolError, match=problem):
            submitter.submit(step, offer, verifier=proven.verifier)

    key = proven.keys.verifying_key.digest
    refused(drawn_step(), EXACT, "momentum", key, "computes another step than the task's program")
    refused(drawn_step(), EXACT, CIRCUIT, bytes(32), "has another key than")
    ordinary = replace(EXACT, steps=role_market.STEPS, interval=role_market.INTERVAL)
    refused(captured(), ordinary, CIRCUIT, key, "computes another step than the task's program")
    refused(drawn_step(), EXACT, CIRCUIT, b"", "--trust-verifier")


def test_killed_between_pin_and_submission_it_does_both_again(
    proven: ProvenTown, submitter: Submitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    class KilledError(BaseException):
        pass

    def killed(*_: object) -> bytes:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(TaskRegistry, "submit", killed)
        with pytest.raises(KilledError):
            submitter.submit(drawn_step(), EXACT, verifier=proven.verifier)
    again = proven.town.join(Submitter, "s", proven.policy)
    task_id = again.submit(drawn_step(), EXACT, verifier=proven.verifier)
    assert [event["taskId"] for event in again.market.proven_steps.events("Pinned")] == [task_id, task_id]
    proven.solver().require_proofs(task_id)


def by_hand(submitter: Submitter, offer: Offer) -> bytes:
    """The task past the submitter's own checks."""
    step = drawn_step()
    digest, document = published_task.publish(submitter.store, step, steps=STEPS, interval=INTERVAL)
    terms = terms_of(document.work, offer)
    terms = replace(
        terms,
        reruns=rerun_programs_root(rerun_programs(step.program, terms.rerun_count, terms.looks)),
        program=document.program_hash,
        constants=document.constants_root,
        initial_state=document.initial_state_root,
        document=bytes.fromhex(digest),
    )
    return submitter.market.registry.submit(submitter.wallet, terms)


def test_nobody_stakes_on_a_circuit_with_thresholds(proven: ProvenTown, submitter: Submitter) -> None:
    task_id = by_hand(submitter, replace(EXACT, margin=TOLERANT, rerun_count=2, looks=2))
    verifier, solver = proven.town.join(Verifier, "v"), proven.solver()
    for attempt in (lambda: verifier.claim_seat(task_id), lambda: solver.bid(task_id)):
        with pytest.raises(ProtocolError, match="have the same bits everywhere, and its terms admit a distance"):
            attempt()
    waits(next_of_solver(solver, task_id))
    assert not verifier.market.vault.balances(solver.wallet.address).locked
