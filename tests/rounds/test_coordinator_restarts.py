"""A coordinator that is killed at any write, and started again: it goes on, and nothing that it has shown is lost."""

import gc
import random
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest
from torch.distributed import HashStore  # type: ignore[attr-defined]  # torch exports it without a list

import chosen_rows
from lab.rounds.restart_drill import SHARED, RestartDrill
from lab.rounds.tiny_training import COORDINATOR, SEATS, key, tiny_plan
from pol.commitments.checkpoint_log import LogEdge
from pol.commitments.keccak import keccak256
from pol.commitments.tensor import ListTag, list_root
from pol.decentralised.elastic.coordination import Reception
from pol.decentralised.elastic.mailbox import ROUND, Mailbox
from pol.decentralised.elastic.roster_coordinator import RosterCoordinator
from pol.errors import OperationalError, ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.rounds.auditing.claim_replay import findings_by_replay, load_phase
from pol.rounds.auditing.drawn_audit import audit, open_rounds
from pol.rounds.auditing.round_audit import findings_by_roots
from pol.rounds.claim_author import ClaimAuthor, MadeClaim
from pol.rounds.log.journaled_keeper import JournaledKeeper
from pol.rounds.log.log_entries import PAGE, Change, ClaimEntry, MembershipEntry, RosterEntry, encode_entry
from pol.rounds.log.rounds_log import HEAD, load_head, require_whole
from pol.rounds.message import decode_message, slots_of
from pol.rounds.roster import Roster
from pol.rounds.round_claim import (
    INITIAL,
    BoundSlot,
    EndSlot,
    RoundClaim,
    encode_end,
    encode_sources,
    sources_root,
    start_of,
)
from pol.training.storage.store import Store

ROUNDS = 3


@dataclass(frozen=True)
class Undisturbed:
    """A training without a death: the ends of its last merges, and how often its coordinator writes."""

    ends: frozenset[bytes]
    writes: int


@pytest.fixture(scope="module")
def undisturbed() -> Undisturbed:
    drill = RestartDrill.of(ROUNDS)
    drill.play()
    require_honest(drill)
    require_accepted(drill)
    return Undisturbed(last_ends(drill), drill.writes[0])


def last_ends(drill: RestartDrill) -> frozenset[bytes]:
    """The ends of all claims of the last round."""
    claims = open_rounds(Store(drill.url)).claims.values()
    return frozenset(entry.claim.end for entry in claims if entry.claim.round == ROUNDS - 1)


def require_honest(drill: RestartDrill) -> None:
    """The log has all that anybody has seen, and roots show nothing that anybody could be accused of."""
    rounds = open_rounds(Store(drill.url))
    roots, edge = {}, LogEdge()
    for entry in rounds.entries:
        edge = edge.append(keccak256(encode_entry(entry)))
        roots[edge.size] = edge.root()
    assert all(roots[head.size] == head.root for head in drill.heads)
    assert all(before.size <= after.size for before, after in pairwise(drill.heads))
    newest = [int(data) for where, data in drill.shown if where == ROUND]
    assert newest == sorted(newest)  # also while what was before is shown again
    assert len({where for where, _ in drill.rosters}) == len(drill.rosters) == 2 * ROUNDS
    logged = set(map(encode_entry, rounds.entries))
    assert {data for _, data in drill.rosters} <= logged
    held = [receipt for worker in drill.workers for receipt in worker.journal.receipts]
    for receipt in [*drill.receipts, *held]:
        assert encode_entry(receipt) in logged
        assert receipt.claim in rounds.claims
    assert len({receipt.claim for receipt in drill.receipts}) == 7  # three workers in three rounds, two of them in two
    assert not list(findings_by_roots(rounds, receipts=held))


def require_accepted(drill: RestartDrill) -> None:
    """An audit passes, and a replay of all claims shows no lie."""
    store = Store(drill.url)
    rounds = open_rounds(store)
    require_whole(store, load_head(store)[1])
    assert not list(findings_by_replay(rounds, rounds.claims.values(), CpuExecutor))
    assert audit(store, is_all_roots=True).outcome == "accepted"


@pytest.mark.long
@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("begin", chosen_rows.first(range(5), 1, others=pytest.mark.slow))
def test_a_coordinator_killed_at_any_write_goes_on(begin: int, is_done: bool, undisturbed: Undisturbed) -> None:
    assert undisturbed.writes > 30
    for write in range(begin, undisturbed.writes, 5):
        drill = RestartDrill.of(ROUNDS, [(write, is_done)])
        drill.play()
        require_honest(drill)
        assert last_ends(drill) == undisturbed.ends, f"write {write}"


@pytest.mark.parametrize("seed", [0, 1, *[pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 8)]])
def test_a_coordinator_killed_again_and_again_goes_on(seed: int, undisturbed: Undisturbed) -> None:
    """Also when it is killed while it takes up what was before."""
    drawn = random.Random(seed)
    deaths = [(drawn.randrange(12), drawn.random() < 0.5) for _ in range(6)]
    drill = RestartDrill.of(ROUNDS, deaths)
    drill.play()
    require_honest(drill)
    require_accepted(drill)
    assert last_ends(drill) == undisturbed.ends


def begun(store: Store) -> RosterCoordinator:
    """A coordinator of two workers in round 0."""
    coordinator = RosterCoordinator(store, tiny_plan(store), COORDINATOR, SEATS)
    for number in range(2):
        join = MembershipEntry.signed(key(number), coordinator.plan.digest, 0, Change.JOIN)
        coordinator.take(encode_entry(join))
    coordinator.begin_round()
    return coordinator


def play(coordinator: RosterCoordinator, rounds: int) -> None:
    """Rounds of two workers that say that they stay, and deliver; nobody looks at what their claims compute."""
    sources, end = [BoundSlot(INITIAL, 0, bytes(32))], [EndSlot(bytes(32), True)]
    store, root = coordinator.store, list_root(ListTag.STATE, [bytes(32)])
    objects = (store.put(encode_sources(sources)), store.put(encode_end(end)))
    for _ in range(rounds):
        assert coordinator.roster is not None
        round_, names = coordinator.round, [member.worker for member in coordinator.roster.members]
        for number, name in enumerate(names):
            roster, digests = coordinator.roster.document, (bytes(32), bytes(32))
            ends = (start_of(sources), root, sources_root(sources))
            claim = RoundClaim(coordinator.plan.digest, name, round_, 0, 0, roster, *digests, 0, 3, *ends)
            entry = ClaimEntry(claim, key(number).sign(claim.digest), *objects)
            assert coordinator.deliver(MadeClaim(entry, (), {})) is not None
        coordinator.end_round()
        for number in range(len(names)):
            stay = MembershipEntry.signed(key(number), coordinator.plan.digest, round_ + 1, Change.HEARTBEAT)
            coordinator.take(encode_entry(stay))
        coordinator.begin_round()


@pytest.mark.long
def test_what_it_remembers_doesnt_grow_with_the_rounds(tmp_path: Path) -> None:
    """A thousand members leave three million entries in a thousand rounds."""
    store = Store(f"file://{tmp_path}")
    coordinator = begun(store)
    page = PAGE // 8  # rounds; each has eight entries
    play(coordinator, page)
    tracemalloc.start()
    try:
        play(coordinator, page)
        gc.collect()
        few = tracemalloc.get_traced_memory()[0]
        play(coordinator, 2 * page)
        gc.collect()
        many = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert many - few < 2 * PAGE * 100  # an entry of a claim has a thousand bytes
    again = RosterCoordinator(store, coordinator.plan, COORDINATOR, SEATS)
    assert (again.roster, again.silent) == (coordinator.roster, coordinator.silent)


def test_what_it_goes_on_from_is_said_in_one_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = Store(f"file://{tmp_path}")
    before = begun(store)
    caplog.clear()
    join = MembershipEntry.signed(key(2), before.plan.digest, 1, Change.JOIN)
    before.take(encode_entry(join))
    before.keep()
    assert RosterCoordinator(store, before.plan, COORDINATOR, SEATS).roster == before.roster
    assert caplog.messages == [
        "the coordinator goes on in round 0, which has begun (messages: 0); entries in its log: 3, of them from its "
        "journal alone: 0; notices: 1"
    ]


def test_a_coordinator_that_is_started_again_signs_no_second_roster_of_a_round(tmp_path: Path) -> None:
    """Two rosters of one round cost it its stake, and so would those of a log whose journal is gone."""
    store = Store(f"file://{tmp_path}")
    plan = begun(store).plan
    again = RosterCoordinator(store, plan, COORDINATOR, SEATS)
    assert (again.round, again.is_begun) == (0, True)
    rosters = [entry for entry in open_rounds(store).entries if isinstance(entry, RosterEntry)]
    assert len(rosters) == 1
    store.remove(f"keeper-{plan.digest.hex()}.json")
    with pytest.raises(ProtocolError, match="has begun already"):
        RosterCoordinator(store, plan, COORDINATOR, SEATS)


def test_an_acknowledged_message_is_there_whoever_is_gone(tmp_path: Path) -> None:
    """Neither its author nor the meeting is there any more: receipt, claim and message come from log and store."""
    store = Store(f"file://{tmp_path}")
    before = begun(store)
    author = ClaimAuthor(store, before.plan, key(1), CpuExecutor)
    store.put(before.plan.encode())
    assert before.roster is not None
    author.rosters[0] = before.roster
    made = author.make(0, "work")
    receipt = before.deliver(made)
    assert receipt is not None
    before.keep()
    after = RosterCoordinator(store, before.plan, COORDINATOR, SEATS)
    assert after.owing == [key(0).name]
    mailbox = Mailbox(HashStore(), 1.0)
    Reception(after, mailbox, *SHARED).restore()
    assert mailbox.receipt(made.entry.claim.digest) == encode_entry(receipt)
    slots = slots_of(load_phase(store, after.plan.phases[0]).names, SHARED[1])
    message = decode_message(store, after.plan, mailbox.message(0, "work", key(1).name), slots)
    assert message.entry == made.entry
    final = Roster.decode(store.get(after.end_round().document))
    assert [member.worker for member in final.members] == [key(1).name]
    assert {made.entry, receipt} <= set(open_rounds(store).entries)


def test_a_coordinator_stops_beside_which_another_was_started(tmp_path: Path) -> None:
    """It was taken for dead, and only slept: the roster that it would sign is another one's."""
    store = Store(f"file://{tmp_path}")
    before = begun(store)
    RosterCoordinator(store, before.plan, COORDINATOR, SEATS)
    before.take(encode_entry(MembershipEntry.signed(key(2), before.plan.digest, 1, Change.JOIN)))
    with pytest.raises(OperationalError, match="another coordinator was started"):
        before.keep()


class SlowStore(Store):
    """A store in which something happens before the next write of a journal takes effect."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.meanwhile: list[Callable[[], object]] = []

    def replace(self, name: str, data: bytes) -> None:
        if name.startswith("keeper-") and self.meanwhile:
            self.meanwhile.pop()()
        super().replace(name, data)


def test_a_coordinator_whose_write_outlasts_the_start_of_another_shows_nothing(tmp_path: Path) -> None:
    """Its store hung while it signed a roster: the other one has signed another for that round meanwhile."""
    url = f"file://{tmp_path}"
    slow = SlowStore(url)
    before = begun(slow)
    after: list[RosterCoordinator] = []

    def start_another() -> None:
        after.append(RosterCoordinator(Store(url), before.plan, COORDINATOR, SEATS))
        play(after[0], 1)

    before.take(encode_entry(MembershipEntry.signed(key(2), before.plan.digest, 1, Change.JOIN)))
    slow.meanwhile.append(start_another)
    with pytest.raises(OperationalError, match="another coordinator was started"):
        before.keep()
    play(after[0], 1)  # goes on, and its journal is the one that stays
    again = RosterCoordinator(Store(url), before.plan, COORDINATOR, SEATS)
    assert again.roster == after[0].roster


def test_another_key_and_an_older_log_are_refused(tmp_path: Path) -> None:
    store, plan = Store(f"file://{tmp_path}"), bytes([1]) * 32
    notices = [MembershipEntry.signed(key(0), plan, round_, Change.JOIN) for round_ in range(3)]
    keeper, older = JournaledKeeper(store, plan, COORDINATOR), b""
    for notice in notices[:2]:
        keeper.append(notice, 0)
        keeper.publish([])
        older = older or store.read(HEAD)
    newest = store.read(HEAD)
    with pytest.raises(ProtocolError, match="head of the log"):
        JournaledKeeper(store, plan, key(0))
    store.replace(HEAD, older)  # the journal has what follows
    assert list(JournaledKeeper(store, plan, COORDINATOR).entries()) == notices[:2]
    store.replace(HEAD, newest)
    keeper = JournaledKeeper(store, plan, COORDINATOR)
    keeper.append(notices[2], 0)
    keeper.keep([])
    store.replace(HEAD, older)
    with pytest.raises(ProtocolError, match="don't fit"):
        JournaledKeeper(store, plan, COORDINATOR)


def test_a_log_that_is_published_often_is_no_larger(tmp_path: Path) -> None:
    """Each head had a last page of its own, which stayed: seven times the log on disk."""
    store, plan = Store(f"file://{tmp_path}"), bytes([1]) * 32
    keeper = JournaledKeeper(store, plan, COORDINATOR)
    for round_ in range(PAGE + 44):
        keeper.append(MembershipEntry.signed(key(0), plan, round_, Change.JOIN), round_)
        keeper.publish([])
        if round_ in (20, PAGE + 20):
            keeper = JournaledKeeper(store, plan, COORDINATOR)
    # A page, the last ones of two heads, and one for each restart.
    assert len([path for path in tmp_path.rglob("*") if len(path.name) == 64]) == 5
    assert len(list(JournaledKeeper(store, plan, COORDINATOR).entries())) == PAGE + 44


def test_a_journal_is_never_longer_than_a_page(tmp_path: Path) -> None:
    store, plan = Store(f"file://{tmp_path}"), bytes([1]) * 32
    keeper = JournaledKeeper(store, plan, COORDINATOR)
    notices = [MembershipEntry.signed(key(0), plan, round_, Change.JOIN) for round_ in range(PAGE + 44)]
    for notice in notices:
        keeper.append(notice, notice.round)
        keeper.keep([])
    assert keeper.unpublished == 44
    again = JournaledKeeper(store, plan, COORDINATOR)
    assert list(again.entries()) == notices
    again.publish([])
    assert list(JournaledKeeper(store, plan, COORDINATOR).entries()) == notices
