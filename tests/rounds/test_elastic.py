"""Elastic DiLoCo on real processes that join, leave, are killed and come back; and its lies."""

import multiprocessing
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from logged_trainings import Convict, by_replay, read_whole

from lab.rounds.killed_processes import Interrupted, train_apart
from lab.rounds.replica_cheats import Equivocator, Forgetful, IdleJoiner, Magnifier, TwoFaced
from pol.decentralised.diloco import MESSAGE, SENT, DiLoCo, diloco_plan, diloco_round
from pol.decentralised.elastic.coordination import Patience
from pol.decentralised.elastic.elastic_worker import ElasticWorker
from pol.decentralised.elastic.member_processes import ElasticMember, ElasticRound, run_members
from pol.decentralised.elastic.roster_coordinator import RosterCoordinator
from pol.decentralised.parts.small_gpt import Shape
from pol.decentralised.processes.local_processes import local_key
from pol.demo.worker_processes import Mortal, Sandbagger
from pol.rounds.auditing.claim_replay import load_start
from pol.rounds.auditing.drawn_audit import audit, open_rounds
from pol.rounds.auditing.round_audit import Finding, Lie, findings_by_roots
from pol.rounds.earlier_claims import published_claim
from pol.rounds.log.log_entries import ClaimEntry, DeliveryEntry
from pol.rounds.log.logged_rounds import LoggedRounds
from pol.rounds.log.worker_journal import WorkerJournal
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.plan.source_rules import ClaimPlace
from pol.training.storage.store import Store

pytestmark = pytest.mark.long
Train = Callable[..., LoggedRounds]
COORDINATOR = local_key(-1).name
PATIENCE = Patience(members=1200, least=3, limit=2400)  # none of it passes in a test: processes are known to be dead

ANY = replace(PATIENCE, least=1)
ONE_AFTER_ANOTHER = (ElasticMember(0), ElasticMember(1, joins=1), ElasticMember(2, joins=2))
"""Workers whose places in rosters, and so whose seats, depend on nobody's speed."""


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, RoundsPlan]:
    """A store with the plan, captured once."""
    folder = tmp_path_factory.mktemp("captured")
    options = DiLoCo(steps=5, seats=4, sizes=(1, 2, 3, 4), shape=Shape(layers=1, width=16, heads=2, length=8))
    return folder, diloco_plan(Store(f"file://{folder}"), options, COORDINATOR, bytes(32))


@pytest.fixture
def train(captured: tuple[Path, RoundsPlan], tmp_path: Path) -> Train:
    def trained(
        members: Sequence[ElasticMember],
        rounds: int,
        coordinator: type[RosterCoordinator] = RosterCoordinator,
        least: int = 3,
    ) -> LoggedRounds:
        shutil.copytree(captured[0], tmp_path / "store")
        store, plan = Store(f"file://{tmp_path}/store"), replace(captured[1], rounds=rounds)
        store.put(plan.encode())
        patience, shared = replace(PATIENCE, least=least), (MESSAGE, SENT)
        run_members(tmp_path, plan, diloco_round, members, shared, seats=4, patience=patience, coordinator=coordinator)
        return read_whole(tmp_path)

    return trained


def name(number: int) -> str:
    return local_key(number).name


def members_of(rounds: LoggedRounds, round_: int, provisional: bool) -> set[str]:
    (roster,) = (one for one in rounds.rosters[round_] if one.provisional is provisional)
    return {member.worker for member in roster.members}


def receipts(rounds: LoggedRounds, number: int) -> list[DeliveryEntry]:
    return WorkerJournal(rounds.store, rounds.plan.digest, name(number)).receipts


def blamed(found: Sequence[Finding]) -> set[tuple[Lie, str]]:
    return {(one.lie, one.worker) for one in found}


def test_workers_join_leave_are_killed_and_come_back(train: Train) -> None:
    """One joins in round 2; one is killed in round 1 and goes on; one in round 2, and joins again; one leaves."""
    members = [
        ElasticMember(0, leaves=3),
        ElasticMember(1, author=partial(Mortal, last_round=1)),
        ElasticMember(2, author=partial(Mortal, last_round=2), absent=True),
        ElasticMember(3, joins=2),
    ]
    rounds = train(members, 5)
    assert members_of(rounds, 1, provisional=False) == {name(0), name(1), name(2)}
    assert members_of(rounds, 2, provisional=True) == {name(number) for number in range(4)}
    assert members_of(rounds, 2, provisional=False) == {name(0), name(1), name(3)}
    assert members_of(rounds, 3, provisional=False) == {name(1), name(2), name(3)}
    held = [receipt for number in range(4) for receipt in receipts(rounds, number)]
    assert len(held) == 15
    assert not list(findings_by_roots(rounds, receipts=held))
    assert not by_replay(rounds)
    _require_joined(rounds, 3, 2)
    _require_joined(rounds, 2, 3)
    for round_ in range(5):
        ends = {entry.claim.end for entry in rounds.claims.values() if entry.claim.round == round_ and _merges(entry)}
        assert len(ends) == 1


def _merges(entry: ClaimEntry) -> bool:
    return entry.claim.phase >= 2


def _require_joined(rounds: LoggedRounds, number: int, round_: int) -> None:
    """A joiner starts from the first member's merge of the round before, with an optimizer that has seen nothing."""
    local = rounds.places[ClaimPlace(name(number), round_, 0, 0)]
    (before,) = rounds.before(round_)
    phase = rounds.plan.phase_index("merge", len(before.members))
    merged = published_claim(rounds, rounds.places[ClaimPlace(before.members[0].worker, round_ - 1, phase, 0)])
    start, rules = load_start(rounds, local), rounds.plan.phases[0].sources
    for slot, rule in enumerate(rules):
        if rule.inherits:
            assert np.array_equal(start[slot], merged.words[rule.slot])
        else:
            assert not start[slot].any()
    assert sum(rule.inherits for rule in rules) * 3 <= len(rules)


class LateStarter(ElasticWorker):
    """Its process is slower to start than all rounds of the others take, as one on a busy machine."""

    def take_part(self, do_round: ElasticRound, joins: int = 0, leaves: int | None = None) -> None:
        time.sleep(4)
        super().take_part(do_round, joins, leaves)


def test_a_worker_that_starts_late_is_waited_for(train: Train) -> None:
    rounds = train([ElasticMember(0), ElasticMember(1, joins=1, worker=LateStarter)], 2, least=1)
    assert members_of(rounds, 1, provisional=False) == {name(0), name(1)}


@pytest.fixture(scope="module")
def undisturbed(captured: tuple[Path, RoundsPlan], tmp_path_factory: pytest.TempPathFactory) -> set[bytes]:
    """The end of a training of `ONE_AFTER_ANOTHER` in which nobody dies."""
    folder, plan = copied(captured, tmp_path_factory.mktemp("undisturbed"))
    run_members(folder, plan, diloco_round, ONE_AFTER_ANOTHER, (MESSAGE, SENT), seats=4, patience=ANY)
    return honest_ends(folder)


def copied(captured: tuple[Path, RoundsPlan], folder: Path) -> tuple[Path, RoundsPlan]:
    """A folder with a training of four rounds that hasn't begun."""
    shutil.copytree(captured[0], folder / "store")
    plan = replace(captured[1], rounds=4)
    Store(f"file://{folder}/store").put(plan.encode())
    return folder, plan


def honest_ends(folder: Path) -> set[bytes]:
    """The ends of the last merges; nobody can be accused of anything."""
    store = Store(f"file://{folder}/store")
    assert audit(store, is_all_roots=True).outcome == "accepted"
    rounds = open_rounds(store)
    held = [receipt for member in ONE_AFTER_ANOTHER for receipt in receipts(rounds, member.number)]
    assert len(held) == 1 + 2 + 3 + 3
    assert not list(findings_by_roots(rounds, receipts=held))
    assert not by_replay(rounds)
    ends = {entry.claim.end for entry in rounds.claims.values() if entry.claim.round == 3 and _merges(entry)}
    assert len(ends) == 1
    return ends


def test_a_coordinator_killed_in_a_round_goes_on(
    undisturbed: set[bytes], captured: tuple[Path, RoundsPlan], tmp_path: Path
) -> None:
    """Its workers wait for it; the training comes to the same weights as one in which nobody dies."""
    folder, plan = copied(captured, tmp_path)
    kinds, shared = (Interrupted, RosterCoordinator), (MESSAGE, SENT)
    killed = train_apart(folder, plan, diloco_round, ONE_AFTER_ANOTHER, shared, kinds, seats=4, patience=ANY)
    assert killed == 1
    assert honest_ends(folder) == undisturbed


def test_a_training_killed_as_a_whole_goes_on(
    undisturbed: set[bytes], captured: tuple[Path, RoundsPlan], tmp_path: Path
) -> None:
    """Workers end with the process that has started them, and are started again with it."""
    folder, plan = copied(captured, tmp_path)
    given = (folder, plan, diloco_round, ONE_AFTER_ANOTHER, (MESSAGE, SENT))
    options = {"seats": 4, "patience": ANY}
    context = multiprocessing.get_context("forkserver")
    first = context.Process(target=run_members, args=given, kwargs=options | {"coordinator": Interrupted})
    first.start()
    first.join()
    assert first.exitcode == -signal.SIGKILL
    run_members(*given, seats=4, patience=ANY)
    assert honest_ends(folder) == undisturbed


def test_lies_of_workers(train: Train, convict: Convict) -> None:
    """One extrapolates, one sends ten times its change, one joins with the plan's weights, one shows two messages."""
    members = [
        ElasticMember(0, author=Sandbagger),
        ElasticMember(1, author=Magnifier),
        ElasticMember(2, worker=Equivocator),
        ElasticMember(3, joins=2, author=IdleJoiner),
    ]
    rounds = train(members, 4)
    by_roots = list(findings_by_roots(rounds))
    assert blamed(by_roots) == {(Lie.SOURCE, name(3)), (Lie.EQUIVOCATION, name(2))}
    found = by_replay(rounds)
    lies = [one for one in found if one.lie is Lie.EXECUTION and one.claim not in {old.claim for old in by_roots}]
    assert {(one.worker, one.round, one.phase) for one in lies} == {(name(0), 1, "local"), (name(1), 1, "message")}
    for one in lies:
        convict(rounds, one.claim)


@pytest.mark.parametrize(("coordinator", "lie"), [(Forgetful, Lie.OMISSION), (TwoFaced, Lie.EQUIVOCATION)])
def test_lies_of_coordinators(coordinator: type[RosterCoordinator], lie: Lie, train: Train) -> None:
    rounds = train([ElasticMember(0), ElasticMember(1)], 3, coordinator, least=2)
    held = [receipt for number in (0, 1) for receipt in receipts(rounds, number)]
    found = list(findings_by_roots(rounds, receipts=held))
    assert (lie, COORDINATOR) in blamed(found)
    assert {one.worker for one in found} == {COORDINATOR}
    assert not by_replay(rounds)
