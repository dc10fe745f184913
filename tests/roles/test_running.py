"""``pol run``, ``pol stake`` and ``pol explain`` as an operator uses them, on a real node."""

import json
import os
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from operator_processes import KEY, Operator
from role_market import INTERVAL, OFFER, STEPS, Town, submitted

from pol.chain.account.wallet import Wallet
from pol.chain.desks.task_registry import Status
from pol.chain.times import utc
from pol.errors import OperationalError
from pol.roles.party.decisions import Mode
from pol.roles.process.decision_log import DecisionLog
from pol.roles.process.party_process import DecisionResult, LoggedDecision
from pol.roles.process.process_loop import LONGEST_BACKOFF, ProcessLoop
from pol.roles.submitter.submitter import TOLERANT, Offer
from pol.roles.verifier.verifier import Verifier
from pol.training.storage.party_database import PartyDatabase
from toy_market import ETHER, fund

JOINED = ()


@pytest.fixture(scope="module")
def operator(node: Town, tmp_path_factory: pytest.TempPathFactory) -> Operator:
    return Operator(tmp_path_factory.mktemp("operator"), node)


@pytest.mark.long
def test_a_verifier_enters_claims_a_seat_and_explains_itself(operator: Operator) -> None:
    town, place, party = operator.town, operator.place, operator.party
    verifier = Verifier(town.connection, town.deployment, KEY, town.store_url)
    fund(town.connection, verifier.wallet.address)
    new = ("--turns", "1", "--data", str(operator.folder / "new"))
    assert "can't stake yet" in operator.pol("run", "verifier", *party, *new)
    operator.pol("stake", "deposit", "20", *party)
    shown = json.loads(operator.pol("stake", "enrol", *party, "--json"))
    assert (shown["free"], shown["tickets"]) == (20 * ETHER - shown["ticket_costs"], 1)
    # A ticket of the second in which a seat opens doesn't count for it, and blocks come as fast as transactions here.
    town.connection.wait_until(town.connection.now())
    task_id, _ = submitted(town)
    town.connection.wait_for_block(town.connection.block_number() + 4)
    (start, *told) = operator.run("verifier", "--mode", "watch", "--turns", "1")
    assert start["address"] == verifier.wallet.address
    assert [(line["verb"], line["result"]) for line in told] == [("open claims", "withheld")]
    told = operator.run("verifier", "--turns", "3", "--step-memory", "0.000001")[1:]
    assert [line["verb"] for line in told if line["result"] == "done"] == [], told
    assert "outputs of a step" in told[-1]["why"]
    assert "--step-memory" in told[-1]["why"]
    told = operator.run("verifier", "--turns", "4")[1:]
    assert [line["verb"] for line in told if line["result"] == "done"] == ["open claims", "claim the seat"], told
    assert town.deployment.market(town.connection).seats.seating(task_id).best == verifier.wallet.address
    explained = json.loads(
        operator.pol("explain", task_id.hex()[:8], *place, "--data", str(operator.folder / "verifier"), "--json")
    )
    assert explained["status"] == "profiling"
    assert explained["next"] == "the seat takes claims"
    assert [d["verb"] for d in explained["decisions"] if d["result"] == "done"] == ["open claims", "claim the seat"]
    assert "the seat takes claims" in operator.pol("explain", task_id.hex(), *place)
    assert Status.PROFILING is town.deployment.market(town.connection).registry.task(task_id).status


@pytest.mark.long
def test_what_a_market_needs_has_a_verb(operator: Operator) -> None:
    """The price before a submission, money for the fund, and times that a person reads."""
    town, place, party = operator.town, operator.place, operator.party
    fund(town.connection, Wallet.create(town.connection, KEY).address)
    operator.pol("stake", "deposit", "2", *party)
    before = json.loads(operator.pol("stake", "show", *party, "--json"))
    after = json.loads(operator.pol("stake", "donate", "0.5", *party, "--json"))
    assert after["fund_available"] - before["fund_available"] == ETHER // 2 == before["free"] - after["free"]
    assert "say how much: pol stake donate" in operator.pol("stake", "donate", *party, code=2)

    task_id, submitter = submitted(town, replace(OFFER, looks=Offer(STEPS, INTERVAL).looks))
    digest = submitter.market.registry.terms(task_id).document.hex()
    priced = json.loads(operator.pol("price", digest, *place, "--draws", "1", "--margin", str(TOLERANT), "--json"))
    paid = town.deployment.market(town.connection).registry.terms(task_id)
    assert (priced["price"], priced["verifier_stake"]) == (paid.maximum_price, paid.verifier_stake)
    assert priced["fund_short"] == 0
    assert "clock            6 h" in operator.pol("price", digest, *place, "--draws", "1", "--margin", str(TOLERANT))
    assert "draws is 3: 1 to 2 is taken" in operator.pol("price", digest, *place, code=1)
    for _ in range(3):
        operator.pol("run", "submitter", *party, "--turns", "2", "--poll", "0.05", "--data", str(operator.folder / "d"))
    until = town.deployment.market(town.connection).seats.seating(task_id).until
    if until:
        assert f"until       {utc(until)}" in operator.pol("explain", task_id.hex()[:8], *place)


def test_it_ends_when_it_is_told_to(operator: Operator) -> None:
    arguments = ("run", "submitter", *operator.party, "--data", str(operator.folder / "s"), "--json")
    process = subprocess.Popen(
        operator.command(*arguments),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OPERATOR_KEY": KEY.hex()},
    )
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["event"] == "start"
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert "goes on where the chain stands" in json.loads(out.splitlines()[-1])["message"]


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("explain", "77"), 1, "there is no dispute 77"),
        (("explain", "ffffffff"), 1, "tasks begin with ffffffff"),
        (("stake", "show"), 2, "name one signer"),
    ],
)
def test_what_is_wrong_is_said(operator: Operator, arguments: tuple[str, ...], code: int, told: str) -> None:
    assert told in operator.pol(*arguments, *operator.place, code=code)


def test_a_node_that_is_gone_is_waited_for_longer_each_time() -> None:
    class Gone:
        mode = Mode.WATCH

        def turn(self) -> list[LoggedDecision]:
            raise OperationalError("no node")

        def left(self) -> list[float]:
            return []

    told: list[str] = []
    running = ProcessLoop(Gone(), 12, told.append, lambda seconds: False, chance=lambda: 1.0)  # type: ignore[arg-type]
    assert [running.turn() for _ in range(7)] == [24, 48, 96, 192, *[LONGEST_BACKOFF] * 3]
    assert told == ["no node"] * 7


def test_a_decision_log_says_each_thing_once_and_outlives_its_process(tmp_path: Path) -> None:
    first = LoggedDecision(1, b"\1" * 32, "wait", "others bid", DecisionResult.WAITED, "", 9)
    again = LoggedDecision(2, b"\1" * 32, "wait", "others bid", DecisionResult.WAITED, "", 9)
    other = LoggedDecision(3, b"\1" * 32, "bid", "it pays", DecisionResult.DONE)
    log = DecisionLog(PartyDatabase(tmp_path))
    assert [log.note(taken) for taken in (first, again, other)] == [True, False, True]
    log = DecisionLog(PartyDatabase(tmp_path))
    assert not log.note(other)
    assert log.decisions(b"\1" * 32) == [first, other]
    assert log.decisions(b"\2" * 32) == []
