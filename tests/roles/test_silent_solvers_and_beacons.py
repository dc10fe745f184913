"""A verifier's process where beacon or solver are silent: it keeps its stake and its bonds."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from all_parties import Submitter, Verifier, Whistleblower, next_of_submitter, next_of_verifier, next_of_whistleblower
from role_market import OFFER, Town, disclosed, done, open_claims, seated, seated_with_duty, until_proof

from pol.chain.desks.task_registry import Status, TaskOutcome
from pol.claims.distance import INFINITE
from pol.errors import OperationalError
from pol.roles.party.data_availability import demand_state
from pol.roles.party.decisions import Mode
from pol.roles.party.role import Role
from pol.roles.process.party_process import DecisionResult, Process

pytestmark = pytest.mark.long


@pytest.fixture
def verifier(town: Town, tmp_path: Path) -> Verifier:
    return town.join(Verifier, "v", evidence=tmp_path / "v")


def hide(town: Town, role: Role, task_id: bytes) -> None:
    """All states but the initial one are gone from the store."""
    for checkpoint in role.proof(task_id).checkpoints[1:]:
        town.file(checkpoint.object).unlink(missing_ok=True)


def gone(number: int) -> None:
    raise OperationalError(f"no relay has round {number}")


def pass_blocks(role: Role) -> None:
    role.connection.wait_for_block(role.connection.block_number() + 3)


@pytest.mark.parametrize("mode", [Mode.DEFEND, Mode.PROPOSE])
def test_a_seated_verifier_outlasts_a_silent_beacon(
    proven: bytes, town: Town, verifier: Verifier, mode: Mode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two windows long no round is to be had; then the submitter brings both and claims a default at once."""
    seated(verifier, proven)
    pass_blocks(verifier)
    market, window = verifier.market, verifier.market.registry.terms(proven).verification_window
    process, submitter = Process(verifier, next_of_verifier, mode), town.join(Submitter, "s")
    with monkeypatch.context() as silence:
        silence.setattr(verifier, "bring", gone)
        for _ in range(8):
            town.connection.wait_until(town.connection.now() + window // 4)
            process.turn()
    for number in (market.seats.seating(proven).duty_round, market.proofs.proof(proven).round):
        submitter.bring(number)
    assert done(process.turn()) == ["post the verdict"]


def test_no_time_is_asked_for_before_half_of_it_has_passed(
    proven: bytes, town: Town, verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    seated(verifier, proven)
    pass_blocks(verifier)
    deadline = verifier.market.registry.task(proven).deadline
    window = verifier.market.registry.terms(proven).verification_window
    monkeypatch.setattr(verifier, "bring", gone)
    process = Process(verifier, next_of_verifier)
    town.connection.wait_until(deadline - window // 2 - 60)
    assert [each.verb for each in process.turn()] == ["post the verdict"]
    assert verifier.market.registry.task(proven).deadline == deadline
    town.connection.wait_until(deadline - window // 2 + 60)
    assert done(process.turn()) == ["extend the verifier's time"]
    assert verifier.market.registry.task(proven).deadline > deadline


def test_a_seated_verifier_ends_its_demand_and_keeps_its_stake(
    proven: bytes, town: Town, verifier: Verifier, tmp_path: Path
) -> None:
    seated(verifier, proven)
    hide(town, verifier, proven)
    shutil.rmtree(tmp_path / "v")
    pass_blocks(verifier)
    process = Process(verifier, next_of_verifier, Mode.DEFEND)
    process.turn()
    waiting = verifier.market.demands.demands(proven)
    assert waiting
    town.connection.wait_until(waiting[-1].deadline)
    assert "remove the solver" in done(process.turn())
    assert verifier.market.demands.demands(proven) == []
    assert verifier.market.registry.task(proven).status is Status.BIDDING
    assert verifier.market.vault.balances(verifier.wallet.address).locked == verifier.market.sortition.unit()


@pytest.mark.parametrize("decide", [next_of_verifier, next_of_whistleblower])
def test_a_demand_that_decides_nothing_any_more_gives_its_bond_back(proven: bytes, town: Town, decide: object) -> None:
    """Two parties have demanded; one of them ends its demand, the other one takes its bond."""
    verifier, watcher = town.join(Verifier, "v"), town.join(Whistleblower, "w")
    party = verifier if decide is next_of_verifier else watcher
    locked = party.market.vault.balances(party.wallet.address).locked
    (first, second) = (demand_state(each, proven, 1) for each in (verifier, watcher))
    town.connection.wait_until(second.deadline)
    submitter = town.join(Submitter, "s")
    ended = second if party is verifier else first
    submitter.market.demands.expire(submitter.wallet, ended)
    assert "end a demand" in done(Process(party, decide, Mode.DEFEND).turn())  # type: ignore[arg-type]
    assert party.market.vault.balances(party.wallet.address).locked == locked


def test_no_seat_is_claimed_without_the_bond_of_a_demand(proven: bytes, town: Town, verifier: Verifier) -> None:
    """A verifier with its stake and nothing else could demand nothing when the data are withheld."""
    market, stake = verifier.market, verifier.market.registry.terms(proven).verifier_stake
    market.vault.withdraw(verifier.wallet, market.vault.free(verifier.wallet.address) - stake)
    open_claims(verifier, proven)
    process = Process(verifier, next_of_verifier)
    (taken,) = process.turn()
    assert taken.result is DecisionResult.WAITED
    assert "for a demand of data" in taken.why
    market.vault.deposit(verifier.wallet, 4 * market.demands.bond())
    assert done(process.turn()) == ["claim the seat"]


def test_a_verdict_that_rejects_is_settled_though_data_are_demanded(town: Town) -> None:
    """What the solver shows changes nothing any more, and the contract asks for the settlement."""
    exact = until_proof(town, replace(OFFER, margin=0, looks=0, rerun_count=0))
    verifier, submitter = town.join(Verifier, "v"), town.join(Submitter, "s")
    seated_with_duty(verifier, exact, forced=False)
    (verdict,) = verifier.replay(exact)
    assert verdict.claim is not None
    far = (INFINITE, INFINITE, INFINITE)
    verifier.post(exact, [replace(verdict, claim=replace(verdict.claim, replay=b"\7" * 32, distances=far))])
    disclosed(verifier, exact)
    until = verifier.market.registry.task(exact).deadline
    town.connection.wait_until(until - 60)
    demand_state(submitter, exact, 1)
    town.connection.wait_until(until)
    assert "settle" in done(Process(submitter, next_of_submitter).turn())
    assert verifier.market.registry.task(exact).outcome is TaskOutcome.REJECTED
