"""Claims that a keeper has signed for and doesn't log: a worker demands what pays, and counts what is shown."""

from dataclasses import replace
from pathlib import Path

import pytest
from test_round_parties import Trained, has_gone
from toy_rounds import GOSSIP, MERGE, MONEY, STEP, UNITS, WORKERS, ToyRounds

from pol.chain.rounds.worker_bonds import Standing
from pol.errors import ProtocolError
from pol.roles.party.decisions import Mode
from pol.rounds.log.journaled_keeper import JournaledKeeper
from pol.rounds.log.log_entries import ClaimEntry, DeliveryEntry, RosterEntry
from pol.rounds.log.worker_journal import WorkerJournal
from pol.rounds.round_claim import encode_sources, sources_root

ASK = "demand an entry"


def without(toy: ToyRounds, folder: Path, *left_out: ClaimEntry, of: int = STEP, rounds: int = 2) -> Trained:
    """A log that lacks claims; ann has the keeper's receipt of her claim in a phase."""
    made = Trained(toy, folder)
    training = JournaledKeeper(made.store, toy.plan.digest, toy.keys["keeper"])
    roster, receipt = made.signed(toy.rosters[0]), toy.made["ann", of].entry
    training.append(roster, 0)
    for name in WORKERS:
        journal = WorkerJournal(made.store, toy.plan.digest, toy.keys[name].name)
        journal.see(toy.rosters[0], roster.signature)
        for phase in (STEP, MERGE, GOSSIP):
            entry = toy.made[name, phase].entry
            journal.add(entry, toy.authors[name].named(toy.made[name, phase]))
            if entry not in left_out:
                training.append(entry, 0)
        if name == "ann":
            journal.add(DeliveryEntry.signed(toy.keys["keeper"], toy.plan.digest, 0, receipt.claim.digest))
    for later in toy.rosters[1:rounds]:
        training.append(made.signed(replace(later, arrivals=())), later.round)
    training.publish([])
    return made


@pytest.mark.parametrize("of", [STEP, MERGE], ids=["its receipt", "that of what follows"])
def test_a_keeper_that_keeps_a_claim_back_falls(toy: ToyRounds, tmp_path: Path, of: int) -> None:
    """Nobody else would pay a bond for it: its author was told, and lost the pay."""
    made = without(toy, tmp_path, toy.made["ann", STEP].entry, of=of)
    assert ASK in made.until_idle(made.party("ann"))
    before = toy.free("ann")
    (demand,) = made.contracts.demands.demands(toy.plan_id)
    assert ASK not in made.until_idle(made.party("ann")), "it is asked for once"
    toy.connection.wait_until(demand.deadline + 1)
    assert "end a demand" in made.until_idle(made.party("ann"))
    assert toy.contracts.bonds.bond(toy.plan_id, toy.wallets["keeper"].address).standing is Standing.SLASHED
    assert toy.free("ann") == before + demand.bond + MONEY.keeper_stake // 16


def test_what_is_shown_counts_though_no_head_holds_it(toy: ToyRounds, tmp_path: Path) -> None:
    """The keeper enters the claim, answers, and publishes nothing more. A claim behind it, counted before, would give
    it up: the line waits, and counts both.
    """
    step, shares = toy.made["ann", STEP].entry, toy.contracts.shares
    made = without(toy, tmp_path, step)
    toy.connection.wait_until(made.contracts.bonds.read("registeredAt", toy.plan_id) + MONEY.period)
    shares.open(toy.wallets["challenger"], toy.plan_id)
    assert made.until_idle(made.party("ann")) == [ASK]
    training = JournaledKeeper(made.store, toy.plan.digest, toy.keys["keeper"])
    training.append(step, 0)
    training.keep([])
    assert "answer a demand" in made.until_idle(made.party("keeper"))
    assert made.until_idle(made.party("ann")) == ["post a line"]
    line = shares.line(toy.plan_id, 0, toy.wallets["ann"].address)
    assert (line.count, line.units) == (2, sum(UNITS))
    shares.demand_counted(toy.wallets["challenger"], toy.plan_id, 0, toy.wallets["ann"].address, 0)
    assert made.until_idle(made.party("ann")) == ["answer a demand"]


def test_no_demand_costs_more_than_its_claim_is_paid(
    toy: ToyRounds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A keeper that enters it then has the bond: whoever asks for each claim would work for it."""
    made = without(toy, tmp_path, toy.made["ann", STEP].entry)
    worth = MONEY.pay * UNITS[STEP] // MONEY.work
    ann = made.party("ann")
    monkeypatch.setattr(ann.contracts.demands, "bond", lambda plan_id: worth)
    toy.connection.wait_until(made.contracts.bonds.read("registeredAt", toy.plan_id) + MONEY.period)
    toy.contracts.shares.open(toy.wallets["challenger"], toy.plan_id)
    assert made.until_idle(ann) == ["post a line"]
    assert toy.contracts.shares.line(toy.plan_id, 0, ann.wallet.address).units == UNITS[GOSSIP]


@pytest.mark.parametrize("mode", [Mode.RESOLVE, Mode.PROPOSE])
def test_a_round_that_goes_on_is_waited_for(toy: ToyRounds, tmp_path: Path, mode: Mode) -> None:
    """A receipt comes before the head that holds its claim; behind the last round that is waited for, but in time for
    the last line.
    """
    made, shares = without(toy, tmp_path, toy.made["ann", STEP].entry, rounds=1), toy.contracts.shares
    toy.connection.wait_until(made.contracts.bonds.read("registeredAt", toy.plan_id) + MONEY.period)
    shares.open(toy.wallets["challenger"], toy.plan_id)
    toy.connection.wait_until(shares.read("openedAt", toy.plan_id) + MONEY.period)
    shares.open(toy.wallets["challenger"], toy.plan_id)
    assert ASK not in made.until_idle(made.party("ann"), mode)
    last = shares.read("openedAt", toy.plan_id) + MONEY.period + MONEY.line_window - MONEY.answer_window
    toy.connection.wait_until(last - MONEY.line_window + 1)
    assert (ASK in made.until_idle(made.party("ann"), mode)) == (mode is Mode.PROPOSE)


def test_a_roster_is_shown_with_its_coordinators_signature(toy: ToyRounds, tmp_path: Path) -> None:
    """The log has an entry of its document that nobody has signed, and has it first: that was shown, for the stake."""
    made = Trained(toy, tmp_path)
    good = made.signed(toy.rosters[0])
    made.train(RosterEntry(good.document, toy.keys["challenger"].sign(toy.rosters[0].digest)))
    toy.contracts.demands.demand_roster(toy.wallets["challenger"], toy.plan_id, toy.made["ann", STEP].entry)
    assert made.until_idle(made.party("ann")) == ["answer a demand"]
    # So the lie of two rosters.
    other = replace(toy.rosters[0], members=tuple(replace(each, weight=2) for each in toy.rosters[0].members))
    journal = WorkerJournal(made.store, toy.plan.digest, toy.keys["ann"].name)
    with pytest.raises(ProtocolError, match="two rosters of round 0"):
        journal.see(other, made.signed(other).signature)
    assert made.until_idle(made.party("ann"), Mode.RESOLVE) == ["show a lie"]
    assert toy.contracts.bonds.bond(toy.plan_id, toy.wallets["keeper"].address).standing is Standing.SLASHED


def test_the_rosters_of_named_claims_are_kept(toy: ToyRounds, tmp_path: Path) -> None:
    """Who has given a source may have no stake by the demand: its roster is shown, or a stake is lost."""
    made, begun = Trained(toy, tmp_path), replace(toy.rosters[0], provisional=True)
    named = toy.signed("bob", toy.made["bob", STEP].entry, roster=begun.document)
    sources = toy.sources(toy.made["ann", MERGE].entry)
    sources[1] = replace(sources[1], claim=named.claim.digest)
    merge = toy.signed("ann", toy.made["ann", MERGE].entry, sources=sources_root(sources))
    journal = WorkerJournal(made.store, toy.plan.digest, toy.keys["ann"].name)
    journal.see(toy.rosters[0], made.signed(toy.rosters[0]).signature)
    journal.add(toy.made["ann", STEP].entry)
    journal.add(replace(merge, sources=made.store.put(encode_sources(sources))), [named])
    has_gone(toy, "ann")
    with pytest.raises(ProtocolError, match=r"would cost the stake: .* has roster"):
        made.party("ann")
    journal.see(begun, made.signed(begun).signature)
    made.party("ann")
