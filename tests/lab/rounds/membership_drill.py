"""Many rounds in one process with workers that join, leave, die, come back and are late, all by a seeded schedule.

Coordinator, workers and mailbox are those of elastic trainings; only the order in which things happen is made up.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace

from lab.rounds.tiny_training import COORDINATOR, SEATS, key, tiny_plan
from pol.decentralised.elastic.coordination import Reception
from pol.decentralised.elastic.elastic_worker import ElasticWorker
from pol.decentralised.elastic.mailbox import KeyValueStore, Mailbox
from pol.decentralised.elastic.roster_coordinator import RosterCoordinator
from pol.execution.cpu import CpuExecutor
from pol.rounds.auditing.claim_replay import findings_by_replay
from pol.rounds.auditing.round_audit import Finding, findings_by_roots
from pol.rounds.claim_author import ClaimAuthor, MadeClaim
from pol.rounds.log.log_entries import Change, encode_entry
from pol.rounds.log.logged_rounds import LoggedRounds, read_rounds
from pol.rounds.log.rounds_log import load_head, require_whole
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.roster import Roster
from pol.training.storage.store import Store

WORKERS = 6
"""Of whom at most `SEATS` take part at a time."""
SHARED = ["theta"]
SHARES = {"dies": 0.05, "dies and is back": 0.05, "is late": 0.05, "leaves": 0.03, "is silent": 0.03, "comes": 0.2}
"""How often something happens to a worker in a round."""


@dataclass
class MembershipDrill:
    """A training of the tiny plan; ``happened`` counts what has happened."""

    store: Store
    plan: RoundsPlan
    meeting: KeyValueStore
    random: random.Random
    happened: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.mailbox = Mailbox(self.meeting, 1.0)
        self.coordinator = RosterCoordinator(self.store, self.plan, COORDINATOR, SEATS)
        self.reception = Reception(self.coordinator, self.mailbox, "work", SHARED)
        self.workers: dict[str, ElasticWorker] = {}
        for number in range(WORKERS):
            self._start(number)

    @classmethod
    def of(cls, store: Store, meeting: KeyValueStore, rounds: int, seed: int) -> MembershipDrill:
        """A drill of so many rounds."""
        plan = replace(tiny_plan(store, range(1, SEATS + 1)), rounds=rounds)
        store.put(plan.encode())
        return cls(store, plan, meeting, random.Random(seed))

    def play(self) -> None:
        """All rounds."""
        for worker in self.workers.values():
            worker.tell(0, Change.JOIN)
        for round_ in range(self.plan.rounds):
            self.reception.read()
            begun = self._announce(round_, final=False)
            made, late = self._work(begun)
            self.reception.read()
            final = self._announce(round_, final=True)
            for name in late:  # its message comes when the round is over, and isn't acknowledged
                self.workers[name].show(made[name], SHARED)
            self.reception.read()
            for member in final.members:
                self._merge(begun, member.worker, made)
            for name in self.workers:
                self._answer(name, begun, final)
        self.reception.read()
        self.coordinator.publish()

    def rounds(self) -> LoggedRounds:
        """The whole log, as a stranger reads it."""
        plan, head = load_head(self.store)
        require_whole(self.store, head)
        return read_rounds(self.store, plan, head)

    def findings(self) -> list[Finding]:
        """All that anybody could be accused of: by roots, by receipts that workers hold, by a replay of each claim."""
        rounds = self.rounds()
        receipts = [receipt for worker in self.workers.values() for receipt in worker.journal.receipts]
        found = list(findings_by_roots(rounds, receipts=receipts))
        return found + list(findings_by_replay(rounds, rounds.claims.values(), CpuExecutor))

    def _work(self, begun: Roster) -> tuple[dict[str, MadeClaim], list[str]]:
        """What members have made; and who shows it too late. One of them is always in time."""
        made: dict[str, MadeClaim] = {}
        late: list[str] = []
        for at, member in enumerate(begun.members):
            name, is_needed = member.worker, at == len(begun.members) - 1 and len(made) == len(late)
            self.happened["joins"] += 0 < member.joined == begun.round
            if not is_needed and self._happens("dies"):
                self._restart(name)
                continue
            made[name] = self._resume(name, begun)
            if not is_needed and self._happens("is late"):
                late.append(name)
                continue
            if self._happens("dies and is back"):
                self._restart(name)
                again = self._resume(name, begun)
                assert again.entry == made[name].entry
            self.workers[name].show(made[name], SHARED)
        return made, late

    def _merge(self, begun: Roster, name: str, made: dict[str, MadeClaim]) -> None:
        if self._happens("dies and is back"):
            self._restart(name)
            made[name] = self._resume(name, begun)
        self.workers[name].gather(made[name], SHARED)
        self.workers[name].make("merge")

    def _answer(self, name: str, begun: Roster, final: Roster) -> None:
        """A member stays, leaves or says nothing; others may come. The first one stays: somebody has the state."""
        worker, following = self.workers[name], final.round + 1
        members = [member.worker for member in final.members]
        if name not in members:
            if any(member.worker == name for member in begun.members) or self._happens("comes"):
                worker.tell(following, Change.JOIN)
        elif name == members[0] or not self._happens("is silent"):
            leaves = name != members[0] and self._happens("leaves")
            worker.tell(following, Change.LEAVE if leaves else Change.HEARTBEAT)

    def _announce(self, round_: int, final: bool) -> Roster:
        entry = self.coordinator.end_round() if final else self.coordinator.begin_round()
        self.mailbox.announce(round_, encode_entry(entry), final)
        if not final:
            self.reception.begin()
        roster = self.coordinator.roster
        assert roster is not None
        return roster

    def _happens(self, event: str) -> bool:
        drawn = self.random.random() < SHARES[event]
        self.happened[event] += drawn
        return drawn

    def _resume(self, name: str, begun: Roster) -> MadeClaim:
        self.workers[name].begin(begun)
        return self.workers[name].make("work")

    def _restart(self, name: str) -> None:
        self._start(next(number for number in range(WORKERS) if key(number).name == name))

    def _start(self, number: int) -> None:
        """A worker as a new process has it: with nothing but its key, its journal and what is published."""
        author = ClaimAuthor(self.store, self.plan, key(number), CpuExecutor)
        self.workers[author.name] = ElasticWorker(author, Mailbox(self.meeting, 1.0))
