"""Exact proofs by the solver's process on a real node: published for everybody, and shown on chain in a dispute."""

import logging
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from all_parties import Solver, Verifier, Whistleblower, next_of_solver
from log_market import Seer, run
from proven_town import INTERVAL, SEGMENTS, ProvenTown
from role_market import Town, acts, disclosed, gain, restored, seated_with_duty, waits

from cli_runner import Said, pol
from node_snapshots import unchanged
from pol.chain.account.wallet import Wallet
from pol.chain.desks.market import Matter
from pol.chain.desks.proven_steps import ProvenSteps
from pol.chain.desks.task_registry import Status
from pol.commitments.keccak import keccak256
from pol.demo.lying_players import Lie, LyingExecutor, draw_lie
from pol.dispute.position import Side
from pol.errors import ProtocolError
from pol.execution.executor import Executor
from pol.roles.party.policy import MINUTE
from pol.roles.party.role import Role
from pol.roles.process.party_process import DecisionResult, Process
from pol.roles.solver import proof_decisions, step_prover
from pol.roles.solver.solver_decisions import fulfill
from pol.roles.solver.step_prover import proofs_name
from pol.training.task.task_document import LoadedTask
from pol.zk.circuits import load_circuit
from pol.zk.exact import exact_prover
from pol.zk.exact.exact_proof_file import ExactProofs
from pol.zk.exact.exact_prover import ExactRun

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def proving(node: Town, tmp_path_factory: pytest.TempPathFactory) -> ProvenTown:
    return ProvenTown.of(node, tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def trained(proving: ProvenTown) -> bytes:
    return proving.trained()


@pytest.fixture
def town(proving: ProvenTown, trained: bytes, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProvenTown]:
    """The town with a trained task, and a store without proofs."""
    with restored(proving.town, tmp_path_factory.mktemp("copy") / "store"):
        yield proving


@pytest.fixture
def proved(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of steps that were proved, one for each call of the prover."""
    found, original = list[int](), exact_prover.prove

    def counted(keys: exact_prover.ExactKeys, first: object, data: list[object], *rest: object) -> ExactRun:
        found.append(len(data))
        return original(keys, first, data, *rest)

    monkeypatch.setattr(exact_prover, "prove", counted)
    return found


class Liar(Verifier):
    """Finds a wrong bit in a segment that is right."""

    @cached_property
    def lies(self) -> dict[int, Lie]:
        return {}

    def executor(self, task_id: bytes, task: LoadedTask, segment: int) -> Executor:
        honest, trace = super().executor(task_id, task, segment), super().execute(task_id, segment)
        self.lies[segment] = draw_lie(trace, range(len(trace.program.nodes)), Random(segment))
        return LyingExecutor(task.program, task.constants, honest, self.lies[segment])


def objected(town: ProvenTown, task_id: bytes) -> tuple[Seer, int, int]:
    """Somebody objects to a true segment: the objector, the segment and the number of the dispute."""
    seer = town.town.join(Seer, "w", town.policy)
    seer.bring(seer.market.proofs.proof(task_id).round)
    segment = min(set(range(SEGMENTS)) - set(seer.market.proofs.drawn_segments(task_id)))
    return seer, segment, seer.baseless(task_id, segment)


def done(solver: Solver) -> list[str]:
    """What its process does until it only waits, but for calls that anybody makes."""
    return [verb for verb in run(solver, next_of_solver) if verb != "open claims"]


def moves(role: Role, number: int) -> int:
    return len(role.market.objection_game.events("Moved", number=number))


def files(role: Role, task_id: bytes) -> list[str]:
    return [proofs_name(task_id, segment * INTERVAL) for segment in range(SEGMENTS)]


def test_it_publishes_proofs_of_its_training_that_hold(town: ProvenTown, trained: bytes, proved: list[int]) -> None:
    solver = town.solver()
    assert done(solver) == ["publish proofs"] * SEGMENTS
    found = [ExactProofs.from_json(solver.store.read(name)) for name in files(solver, trained)]
    (verifier,) = town.policy.trusted_verifiers
    pinned = solver.market.proven_steps.pinned(trained).verifier
    assert pinned == verifier
    digest = solver.market.proven_steps.key_digest(pinned)
    assert {proofs.key.digest for proofs in found} == {digest}
    steps = [step for proofs in found for step in proofs.steps]
    assert len(steps) == SEGMENTS * INTERVAL
    assert all(earlier.after == later.before for earlier, later in pairwise(steps))
    # As a stranger checks them, with another verifier than the prover's.
    for number, name in enumerate(files(solver, trained)[:2]):
        about = ("--task", trained.hex(), "--first-step", str(number * INTERVAL), "--key", digest.hex())
        assert pol("zk", "exact", "verify", town.town.folder / name, *about) == Said(0, match=f"task {trained.hex()}")
    # Anybody may bring them on chain, with what the store has.
    anybody = town.solver()
    assert anybody.show(trained, 1, found[1]) == anybody.proof(trained).checkpoints[2].state_root
    assert solver.missing_on_chain(trained, 1) == (0, 0)
    # A restart has nothing to prove, and writes no file again.
    assert proved == [INTERVAL] * SEGMENTS
    assert done(town.solver()) == []
    assert proved == [INTERVAL] * SEGMENTS


def test_a_killed_process_proves_what_is_missing(town: ProvenTown, trained: bytes, proved: list[int]) -> None:
    class KilledError(BaseException):
        pass

    solver = town.solver()
    assert "publish proofs" in [made.verb for made in Process(solver, next_of_solver).turn()]
    # Files of others, or damaged ones, are no proofs of this task.
    second, third = files(solver, trained)[1:3]
    solver.store.replace(second, solver.store.read(files(solver, trained)[0]))
    solver.store.replace(third, b"{}")

    def kill(name: str, data: bytes) -> None:
        raise KilledError

    solver.store.replace = kill
    with pytest.raises(KilledError):
        Process(solver, next_of_solver).turn()
    assert proved == [INTERVAL] * 2
    assert done(town.solver()) == ["publish proofs"] * (SEGMENTS - 1)
    assert proved == [INTERVAL] * (SEGMENTS + 1)


def test_an_objection_to_a_true_segment_ends_by_proof_without_a_move(
    town: ProvenTown, trained: bytes, proved: list[int]
) -> None:
    seer, segment, number = objected(town, trained)
    solver, desk = town.solver(), seer.market.objections
    bond, had, lost = desk.dispute(number).bond, gain(solver), gain(seer, tickets=1)
    estimate, sent = proof_decisions._gas(solver, trained, segment), len(solver.wallet.receipts)
    (taken,) = Process(solver, next_of_solver).turn()
    assert (taken.verb, taken.result) == ("settle by proof", DecisionResult.DONE)
    assert moves(seer, number) == 0
    assert desk.objected(trained).open == 0
    assert not desk.objected(trained).fell
    assert desk.dispute(number).is_settled
    assert gain(solver) == had + bond // 2
    assert gain(seer, tickets=1) == lost
    spent = sum(receipt["gasUsed"] for receipt in solver.wallet.receipts[sent:])
    assert spent < estimate < 1.2 * spent
    # What was proved for the dispute is in the store, too: nothing is proved twice.
    assert done(solver) == ["publish proofs"] * (SEGMENTS - 1)
    assert proved == [INTERVAL] * SEGMENTS
    # The next objection to the segment costs it only the settlement.
    again = seer.baseless(trained, segment)
    assert proof_decisions._gas(solver, trained, segment) == proof_decisions.SETTLE_GAS
    assert done(town.solver()) == ["settle by proof"]
    assert desk.dispute(again).is_settled
    assert proved == [INTERVAL] * SEGMENTS


def test_what_is_on_chain_is_not_shown_twice(
    town: ProvenTown, trained: bytes, proved: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed between two transactions, it goes on with the next one."""

    class KilledError(BaseException):
        pass

    seer, segment, number = objected(town, trained)
    solver, desk, original = town.solver(), seer.market.proven_steps, ProvenSteps.prove
    monkeypatch.setattr(step_prover, "AT_ONCE", 1)

    def killed(self: ProvenSteps, *arguments: object) -> int:
        if desk.events("StepProven", taskId=trained):
            raise KilledError
        return original(self, *arguments)

    monkeypatch.setattr(ProvenSteps, "prove", killed)
    with pytest.raises(KilledError):
        Process(solver, next_of_solver).turn()
    monkeypatch.setattr(ProvenSteps, "prove", original)
    assert solver.missing_on_chain(trained, segment) == (INTERVAL - 1, 0)
    assert Process(town.solver(), next_of_solver).turn()[0].verb == "settle by proof"
    assert seer.market.objections.dispute(number).is_settled
    steps = [event["step"] for event in desk.events("StepProven", taskId=trained)]
    assert steps == [segment * INTERVAL + place for place in range(INTERVAL)]
    assert len(desk.events("Tied", taskId=trained)) == 2
    assert proved == [INTERVAL]


def test_a_stranger_who_proves_the_next_step_first_holds_up_no_segment(
    town: ProvenTown, trained: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between each look of the solver and its batch."""
    solver, stranger, original = town.solver(), town.town.join(Whistleblower, "w", town.policy), ProvenSteps.prove
    done(solver)
    proofs = ExactProofs.from_json(solver.store.read(files(solver, trained)[1]))

    def cut(self: ProvenSteps, wallet: Wallet, *about: Any) -> int:
        *where, steps, before = about
        original(self, stranger.wallet, *where, steps[:1], before)
        return original(self, wallet, *where, steps, before)

    monkeypatch.setattr(ProvenSteps, "prove", cut)
    assert solver.show(trained, 1, proofs) == solver.proof(trained).checkpoints[2].state_root
    assert solver.missing_on_chain(trained, 1) == (0, 0)


def test_moves_come_first_where_time_is_short_or_the_proof_too_dear(
    town: ProvenTown, trained: bytes, proved: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    seer, _, number = objected(town, trained)
    solver, game = town.solver(), seer.market.objection_game
    with monkeypatch.context() as patch:
        patch.setattr(proof_decisions, "STEP_GAS", 10**12)
        assert acts(next_of_solver(solver, trained)).verb == "move"
    # A training that is under way isn't delayed by a proof.
    before = game.deadline(number)
    with unchanged(seer.connection):
        fulfill(town.solver(), trained)
        assert moves(seer, number) == 1
    solver.connection.wait_until(before - 2 * proof_decisions.RESERVE * MINUTE + MINUTE)
    assert acts(next_of_solver(town.solver(), trained)).verb == "settle by proof"
    solver.connection.wait_until(before - proof_decisions.RESERVE * MINUTE)
    assert acts(next_of_solver(town.solver(), trained)).verb == "move"
    assert proved == []


def test_a_step_without_a_proof_is_left_to_the_game(town: ProvenTown, caplog: pytest.LogCaptureFixture) -> None:
    """A number beyond 24 bits: the court's program computes it, the circuit doesn't."""
    task_id = town.trained(size=7.9)
    seer, segment, number = objected(town, task_id)
    solver = town.solver()
    process = Process(solver, next_of_solver)
    with caplog.at_level(logging.WARNING):
        taken = next(made for made in process.turn() if made.task_id == task_id)
    assert (taken.verb, taken.result) == ("settle by proof", DecisionResult.REFUSED)
    assert "leaves the range of 24 bits" in taken.detail
    assert f"no proof of segment {segment}, the game decides" in caplog.text
    # The move was made in the same turn, and the game goes on as any other.
    assert moves(seer, number) == 1
    game, sides = seer.market.objection_game, (seer, solver)
    sessions = [side.session(task_id, number, Matter.OBJECTION) for side in sides]
    while game.winner(number) is Side.NONE:
        assert any(session.advance() for session in sessions)
    assert game.winner(number) is Side.ASSERTER


def test_a_false_verdict_about_a_true_segment_falls_by_proof(town: ProvenTown, trained: bytes) -> None:
    solver, liar = town.solver(), town.town.join(Liar, "v", town.policy)
    seated_with_duty(liar, trained, forced=False)
    liar.verify(trained)
    disclosed(liar, trained)
    whistleblower = town.town.join(Whistleblower, "w", town.policy)
    (finding, *_) = whistleblower.check(trained)
    number = whistleblower.challenge(trained, finding)
    desk, before = whistleblower.market.challenges, gain(whistleblower, tickets=1)
    (taken,) = Process(solver, next_of_solver).turn()
    assert (taken.verb, taken.result) == ("settle by proof", DecisionResult.DONE)
    assert desk.dispute(number).is_settled
    assert desk.contested(trained).fell
    assert not whistleblower.market.game.events("Moved", number=number)
    assert gain(whistleblower, tickets=1) > before
    assert solver.market.registry.task(trained).status is not Status.CLOSED


def test_a_true_verdict_is_its_verifiers_to_defend(town: ProvenTown, trained: bytes) -> None:
    solver, verifier = town.solver(), town.town.join(Verifier, "v", town.policy)
    seated_with_duty(verifier, trained, forced=False)
    verifier.verify(trained)
    disclosed(verifier, trained)
    assert done(solver) == ["publish proofs"] * SEGMENTS


@pytest.mark.parametrize("other", [False, True], ids=["no key", "another key"])
def test_a_solver_without_the_key_does_not_bid(town: ProvenTown, tmp_path: Path, other: bool) -> None:
    task_id = town.submitted()
    if other:
        exact_prover.setup(load_circuit("linear_regression"), tmp_path)
    solver = town.solver(tmp_path)
    told = f"this task asks for exact proofs of the circuit linear_regression.* {'another' if other else 'no'} key"
    why = waits(next_of_solver(solver, task_id))
    with pytest.raises(ProtocolError, match=told) as refused:
        solver.bid(task_id)
    assert why == str(refused.value)
    assert "--proving-keys DIR" in why
    assert acts(next_of_solver(town.solver(), task_id)).verb == "bid"


def test_an_operator_names_trusted_verifier_and_keys(
    town: ProvenTown, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    town.submitted()
    url, document = town.town.connection.name, tmp_path / "deployment.json"
    document.write_text(town.town.deployment.to_json())
    monkeypatch.setenv("SOLVER_KEY", keccak256(b"t").hex())
    ((verifier, trusted),) = town.policy.trusted_verifiers.items()
    party = ("--deployment", document, "--rpc", url, "--store", town.town.store_url, "--key-env", "SOLVER_KEY")
    trust = ("--trust-verifier", f"{verifier}={trusted.circuit}:{trusted.digest.hex()}", "--turns", "1")
    command = ("run", "solver", *party, *trust)
    without, able = (("--data", tmp_path / name, "--proving-keys") for name in ("without", "able"))
    assert pol(*command, *without, tmp_path) == Said(0, match="holds no key of that circuit")
    assert pol(*command, *able, town.root) == Said(0, match="bid: the task pays up to")


def test_without_its_keys_it_still_answers_in_the_game(town: ProvenTown, trained: bytes, tmp_path: Path) -> None:
    seer, _, number = objected(town, trained)
    solver = town.solver(tmp_path)
    assert done(solver) == ["move"]
    assert moves(seer, number) == 1
    assert "it publishes no proofs, and answers in the game" in waits(next_of_solver(solver, trained))
