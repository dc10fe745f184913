"""Time and memory of a party of rounds over a long log.

The log is made up: a roster, and a claim of each of two workers, in each round. The party has no claim of its own.
"""

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from lab.benchmarks.figure import Figure, forget_peak, peak_memory
from pol.commitments.keccak import keccak256
from pol.execution.cpu import CpuExecutor
from pol.graph.tensor_type import DType, TensorType
from pol.roles.party.kept_store import KeptStore
from pol.roles.rounds.kept_rounds import KeptRounds
from pol.rounds.auditing.round_audit import findings_by_roots
from pol.rounds.log.log_entries import ClaimEntry, RosterEntry
from pol.rounds.log.rounds_log import LogKeeper
from pol.rounds.plan.rounds_plan import Constants, InitialValue, Phase, RoundsPlan, SourceRule
from pol.rounds.roster import Member, Roster
from pol.rounds.round_claim import INITIAL, BoundSlot, RoundClaim, encode_sources, sources_root, start_of
from pol.rounds.worker_key import WorkerKey
from pol.training.storage.party_database import PartyDatabase
from pol.training.storage.store import Store

ROUNDS = 1000
KEEPER, *WORKERS = (WorkerKey(bytes([number]) * 32) for number in (1, 2, 3))
NOTHING = bytes([7]) * 32
SOURCES = [BoundSlot(INITIAL, 0, NOTHING)]


def plan_in(store: Store, rounds: int) -> RoundsPlan:
    """A plan of one phase, registered nowhere."""
    rules, given = (SourceRule("", 0, initial=0),), (InitialValue("x", TensorType(DType.F32, (1,)), NOTHING),)
    phase = Phase("step", "07" * 32, NOTHING, "07" * 32, (Constants(NOTHING, "07" * 32),), rules)
    plan = RoundsPlan("long", bytes(32), KEEPER.name, (phase,), given, "07" * 32, rounds, {})
    document = store.put(plan.encode())
    store.put(encode_sources(SOURCES))
    return replace(plan, registration=bytes(96) + bytes.fromhex(document) + bytes(544))


def add_round(store: Store, plan: RoundsPlan, keeper: LogKeeper, round_: int) -> None:
    """The entries of one round."""
    members = tuple(Member(key.name, seat) for seat, key in enumerate(WORKERS))
    roster = Roster(plan.digest, round_, members)
    keeper.append(RosterEntry(store.put(roster.encode()), KEEPER.sign(roster.digest)), round_)
    for key in WORKERS:
        place = (plan.digest, key.name, round_, 0, 0, roster.document)
        claim = RoundClaim(*place, NOTHING, NOTHING, round_, 1, start_of(SOURCES), NOTHING, sources_root(SOURCES))
        shown = keccak256(encode_sources(SOURCES)).hex()
        keeper.append(ClaimEntry(claim, key.sign(claim.digest), shown, "07" * 32), round_)


def long_log_figures(rounds: int = ROUNDS) -> dict[str, Figure]:
    """What the first look at a log takes, the search for lies in it, and the next look and search, at one new round."""
    figures = dict[str, Figure]()

    def timed(what: str, *work: Callable[[], object]) -> None:
        began = time.perf_counter()
        for part in work:
            part()
        figures[f"log_of_{rounds}_rounds_{what}"] = Figure(time.perf_counter() - began, "s")

    with tempfile.TemporaryDirectory() as folder:
        store = Store(f"file://{folder}/store")
        plan = plan_in(store, rounds + 1)
        store.put(plan.registration)
        keeper = LogKeeper(store, plan.digest, KEEPER)
        for round_ in range(rounds):
            add_round(store, plan, keeper, round_)
        keeper.publish()
        forget_peak()
        kept = KeptStore(store.url, PartyDatabase(Path(folder) / "kept"))
        party = KeptRounds(kept, plan.registration, KEEPER.name, CpuExecutor)
        right = set[bytes]()

        def look() -> None:
            party.refresh()
            assert party.troubles == party.unanswerable == []
            assert len(party.rounds.entries) == len(party.logged.entries) == len(keeper)
            assert party.members.keys() == {key.name for key in WORKERS}

        def find() -> None:
            assert list(findings_by_roots(party.suspect(), receipts=party.receipts, known=right)) == []
            assert len(right) == len(party.logged.entries)

        timed("first_look", look)
        timed("first_search", find)
        add_round(store, plan, keeper, rounds)
        keeper.publish()
        timed("new_round", look, find)
        return {**figures, f"log_of_{rounds}_rounds_memory": Figure(peak_memory() / 2**20, "MiB, torch included")}
