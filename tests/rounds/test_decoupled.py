"""Asynchronous DiLoCo with workers of different speed: what a server does with arrivals is found from its receipts."""

from dataclasses import replace

import pytest
from logged_trainings import Convict, by_replay, read_whole

from lab.rounds.replica_cheats import OMITTED, REORDERED, STALE, LyingServer, Shouting, Slow, StaleMerge
from pol.decentralised.decoupled import Decoupled, decoupled_plan, run_decoupled
from pol.decentralised.diloco import MERGE, MESSAGE
from pol.decentralised.processes.local_processes import local_key
from pol.errors import ProtocolError
from pol.rounds.auditing.round_audit import Finding, Lie, findings_by_roots
from pol.rounds.log.log_entries import DeliveryEntry
from pol.rounds.log.logged_rounds import LoggedRounds
from pol.rounds.plan.rounds_plan import SourceRule
from pol.rounds.plan.source_rules import ClaimPlace, required_sources
from pol.rounds.roster import Arrival
from pol.training.storage.store import Store

OPTIONS = Decoupled(rounds=7, steps=3, seats=3, quorum=2)
SERVER, SLOW, LIAR = local_key(-1).name, 1, 2
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> LoggedRounds:
    folder = tmp_path_factory.mktemp("decoupled")
    plan = decoupled_plan(Store(f"file://{folder}/store"), OPTIONS, SERVER, bytes(32))
    run_decoupled(folder, plan, OPTIONS, {0: StaleMerge, SLOW: Slow, LIAR: Shouting}, LyingServer)
    return read_whole(folder)


@pytest.fixture(scope="module")
def by_roots(rounds: LoggedRounds) -> list[Finding]:
    return list(findings_by_roots(rounds))


def test_workers_go_at_their_own_speed(rounds: LoggedRounds) -> None:
    message = [phase.name for phase in rounds.plan.phases].index(MESSAGE)
    sent = [entry.worker for entry in rounds.claims.values() if entry.claim.phase == message]
    assert len(sent) == (OPTIONS.rounds - 1) * OPTIONS.quorum
    counts = [sent.count(local_key(number).name) for number in (1, 2, 3)]
    assert counts[0] < max(counts)
    ages = {roster.round - arrival.round for (roster,) in rounds.rosters.values() for arrival in roster.arrivals}
    assert max(ages) <= OPTIONS.staleness


def test_lies_about_arrivals_are_the_servers(rounds: LoggedRounds, by_roots: list[Finding]) -> None:
    told = {(found.lie, found.worker, found.round, found.phase) for found in by_roots}
    assert told == {
        (Lie.ORDER, SERVER, REORDERED, "arrivals"),
        (Lie.OMISSION, SERVER, OMITTED, "arrivals"),
        (Lie.SOURCE, SERVER, STALE, MERGE),
    }


def test_a_receipt_without_an_entry_is_an_omission(rounds: LoggedRounds, by_roots: list[Finding]) -> None:
    promised = next(found.claim for found in by_roots if found.lie is Lie.OMISSION)
    receipt = next(e for e in rounds.entries if isinstance(e, DeliveryEntry) and e.claim == promised)
    rest = replace(rounds, entries=[entry for entry in rounds.entries if entry != receipt])
    held = [found for found in findings_by_roots(rest, receipts=[receipt]) if found.claim == promised]
    assert [(found.lie, found.worker, found.round) for found in held] == [(Lie.OMISSION, SERVER, OMITTED)]
    claims = {digest: entry for digest, entry in rounds.claims.items() if digest != promised}
    gone = replace(rest, claims=claims, entries=[e for e in rest.entries if e is not rounds.claims[promised]])
    held = [found for found in findings_by_roots(gone, receipts=[receipt]) if found.claim == promised]
    assert [(found.lie, found.worker, found.phase) for found in held] == [(Lie.OMISSION, SERVER, "log")]
    assert list(findings_by_roots(rounds, receipts=[replace(receipt, claim=bytes(32))])) == by_roots


def test_a_workers_lie_ends_at_one_scalar(rounds: LoggedRounds, convict: Convict) -> None:
    found = by_replay(rounds)
    liar = local_key(LIAR).name
    assert found
    assert {(item.lie, item.worker, item.phase) for item in found} == {(Lie.EXECUTION, liar, MESSAGE)}
    convict(rounds, found[0].claim)


def test_what_is_too_old_has_no_place(rounds: LoggedRounds) -> None:
    (roster,), (before,) = rounds.rosters[6], rounds.rosters[5]
    place = ClaimPlace(SERVER, 6, 0, 0)
    for age in (OPTIONS.staleness + 1, 0):
        wrong = replace(roster, arrivals=(Arrival(1, 5), Arrival(2, 6 - age)))
        with pytest.raises(ProtocolError, match="has to be of the 4 before"):
            required_sources(rounds.plan, wrong, before, place)
    with pytest.raises(ProtocolError, match="has no arrival:1"):
        required_sources(rounds.plan, replace(roster, arrivals=(Arrival(1, 5),)), before, place)
    with pytest.raises(ProtocolError, match="that of an arrival 1 or more"):
        SourceRule("message", 0, "member:0", lag=2, initial=0)
