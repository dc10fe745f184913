"""Workers and keepers as processes: they answer from their own copies, count their claims, are paid, and leave."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from eth_typing import ChecksumAddress
from test_round_disputes import lying
from toy_rounds import DAY, GOSSIP, MERGE, MONEY, STEP, UNITS, WORKERS, ToyRounds, executor_of

from ended_process import ran
from pol.chain.deployments.deployment import RoundsDeployment
from pol.chain.rounds.round_contracts import RoundAddresses, RoundContracts
from pol.chain.rounds.round_demands import RoundDemand
from pol.chain.rounds.signed_structs import sign_head
from pol.chain.rounds.worker_bonds import Standing
from pol.commitments.keccak import keccak256
from pol.commitments.program_hash import program_header
from pol.dispute.play.honest_players import ReplayPlayer
from pol.dispute.play.round_evidence import replay_claim_of
from pol.dispute.position import Side
from pol.errors import ProtocolError
from pol.incentives.work_shares import settle_work
from pol.roles.party.decisions import Mode
from pol.roles.party.dispute_session import DisputeSession
from pol.roles.process.party_process import DecisionResult, LoggedDecision
from pol.roles.rounds.pay_state import pay_state
from pol.roles.rounds.round_decisions import next_of_rounds
from pol.roles.rounds.round_party import PlanProcess, RoundParty
from pol.rounds.log.journaled_keeper import JournaledKeeper
from pol.rounds.log.log_entries import PAGE, Change, DeliveryEntry, MembershipEntry, RosterEntry
from pol.rounds.log.rounds_log import HEAD, LogHead, LogKeeper
from pol.rounds.log.worker_journal import WorkerJournal, journal_name
from pol.rounds.roster import Member, Roster
from pol.training.storage.http_files import seconds_left
from pol.training.storage.store import Store


@dataclass
class Trained:
    """A training of one round whose store is that of all, and the folders of the parties beside it."""

    toy: ToyRounds
    folder: Path

    def __post_init__(self) -> None:
        made = self.toy.authors["ann"].store.url.removeprefix("file://")  # other tests may have published a log there
        shutil.copytree(made, self.folder / "store", ignore=shutil.ignore_patterns(HEAD))
        self.store = Store(f"file://{self.folder}/store")
        self.contracts = RoundContracts.at(self.toy.connection, self.addresses, 0)

    @property
    def addresses(self) -> RoundAddresses:
        return RoundAddresses(**{name: each.address for name, each in vars(self.toy.contracts).items()})

    def train(self, *before: RosterEntry) -> None:
        """Round 0 is written to journals and log as the processes that train do it, behind other entries."""
        toy, keeper = self.toy, JournaledKeeper(self.store, self.toy.plan.digest, self.toy.keys["keeper"])
        roster = self.signed(toy.rosters[0])
        for entry in before:
            keeper.append(entry, 0)
        keeper.append(roster, 0)
        for name in WORKERS:
            journal = WorkerJournal(self.store, toy.plan.digest, toy.keys[name].name)
            journal.see(toy.rosters[0], roster.signature)
            for phase in (STEP, MERGE, GOSSIP):
                made = toy.made[name, phase]
                journal.add(made.entry, toy.authors[name].named(made))
                keeper.append(made.entry, 0)
        keeper.publish([])

    def signed(self, roster: Roster) -> RosterEntry:
        document = self.store.put(roster.encode())
        return RosterEntry(document, self.toy.keys["keeper"].sign(roster.digest))

    def party(self, name: str, **settings: Any) -> RoundParty:
        """A party, started again with what its folder has."""
        secret = keccak256(b"rounds " + name.encode())
        about = (self.toy.connection, self.contracts, secret, settings.pop("store", self.store).url, self.toy.plan_id)
        return RoundParty(*about, self.folder / name, keeps=name == "keeper", executors=executor_of, **settings)

    def turns(self, role: RoundParty, count: int = 1, mode: Mode = Mode.PROPOSE) -> list[LoggedDecision]:
        """Turns of its process, until nothing is done."""
        process = PlanProcess(role, next_of_rounds, mode)
        taken = list[LoggedDecision]()
        for _ in range(count):
            taken += process.turn()
        return taken

    def until_idle(self, role: RoundParty, mode: Mode = Mode.PROPOSE) -> list[str]:
        """What its process does before it waits."""
        done = list[str]()
        for _ in range(20):
            (taken,) = self.turns(role, mode=mode)
            if taken.result is not DecisionResult.DONE:
                assert taken.result is DecisionResult.WAITED, taken
                return done
            done.append(taken.verb)
        raise AssertionError(done)


@pytest.fixture
def trained(toy: ToyRounds, tmp_path: Path) -> Trained:
    made = Trained(toy, tmp_path)
    made.train()
    return made


def demands_of_all_kinds(toy: ToyRounds) -> list[RoundDemand]:
    """Sources from a claim and from an initial value, and a roster, of ann."""
    desk, asks = toy.contracts.demands, toy.wallets["challenger"]
    entries = [toy.made["ann", phase].entry for phase in (MERGE, STEP)]
    found = [desk.demand_source(asks, toy.plan_id, entry, toy.commitment, 1) for entry in entries]
    return [*found, desk.demand_roster(asks, toy.plan_id, entries[0])]


def test_a_worker_answers_demands_without_the_store(trained: Trained) -> None:
    """The coordinator's store vanishes; the worker's process was killed before, and answers from its own folder."""
    toy = trained.toy
    trained.party("ann")
    shutil.rmtree(trained.folder / "store")
    demands_of_all_kinds(toy)
    before = toy.free("ann")
    worker = trained.party("ann")
    assert len(worker.demands()) == 3
    assert trained.until_idle(worker) == ["answer a demand"] * 3
    assert worker.demands() == []
    assert toy.free("ann") >= before + 3 * MONEY.price
    toy.check_books()


def test_a_store_that_trickles_takes_no_clock(trained: Trained) -> None:
    """Its coordinator disputes a true claim, and sends the log for half a window of answers: longer than the clock."""
    worker = trained.party("ann")
    read = list[float | None]()
    refresh = worker.refresh

    def slow() -> None:
        read.append(seconds_left())
        refresh()

    worker.refresh = slow  # type: ignore[method-assign]  # the same, seen
    trained.turns(worker)
    assert read[0] is not None
    assert read[0] <= min(MONEY.clock, MONEY.answer_window) / 4


def test_a_log_that_grows_is_kept_whole(trained: Trained) -> None:
    """Its newest pages alone are read at each head, also behind one whose last page was full; and none is lost."""
    toy, role = trained.toy, trained.party("ann")
    training = JournaledKeeper(trained.store, toy.plan.digest, toy.keys["keeper"])
    for size in (PAGE, PAGE + 1, 2 * PAGE + 9):
        while len(training) < size:
            notice = MembershipEntry.signed(toy.keys["bob"], toy.plan.digest, len(training), Change.HEARTBEAT)
            training.append(notice, 1)
        training.publish([])
        role.refresh()
        assert (role.kept.head and role.kept.head.size, role.problems) == (size, [])
    shutil.rmtree(trained.folder / "store")
    again = trained.party("ann").kept
    assert again.logged.entries == role.kept.logged.entries
    assert again.log.root() == role.kept.log.root()
    assert (again.logged.claims, again.logged.rosters) == (role.kept.logged.claims, role.kept.logged.rosters)


def test_a_settlement_ends_and_pays(trained: Trained) -> None:
    """The keeper opens, workers post and are paid, a counted claim is shown; all is closed, and the workers leave."""
    toy, shares = trained.toy, trained.contracts.shares
    before = {name: toy.free(name) for name in (*WORKERS, "submitter")}
    parties = {name: trained.party(name) for name in ("keeper", *WORKERS)}
    opens = trained.contracts.bonds.read("registeredAt", toy.plan_id) + MONEY.period
    assert pay_state(trained.contracts, toy.plan_id, 0, toy.wallets["ann"].address).state == "not open"
    toy.connection.wait_until(opens)
    assert trained.until_idle(parties["ann"]) == []  # the keeper's turn
    assert trained.until_idle(parties["keeper"]) == ["open a settlement"]
    assert pay_state(trained.contracts, toy.plan_id, 0, toy.wallets["ann"].address).state == "not counted"
    for name in WORKERS:
        assert trained.until_idle(parties[name]) == ["post a line"]
    shares.demand_counted(toy.wallets["challenger"], toy.plan_id, 0, toy.wallets["bob"].address, 1)
    accused = pay_state(trained.contracts, toy.plan_id, 0, toy.wallets["bob"].address)
    assert (accused.state, len(accused.accusations)) == ("waits", 1)
    assert trained.until_idle(trained.party("bob")) == ["answer a demand"]
    quiet = trained.contracts.bonds.bond(toy.plan_id, toy.wallets["bob"].address).quiet
    closes = max(quiet, shares.settlement(toy.plan_id, 0).closes)
    earned = toy.free("bob") - before["bob"]
    toy.connection.wait_until(closes + 1)
    assert pay_state(trained.contracts, toy.plan_id, 0, toy.wallets["ann"].address).state == "due"
    assert trained.until_idle(parties["ann"]) == ["settle a line"]
    assert trained.until_idle(parties["keeper"]) == ["settle a line"]
    expected = settle_work(MONEY.pay, MONEY.work, dict.fromkeys(WORKERS, sum(UNITS)))
    assert toy.free("ann") - before["ann"] == expected.paid["ann"]
    assert toy.free("bob") - before["bob"] == expected.paid["bob"] + earned
    state = pay_state(trained.contracts, toy.plan_id, 0, toy.wallets["ann"].address)
    assert (state.state, state.paid) == ("paid", expected.paid["ann"])
    toy.check_books()


def test_why_a_worker_is_not_paid(trained: Trained) -> None:
    """No stake, no line in time, a stake that is lost before the pay and a settlement that there isn't."""
    toy, contracts = trained.toy, trained.contracts
    ann, bob, stranger = (toy.wallets[name].address for name in (*WORKERS, "challenger"))

    def why(worker: ChecksumAddress, number: int = 0) -> tuple[str, bool]:
        state = pay_state(contracts, toy.plan_id, number, worker)
        assert state.why
        assert state.next
        return state.state, state.can_settle

    toy.connection.wait_until(contracts.bonds.read("registeredAt", toy.plan_id) + MONEY.period)
    assert trained.until_idle(trained.party("keeper")) == ["open a settlement"]
    assert trained.until_idle(trained.party("ann")) == ["post a line"]
    assert (why(stranger), why(ann, 1), why(ann, 7)) == (("no stake", False), ("not open", False), ("none", False))
    entry = toy.made["ann", STEP].entry
    contracts.evidence.show_two_claims(toy.wallets["bob"], toy.plan_id, entry, toy.signed("ann", entry, end=b"\7" * 32))
    assert why(ann) == ("void soon", True)
    # Its own process does nothing for it any more; the keeper's takes the line out.
    assert trained.until_idle(trained.party("ann")) == []
    assert trained.until_idle(trained.party("keeper")) == ["settle a line"]
    assert why(ann) == ("void", False)
    toy.connection.wait_until(contracts.shares.settlement(toy.plan_id, 0).lines_until + 1)
    assert why(bob) == ("missed", False)
    toy.connection.wait_until(contracts.shares.settlement(toy.plan_id, 0).closes + 1)
    assert trained.until_idle(trained.party("keeper")) == ["close a settlement"]
    toy.check_books()


def test_a_worker_leaves_when_nothing_is_open(trained: Trained) -> None:
    """Its claims are counted and paid first, an accusation keeps it, and at last the money is in its wallet."""
    toy, bonds, ann = trained.toy, trained.contracts.bonds, trained.toy.wallets["ann"].address
    worker = trained.party("ann", leaves=True)
    assert trained.until_idle(worker) == []
    toy.connection.wait_until(bonds.read("registeredAt", toy.plan_id) + MONEY.period + DAY)
    assert trained.until_idle(worker) == ["open a settlement", "post a line"]
    toy.connection.wait_until(trained.contracts.shares.settlement(toy.plan_id, 0).closes + 1)
    demands_of_all_kinds(toy)
    assert trained.until_idle(worker) == ["answer a demand"] * 3
    toy.connection.wait_until(bonds.bond(toy.plan_id, ann).quiet + 1)
    assert trained.until_idle(worker) == ["settle a line", "leave"]
    assert bonds.bond(toy.plan_id, ann).standing is Standing.LEAVING
    toy.connection.wait_until(bonds.bond(toy.plan_id, ann).until + 1)
    assert trained.until_idle(trained.party("ann", leaves=True)) == ["take the stake back", "withdraw"]
    assert (bonds.bond(toy.plan_id, ann).standing, toy.free("ann")) == (Standing.LEFT, 0)


def test_what_a_lost_stake_leaves_is_taken_out(trained: Trained) -> None:
    """What it has earned or brought besides lay in the vault for good: no other verb takes it out."""
    toy, entry = trained.toy, trained.toy.made["bob", STEP].entry
    other = toy.signed("bob", entry, end=bytes([7]) * 32)
    toy.contracts.evidence.show_two_claims(toy.wallets["challenger"], toy.plan_id, entry, other)
    assert toy.free("bob") > 0
    assert trained.until_idle(trained.party("bob", leaves=True)) == ["withdraw"]
    assert toy.free("bob") == 0


def until_the_last_settlement(toy: ToyRounds) -> None:
    """All settlements are opened, and nobody has counted anything."""
    for number in range(MONEY.settlements):
        toy.connection.wait_until(toy.contracts.bonds.read("registeredAt", toy.plan_id) + (number + 1) * 8 * DAY)
        toy.contracts.shares.open(toy.wallets["challenger"], toy.plan_id)


def test_a_worker_counts_its_claims_before_it_leaves(trained: Trained) -> None:
    """In the last settlement, a line that failed once came behind the end of the stake: who leaves posts none."""
    toy, ann = trained.toy, trained.toy.wallets["ann"].address
    until_the_last_settlement(toy)
    toy.connection.wait_until(toy.contracts.shares.read("openedAt", toy.plan_id) + MONEY.line_window // 2 + 1)
    worker = trained.party("ann")
    worker.tried[f"2 claims aren't counted, and settlement {MONEY.settlements - 1} takes lines"] = 1
    assert trained.until_idle(worker) == ["post a line"]
    assert trained.contracts.bonds.bond(toy.plan_id, ann).standing is Standing.JOINED


def test_the_last_line_has_what_is_logged_in_its_window(toy: ToyRounds, tmp_path: Path) -> None:
    """A settlement takes one line of a worker: what was logged behind it, in the last one, was never paid."""
    made = Trained(toy, tmp_path)
    training = JournaledKeeper(made.store, toy.plan.digest, toy.keys["keeper"])
    training.append(made.signed(toy.rosters[0]), 0)
    training.append(toy.made["ann", STEP].entry, 0)
    training.publish([])
    until_the_last_settlement(toy)
    assert made.until_idle(made.party("ann")) == []
    for worker, phase in (("bob", STEP), ("ann", GOSSIP)):
        training.append(toy.made[worker, phase].entry, 0)
    training.publish([])
    toy.connection.wait_until(toy.contracts.shares.read("openedAt", toy.plan_id) + MONEY.line_window // 2 + 1)
    assert made.until_idle(made.party("ann")) == ["post a line"]
    line = toy.contracts.shares.line(toy.plan_id, MONEY.settlements - 1, toy.wallets["ann"].address)
    assert (line.count, line.units) == (2, sum(UNITS))


def test_a_worker_defends_its_claim(trained: Trained) -> None:
    """Every move is of another process: each was killed after the one before."""
    toy, disputes, game = trained.toy, trained.contracts.disputes, trained.contracts.game
    entry = toy.made["ann", STEP].entry
    lie = lying(toy.trace(entry))
    trained.party("ann")
    shutil.rmtree(trained.folder / "store")
    payload = ReplayPlayer(lie).open(replay_claim_of(entry).first(program_header(lie.program)))
    number = disputes.dispute(toy.wallets["challenger"], toy.plan_id, entry, program_header(lie.program), payload)
    other = DisputeSession(game, toy.wallets["challenger"], lie.program, number, ReplayPlayer(lie))
    while game.winner(number) is Side.NONE:
        trained.turns(trained.party("ann"))
        other.advance()
    assert game.winner(number) is Side.ASSERTER
    assert trained.until_idle(trained.party("ann")) == ["settle a dispute"]
    assert trained.contracts.bonds.bond(toy.plan_id, toy.wallets["ann"].address).open == 0
    toy.check_books()


def test_a_keeper_answers_for_its_log(trained: Trained) -> None:
    """An entry behind a receipt, that of a roster, and the way from one head to a longer one."""
    toy, desk, asks = trained.toy, trained.contracts.demands, trained.toy.wallets["challenger"]
    first = LogHead.decode(trained.store.read(HEAD))
    keeper = trained.party("keeper")
    training = JournaledKeeper(trained.store, toy.plan.digest, toy.keys["keeper"])
    roster = trained.signed(toy.rosters[1])
    training.append(roster, 1)
    training.publish([])
    entry = toy.made["ann", MERGE].entry
    receipt = DeliveryEntry.signed(toy.keys["keeper"], toy.plan.digest, 0, entry.claim.digest)
    desk.demand_entry(asks, toy.plan_id, receipt, entry)
    desk.demand_path(asks, toy.plan_id, first, LogHead.decode(trained.store.read(HEAD)))
    desk.demand_roster_entry(asks, toy.plan_id, toy.rosters[1], roster.signature)
    assert trained.until_idle(keeper) == ["answer a demand"] * 3
    assert trained.contracts.bonds.bond(toy.plan_id, toy.wallets["keeper"].address).open == 0


def test_a_keeper_answers_by_its_journal(trained: Trained) -> None:
    """A receipt or a roster is shown when it's in the journal, and a training may stop before the head over that."""
    toy, asks = trained.toy, trained.toy.wallets["challenger"]
    made = trained.toy.signed("ann", toy.made["ann", MERGE].entry, round=1)
    training = JournaledKeeper(trained.store, toy.plan.digest, toy.keys["keeper"])
    roster = trained.signed(toy.rosters[1])
    training.append(roster, 1)
    training.append(made, 1)
    training.keep([])
    receipt = DeliveryEntry.signed(toy.keys["keeper"], toy.plan.digest, 1, made.claim.digest)
    trained.contracts.demands.demand_entry(asks, toy.plan_id, receipt, made)
    trained.contracts.demands.demand_roster_entry(asks, toy.plan_id, toy.rosters[1], roster.signature)
    assert trained.until_idle(trained.party("keeper")) == ["answer a demand"] * 2


def test_lies_of_others_are_shown(trained: Trained) -> None:
    """A second roster that the worker was shown, and a head that doesn't extend the one before."""
    toy, bonds, keeper = trained.toy, trained.contracts.bonds, trained.toy.wallets["keeper"].address
    before = toy.free("ann")
    worker = trained.party("ann")
    trained.party("bob")
    other = replace(toy.rosters[0], members=tuple(replace(each, weight=2) for each in toy.rosters[0].members))
    journal = WorkerJournal(trained.store, toy.plan.digest, toy.keys["ann"].name)
    with pytest.raises(ProtocolError, match="two rosters of round 0"):
        journal.see(other, trained.signed(other).signature)
    assert trained.until_idle(worker, Mode.RESOLVE) == ["show a lie"]
    assert bonds.bond(toy.plan_id, keeper).standing is Standing.SLASHED
    assert toy.free("ann") == before + MONEY.keeper_stake // 16


def test_a_forked_log_is_shown(trained: Trained) -> None:
    toy, bonds, keeper = trained.toy, trained.contracts.bonds, trained.toy.wallets["keeper"].address
    worker = trained.party("bob")
    (trained.folder / "store" / HEAD).unlink()
    forked = LogKeeper(trained.store, toy.plan.digest, toy.keys["keeper"])
    for roster in toy.rosters:
        forked.append(trained.signed(roster), 0)
    forked.publish()
    worker.refresh()
    assert trained.until_idle(trained.party("bob"), Mode.RESOLVE) == ["show a forked log"]
    assert bonds.bond(toy.plan_id, keeper).standing is Standing.SLASHED


def test_an_unstaked_member_is_shown_and_its_keeper_warned(trained: Trained) -> None:
    toy, bonds, keeper = trained.toy, trained.contracts.bonds, trained.toy.wallets["keeper"].address
    key = toy.keys["challenger"]
    members = (*toy.rosters[1].members, Member(key.name, 7, 1))
    training = JournaledKeeper(trained.store, toy.plan.digest, toy.keys["keeper"])
    training.append(MembershipEntry.signed(key, toy.plan.digest, 1, Change.JOIN), 1)
    training.append(trained.signed(Roster(toy.plan.digest, 1, members)), 1)
    training.publish([])
    (told,) = trained.turns(trained.party("keeper"))
    assert "never put up a stake: have it join" in told.why
    assert trained.until_idle(trained.party("ann"), Mode.RESOLVE) == ["show an unstaked member"]
    assert bonds.bond(toy.plan_id, keeper).standing is Standing.SLASHED


def has_gone(toy: ToyRounds, name: str) -> None:
    """A worker leaves in peace."""
    bonds, wallet = toy.contracts.bonds, toy.wallets[name]
    bonds.leave(wallet, toy.plan_id)
    toy.connection.wait_until(bonds.bond(toy.plan_id, wallet.address).until + 1)
    bonds.depart(wallet, toy.plan_id)


def test_the_keeper_says_how_long_its_log_is_when_a_worker_has_gone(trained: Trained) -> None:
    """Half of its window later: what it had begun before is logged by then."""
    toy, bonds, bob = trained.toy, trained.contracts.bonds, trained.toy.wallets["bob"]
    has_gone(toy, "bob")
    assert "ask for the length of the log" in trained.until_idle(trained.party("ann"), Mode.RESOLVE)
    (demand,) = trained.contracts.demands.demands(toy.plan_id)
    keeper = trained.party("keeper")
    assert "answer a demand" not in trained.until_idle(keeper)
    toy.connection.wait_until(demand.deadline - MONEY.answer_window // 2 + 1)
    assert "answer a demand" in trained.until_idle(keeper)
    assert keeper.kept.head is not None
    assert bonds.bond(toy.plan_id, bob.address).entries == keeper.kept.head.size
    assert "ask for the length of the log" not in trained.until_idle(trained.party("ann"), Mode.RESOLVE)


def test_a_round_that_goes_on_is_within_the_length_of_the_log(trained: Trained) -> None:
    """Processes of a group log a roster when its round ends: by the head before, the one with a member that had its
    stake then was a lie. The store is gone by the answer; and the keeper shows that its next head extends that one.
    """
    toy, demands, asks = trained.toy, trained.contracts.demands, trained.toy.wallets["challenger"]
    training = JournaledKeeper(trained.store, toy.plan.digest, toy.keys["keeper"])
    training.append(trained.signed(replace(toy.rosters[1], arrivals=())), 1)
    training.keep([])
    has_gone(toy, "bob")
    demand = demands.demand_length(asks, toy.plan_id, toy.wallets["bob"].address)
    trained.party("keeper")
    toy.connection.wait_until(demand.deadline - MONEY.answer_window // 2)
    (trained.folder / "store").rename(trained.folder / "away")
    assert "answer a demand" in trained.until_idle(trained.party("keeper"))
    (trained.folder / "away").rename(trained.folder / "store")
    shown = demands.events("LengthShown", id=toy.plan_id)[-1]["head"]
    plan, size, root = shown["head"].values()
    word = LogHead(plan, size, root, shown["signature"], (), ())
    assert size == len(training)
    training.append(MembershipEntry.signed(toy.keys["ann"], toy.plan.digest, 2, Change.LEAVE), 1)
    training.publish([])
    ann = trained.party("ann")
    assert "show an unstaked member" not in trained.until_idle(ann, Mode.RESOLVE)
    assert ann.kept.head is not None
    demands.demand_path(asks, toy.plan_id, word, ann.kept.head)
    assert "answer a demand" in trained.until_idle(trained.party("keeper"))


@pytest.mark.parametrize(("less", "verbs"), [(0, ["show a forked log"]), (2, ["ask for a path"])])
def test_a_head_that_was_made_for_an_answer_costs_its_keeper_its_stake(
    trained: Trained, less: int, verbs: list[str]
) -> None:
    """It says less than what the log holds, or other than what it holds, and no store has it."""
    toy, demands, bonds = trained.toy, trained.contracts.demands, trained.contracts.bonds
    keeper, ann = toy.wallets["keeper"], trained.party("ann")
    has_gone(toy, "bob")
    demand = demands.demand_length(toy.wallets["challenger"], toy.plan_id, toy.wallets["bob"].address)
    assert ann.kept.head is not None
    head = LogHead(toy.plan_id, ann.kept.head.size - less, bytes(range(32)), b"", (), ())
    demands.answer_length(keeper, demand, toy.wallets["bob"].address, replace(head, signature=sign_head(keeper, head)))
    assert trained.until_idle(ann) == verbs
    if less:
        (asked,) = demands.demands(toy.plan_id)
        toy.connection.wait_until(asked.deadline)
        assert trained.until_idle(ann)[:1] == ["end a demand"]
    assert bonds.bond(toy.plan_id, keeper.address).standing is Standing.SLASHED


def test_a_keeper_whose_log_is_empty_answers(toy: ToyRounds, tmp_path: Path) -> None:
    """Who joins and goes before the training begins asked for what the keeper's process couldn't say."""
    made = Trained(toy, tmp_path)
    demands, asks, bob = toy.contracts.demands, toy.wallets["challenger"], toy.wallets["bob"].address
    has_gone(toy, "bob")
    demand = demands.demand_length(asks, toy.plan_id, bob)
    toy.connection.wait_until(demand.deadline - MONEY.answer_window // 2)
    assert "answer a demand" in made.until_idle(made.party("keeper"))
    assert toy.contracts.bonds.bond(toy.plan_id, bob).entries == 1
    shown = demands.events("LengthShown", id=toy.plan_id)[-1]["head"]
    plan, size, root = shown["head"].values()
    made.train()
    keeper = made.party("keeper")
    assert keeper.kept.head is not None
    demands.demand_path(asks, toy.plan_id, LogHead(plan, size, root, shown["signature"], (), ()), keeper.kept.head)
    assert "answer a demand" in made.until_idle(keeper)


@pytest.mark.parametrize(
    ("lost", "reason"),
    [
        ("journal", "has neither|neither the kept log nor the journal has roster"),
        ("sources", "published no sources|isn't there|read object"),
    ],
)
def test_a_worker_that_could_not_answer_does_not_start(trained: Trained, lost: str, reason: str) -> None:
    """Before any stake: what is missing is named, and what mends it."""
    toy = trained.toy
    has_gone(toy, "ann")
    (trained.folder / "store" / HEAD).unlink()
    name = journal_name(toy.plan.digest, toy.keys["ann"].name)
    file = trained.folder / "store" / name
    if lost == "journal":
        document = json.loads(file.read_text())
        file.write_text(json.dumps({**document, "rosters": []}, sort_keys=True, separators=(",", ":")))
    else:
        digest = toy.made["ann", STEP].entry.sources
        (trained.folder / "store" / digest[:2] / digest).unlink()
    with pytest.raises(ProtocolError, match=f"would cost the stake: .*({reason}).*Put back") as refusal:
        trained.party("ann")
    assert "round 0" in str(refusal.value)


def test_a_worker_that_has_staked_starts_with_what_it_has(trained: Trained) -> None:
    """A coordinator takes an object of its store away: the worker's process, started again, answered nothing at all."""
    toy = trained.toy
    digest = toy.made["ann", STEP].entry.sources
    (trained.folder / "store" / digest[:2] / digest).unlink()
    toy.contracts.demands.demand_roster(toy.wallets["challenger"], toy.plan_id, toy.made["ann", MERGE].entry)
    worker = trained.party("ann")
    assert trained.until_idle(worker) == ["answer a demand"]
    assert any("would cost the stake" in problem for problem in worker.state()["problems"])


def test_a_keeper_without_its_journal_does_not_start(trained: Trained) -> None:
    (file,) = (trained.folder / "store").glob("keeper-*.json")
    file.unlink()
    with pytest.raises(ProtocolError, match="isn't there: put it back"):
        trained.party("keeper")


def test_the_stake_comes_behind_the_check(trained: Trained) -> None:
    """A new worker: in the mode propose it deposits what is missing, and joins; where the store is gone, it doesn't."""
    toy, bonds = trained.toy, trained.contracts.bonds
    role = trained.party("challenger")
    account = role.wallet.address
    toy.contracts.vault.withdraw(role.wallet, toy.free("challenger"))
    trained.store.replace(HEAD, b"{}")
    (told,) = trained.turns(role)
    assert told.result is not DecisionResult.DONE
    assert bonds.bond(toy.plan_id, account).standing is Standing.NONE
    (trained.folder / "store" / HEAD).unlink()
    assert trained.until_idle(role) == ["join with the stake"]
    assert (bonds.bond(toy.plan_id, account).standing, toy.free("challenger")) == (Standing.JOINED, 0)
    with pytest.raises(ProtocolError, match="is not the coordinator"):
        RoundParty(
            toy.connection,
            trained.contracts,
            toy.wallets["ann"].signer,
            trained.store.url,
            toy.plan_id,
            trained.folder / "x",
            keeps=True,
        )


@dataclass
class Operated:
    """`pol run` in processes of their own."""

    trained: Trained

    def __post_init__(self) -> None:
        treasury = self.trained.toy.wallets["treasury"].address
        deployed = RoundsDeployment(self.trained.toy.connection.chain_id, 0, treasury, self.trained.addresses)
        self.processes = list[subprocess.Popen[str]]()
        self.file = self.trained.folder / "rounds.json"
        self.file.write_text(deployed.to_json())

    def command(self, *words: str, name: str | None = None, store: bool = True) -> list[str]:
        place = ["--deployment", str(self.file), "--rpc", self.trained.toy.connection.name]
        place += ["--store", self.trained.store.url] if store else []
        signer = (
            [] if name is None else ["--key-env", f"KEY_OF_{name.upper()}", "--data", str(self.trained.folder / name)]
        )
        return [sys.executable, "-m", "pol.cli.main", *words, *place, *signer]

    @property
    def keys(self) -> dict[str, str]:
        secrets = {
            f"KEY_OF_{name.upper()}": keccak256(b"rounds " + name.encode()).hex() for name in (*WORKERS, "keeper")
        }
        return {**os.environ, **secrets}

    def pol(self, *words: str, code: int = 0, **about: Any) -> str:
        done = ran(self.command(*words, **about), code=code, env=self.keys, timeout=300)
        return done.stdout if code == 0 else done.stderr

    def start(self, kind: str, name: str, *words: str) -> subprocess.Popen[str]:
        command = self.command("run", kind, "--poll", "0.2", "--json", *words, name=name)
        self.processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=self.keys))
        return self.processes[-1]


@pytest.fixture
def operated(trained: Trained) -> Iterator[Operated]:
    operator = Operated(trained)
    yield operator
    for process in operator.processes:
        process.send_signal(signal.SIGINT)
        with process:
            process.wait(60)


def until(process: subprocess.Popen[str], verb: str) -> dict[str, Any]:
    """The line that says that the process has done something; `start` for its first one."""
    assert process.stdout is not None
    for line in process.stdout:
        told = json.loads(line)
        if told["event"] == verb or (told.get("verb"), told.get("result")) == (verb, "done"):
            return dict(told)
    raise AssertionError(f"the process has ended, and never said: {verb}")


@pytest.mark.long
def test_processes_answer_are_killed_and_go_on(trained: Trained, operated: Operated) -> None:
    """`pol run worker` and `pol run keeper` on a real node, from the demand to the pay; /health and `pol explain`."""
    toy, shares = trained.toy, trained.contracts.shares
    ann, plan = toy.wallets["ann"].address, ("--plan", toy.plan_id.hex())

    def explained() -> dict[str, Any]:
        return dict(json.loads(operated.pol("explain", ann, "--settlement", "0", "--json", *plan, store=False)))

    assert "is not the coordinator" in operated.pol("run", "keeper", *plan, name="ann", code=1)
    worker = operated.start("worker", "ann")
    started = until(worker, "start")
    assert (started["standing"], started["claims"], started["problems"]) == ("joined", 3, [])
    demands_of_all_kinds(toy)
    until(worker, "answer a demand")
    worker.kill()
    worker.wait()
    shutil.move(trained.folder / "store", trained.folder / "away")
    worker = operated.start("worker", "ann", *plan, "--metrics", "127.0.0.1:0")
    url = until(worker, "start")["metrics"]
    while trained.contracts.demands.demands(toy.plan_id):
        time.sleep(0.2)
    shutil.move(trained.folder / "away", trained.folder / "store")
    keeper = operated.start("keeper", "keeper", *plan)
    toy.connection.wait_until(trained.contracts.bonds.read("registeredAt", toy.plan_id) + MONEY.period)
    until(keeper, "open a settlement")
    until(worker, "post a line")
    assert explained()["state"] == "waits"
    toy.connection.wait_until(shares.settlement(toy.plan_id, 0).closes + 1)
    before = time.monotonic()
    while explained()["state"] != "paid":
        assert time.monotonic() - before < 300
    with urllib.request.urlopen(f"{url}/health", timeout=10) as answer:
        health = json.load(answer)
    assert (health["plan"], health["standing"], health["settlements"]) == (toy.plan_id.hex(), "joined", 1)
    assert "paid" in operated.pol("explain", ann, *plan, store=False)
    assert "no settlement" in operated.pol("explain", ann, "--settlement", "7", *plan, store=False)
