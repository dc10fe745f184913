"""The workers of the decentralised demo as processes: one joins late, one is killed and goes on from the store."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.context import SpawnProcess
from pathlib import Path

import torch

from pol.decentralised.diloco import diloco_round
from pol.decentralised.local_processes import local_key
from pol.decentralised.round_worker import RoundWorker
from pol.demo.cheating_workers import Sandbagger
from pol.demo.worker_mailbox import PATIENCE, Mailbox, MailboxExchange
from pol.errors import OperationalError, PolError
from pol.execution.cpu import CpuExecutor
from pol.rounds.claim_author import ClaimAuthor, MadeClaim
from pol.rounds.claim_replay import load_end
from pol.rounds.drawn_audit import open_rounds
from pol.rounds.log_entries import Change, MembershipEntry, decode_entry, encode_entry
from pol.rounds.roster import Member, Roster
from pol.rounds.rounds_log import HEAD
from pol.rounds.rounds_plan import DOCUMENT_LIMIT, RoundsPlan
from pol.training.storage.store import Store

COORDINATOR = -1
"""Its number among the keys of local workers (`local_key`); the first worker's process has its key, too."""


@dataclass(frozen=True)
class Cast:
    """Workers by number, and the rounds in which something happens to them."""

    founders: tuple[int, ...] = (0, 1, 2)
    liar: int = 1
    victim: int = 2
    joiner: int = 3
    join_round: int = 1
    kill_round: int = 2
    lying_round: int = 3


@dataclass
class WorkerProcesses:
    """Runs the workers of a plan in ``folder/store``; ``tell(event, number)`` hears of joins, deaths and returns."""

    folder: Path
    plan: RoundsPlan
    cast: Cast
    tell: Callable[[str, int], None]
    mailbox: Mailbox = field(default_factory=Mailbox)
    _running: dict[int, SpawnProcess] = field(default_factory=dict)

    def run(self, advance: Callable[[int, int], None]) -> None:
        """Train all rounds; ``advance(done, total)`` is called after each.

        Raises:
            OperationalError: a worker died of itself, or was silent for too long.
        """
        try:
            for number in self.cast.founders:
                self._start(number)
            for round_ in range(self.plan.rounds):
                if round_ == self.cast.join_round:
                    self.tell("starts", self._start(self.cast.joiner))
                if round_ == self.cast.kill_round:
                    self._kill_and_resume(round_)
                self._wait(f"round {round_} is done")
                advance(round_ + 1, self.plan.rounds)
            for process in self._running.values():
                process.join(PATIENCE.seconds)
            self._require_alive()
        finally:
            for process in self._running.values():
                process.kill()

    def _start(self, number: int) -> int:
        arguments = (number, self.mailbox.port, str(self.folder), self.plan.digest.hex(), self.cast)
        process = multiprocessing.get_context("spawn").Process(target=work, args=arguments, daemon=True)
        process.start()
        self._running[number] = process
        return number

    def _kill_and_resume(self, round_: int) -> None:
        victim = self.cast.victim
        self._wait(f"worker {victim} is at round {round_}")
        process = self._running[victim]
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        self.tell("is killed", victim)
        self._start(victim)
        self._wait(f"worker {victim} is back")
        self.tell("is back", victim)

    def _wait(self, name: str) -> None:
        until = time.monotonic() + PATIENCE.seconds
        while not self.mailbox.has(name):
            self._require_alive()
            if time.monotonic() > until:
                raise OperationalError(f"nothing has been heard of the workers for {PATIENCE.seconds} s: try again")
            time.sleep(0.02)

    def _require_alive(self) -> None:
        for number, process in self._running.items():
            if process.exitcode:
                raise OperationalError(f"worker {number} ended with {process.exitcode}: its last words are above")


def work(number: int, port: int, folder: str, digest: str, cast: Cast) -> None:
    """The process of a worker: rounds from where its log ends, or the first one whose roster has it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends its workers
    torch.set_num_threads(1)
    mailbox, store = Mailbox(port), Store(f"file://{folder}/store")
    plan = RoundsPlan.decode(store.get(digest, limit=DOCUMENT_LIMIT))
    kind = partial(Sandbagger, lying_round=cast.lying_round) if number == cast.liar else ClaimAuthor
    author = kind(store, plan, local_key(number), partial(CpuExecutor, threads=1))
    worker = RoundWorker(author, MailboxExchange(), local_key(COORDINATOR) if number == 0 else None)
    try:
        round_ = _recalled(author)
        if number == cast.joiner:
            round_ = cast.join_round
            entry = MembershipEntry.signed(author.key, plan.digest, round_, Change.JOIN)
            mailbox.put("a worker joins", encode_entry(entry))
        elif round_:
            mailbox.put(f"worker {number} is back")
        for now in range(round_, plan.rounds):
            _round(worker, mailbox, cast, number, now)
    except PolError as error:
        print(f"worker {number}: {error}", file=sys.stderr)
        sys.exit(1)


def _round(worker: RoundWorker, mailbox: Mailbox, cast: Cast, number: int, round_: int) -> None:
    author, name = worker.author, f"roster of round {round_}"
    if number == 0:
        mailbox.put(name, _chosen(worker, mailbox, cast, round_).encode())
    roster = Roster.decode(mailbox.get(name))
    if number == cast.joiner and round_ == cast.join_round:
        _recalled(author, round_)
    place, members = roster.place(author.name), len(roster.members)
    worker.exchange = MailboxExchange(mailbox=mailbox, round=round_, place=place, members=members)
    worker.begin(roster)
    mailbox.put(f"worker {number} is at round {round_}")
    diloco_round(worker)
    worker.finish()
    if number == 0:
        mailbox.put(f"round {round_} is done")


def _chosen(worker: RoundWorker, mailbox: Mailbox, cast: Cast, round_: int) -> Roster:
    """The coordinator's roster: the founders, and from its round on the worker that has asked to join."""
    members = [Member(local_key(number).name, number) for number in cast.founders]
    if round_ >= cast.join_round:
        entry = decode_entry(mailbox.get("a worker joins"))
        assert isinstance(entry, MembershipEntry)
        members.append(Member(entry.worker, cast.joiner, entry.round))
        if round_ == cast.join_round:
            worker.enter(entry)
    return Roster(worker.author.plan.digest, round_, tuple(members))


def _recalled(author: ClaimAuthor, round_: int | None = None) -> int:
    """Take in what a round goes on from, out of the store alone: one's own claims, and the first member's.

    The round is by default the one after the log's last; 0 if there is no log.
    """
    if not author.store.holds(HEAD):
        return 0
    rounds = open_rounds(author.store)
    last = max(rounds.rosters) if round_ is None else round_ - 1
    (roster,) = rounds.rosters[last]
    author.rosters[last] = roster
    for entry in rounds.claims.values():
        if entry.claim.round == last and entry.worker in (author.name, roster.members[0].worker):
            author.learn(MadeClaim(entry, tuple(rounds.end(entry)), load_end(rounds, entry)))
    return last + 1
