"""What a submitter is told before anything is sent: bounds, price, money that is missing; and who comes second."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import torch
from role_market import OFFER, STEPS, Town, captured, open_call, submitted
from torch.nn import functional

from lab.attacks.noisy_slots import Attention
from pol.chain.account.wallet import Reverted
from pol.chain.node.networks import ROLLUP_OUTAGE
from pol.chain.times import duration, utc
from pol.demo import digits
from pol.errors import ProtocolError, UnsupportedError
from pol.graph.capture import capture
from pol.graph.capture.optimizers.lion import Lion
from pol.graph.work_estimate import step_work
from pol.roles.party.decisions import Action, Mode
from pol.roles.party.public_calls import concerning_call
from pol.roles.process import defence
from pol.roles.process.party_process import DecisionResult, Process
from pol.roles.submitter.submitter import Submitter
from toy_market import fund


@pytest.fixture
def submitter(town: Town) -> Submitter:
    return town.join(Submitter, "s")


def test_a_submitter_on_a_rollup_is_told_that_nobody_stakes_on_terms_that_a_halt_breaks(
    submitter: Submitter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parties there ask for six hours more in each window, whatever the submitter's own policy says."""
    told = list[str]()
    submitter.wallet.tell = told.append
    monkeypatch.setattr(defence, "outage_of", lambda chain_id: ROLLUP_OUTAGE)
    submitter.submit(captured(), OFFER.surviving(ROLLUP_OUTAGE))
    assert told == []
    submitter.submit(captured(), OFFER)
    (said,) = told
    assert "besides a halt of the chain of 21600 s" in said


def test_a_price_is_known_before_and_nothing_is_published_without_the_money(
    town: Town, submitter: Submitter, tmp_path: Path
) -> None:
    quote = submitter.quote(captured(), OFFER)
    before = submitter.market.vault.free(submitter.wallet.address)
    task_id = submitter.submit(captured(), OFFER)
    assert before - submitter.market.vault.free(submitter.wallet.address) == quote.escrow
    terms = submitter.market.registry.terms(task_id)
    assert (quote.price, quote.jackpot) == (terms.maximum_price, terms.jackpot)
    assert (quote.solver_stake, quote.verifier_stake) == (terms.solver_stake, terms.verifier_stake)
    assert quote.fund_short == 0

    poor = Submitter(submitter.connection, town.deployment, b"\7" * 32, f"file://{tmp_path}", submitter.policy)
    fund(submitter.connection, poor.wallet.address)
    poor.deposit(quote.escrow - 1)
    with pytest.raises(ProtocolError, match="pol stake deposit 1wei"):
        poor.submit(captured(), OFFER)
    assert not list(tmp_path.iterdir())
    with pytest.raises(ProtocolError, match="clock is 60 s: 600 to 1209600 s is taken"):
        poor.submit(captured(), replace(OFFER, clock=60))
    assert not list(tmp_path.iterdir())


def test_a_task_that_no_profile_admits_is_not_submitted(submitter: Submitter) -> None:
    """An update that jumps: nothing is locked, and exact mode is named; there the same step is welcome."""
    model = digits.DigitClassifier(4)
    step = capture(
        model, digits.loss_function, Lion(model.parameters(), 1e-3), digits.dataset(), digits.order(1, STEPS)
    )
    free = submitter.market.vault.free(submitter.wallet.address)
    words = r"^sign \(node .*Lion \(.*\)\) decides how .* is updated: .*use exact mode"
    with pytest.raises(UnsupportedError, match=words):
        submitter.quote(step, OFFER)
    with pytest.raises(UnsupportedError, match=words):
        submitter.submit(step, OFFER)
    assert submitter.market.vault.free(submitter.wallet.address) == free
    assert submitter.submit(step, replace(OFFER, margin=0, looks=0, rerun_count=0, profiled=0))


def test_a_task_with_a_noisy_slot_gets_scales(submitter: Submitter) -> None:
    """The bias of the keys moves by rounding alone: no other tensor may have its limit."""
    told: list[str] = []
    submitter.wallet.tell = told.append
    torch.manual_seed(1)
    model = Attention(bias=True)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    step = capture(model, functional.cross_entropy, optimizer, digits.dataset(), digits.order(1, STEPS))
    task = submitter.task(submitter.submit(step, OFFER))
    assert "key.bias" in told[0]
    assert "The task gets scales" in told[0]
    scales = {name: slot.scale for name, slot in zip(task.names.slots, task.program.slots, strict=True)}
    assert scales["query.bias"] > scales["key.bias"] == 0


def test_a_submitter_is_told_that_slow_machines_stay_away(submitter: Submitter) -> None:
    """A step of 400 s has to be executed again for a move that has 300; two hours don't fit into the clock."""
    told: list[str] = []
    submitter.wallet.tell = told.append
    submitter.submit(captured(), OFFER)
    assert told == []
    for seconds, field in ((400, "moveGrace of 300 s"), (7200, f"clock of {OFFER.clock} s")):
        readings = iter(range(0, 10**6, seconds))
        submitter.times.timer, submitter.times.machine = partial(next, readings), None
        submitter.submit(captured(), OFFER)
        assert [field in line for line in told] == [True]
        assert "shorter segments, a longer clock" in told.pop()


def test_a_fund_that_can_not_reserve_the_jackpot_is_told_before_and_at_the_award(submitter: Submitter) -> None:
    told: list[str] = []
    submitter.wallet.tell = told.append
    available = submitter.market.jackpot.available()
    unit = step_work(captured().program) * OFFER.steps
    dear = replace(OFFER, wei_per_work_unit=available // unit + 1)
    quote = submitter.quote(captured(), dear)
    assert 0 < quote.fund_short == quote.jackpot - available
    fund(submitter.connection, submitter.wallet.address)
    submitter.deposit(quote.escrow)
    submitter.submit(captured(), dear)
    assert [f"pol stake donate {quote.fund_short}wei" in line for line in told] == [True]
    refused = Reverted("award", "FundShort", (available, quote.jackpot))
    assert f"pol stake donate {quote.fund_short}wei" in str(refused)


def test_who_comes_second_with_a_call_for_anybody_has_not_failed(town: Town) -> None:
    task_id, first = submitted(town)
    second = town.join(Submitter, "another")
    town.connection.wait_for_block(first.market.seats.seating(task_id).round + 1)
    stale = iter([open_call(second, task_id)])

    def decide(role: Submitter, task: bytes) -> Action | object:
        return next(stale, None) or concerning_call(role, task, "it is there")

    open_call(first, task_id).act()
    process = Process(second, decide, Mode.RESOLVE)  # type: ignore[arg-type]  # one of several kinds
    (taken,) = [t for t in process.turn() if t.task_id == task_id]
    assert (taken.verb, taken.result, taken.detail) == ("open claims", DecisionResult.DONE, "somebody else was faster")

    # A call that nobody has made is still a refusal.
    seats = second.market.seats
    hopeless = Action(task_id, "decide", "it hopes", Mode.RESOLVE, partial(seats.decide, second.wallet, task_id))
    process = Process(second, lambda role, task: hopeless, Mode.RESOLVE)
    (taken,) = [t for t in process.turn() if t.task_id == task_id]
    assert taken.result is DecisionResult.REFUSED
    assert "it is possible after 20" in taken.detail


def test_seconds_are_shown_as_times() -> None:
    assert utc(1_795_399_500) == "2026-11-23 02:05:00 UTC"
    assert utc(1 << 60) == f"{1 << 60} s"
    assert [duration(s) for s in (0, 90, 3600, 93_780)] == ["0 s", "1 min 30 s", "1 h", "1 d 2 h"]
    assert "until 2026-11-23 02:05:00 UTC" in str(Reverted("post", "DeadlinePassed", (1_795_399_500,)))


@pytest.mark.long
def test_a_submission_that_was_killed_and_is_started_again_is_the_same_task(
    town: Town, submitter: Submitter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the machine measures another time for a step, and if the first escrow has taken the money."""

    class KilledError(BaseException):
        pass

    def killed() -> None:
        with submitter.wallet.once():
            submitter.submit(captured(), OFFER)
            raise KilledError

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(KilledError):
        killed()
    vault, registry = submitter.market.vault, submitter.market.registry
    vault.withdraw(submitter.wallet, vault.free(submitter.wallet.address))
    (first,) = registry.events("TaskSubmitted")
    again = town.join(Submitter, "s")
    with again.wallet.once():
        assert again.submit(captured(), replace(OFFER, training_window=2 * OFFER.training_window)) == first["taskId"]
    assert len(registry.events("TaskSubmitted")) == 1
    again.deposit(town.ground.market.vault.balances(town.ground.market.vault.address).free + 10**18)
    with again.wallet.once():
        assert again.submit(captured(), OFFER) != first["taskId"]
