"""What becomes of parties whose processes are killed, whose machines err, and that have to be quick."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from web3 import HTTPProvider, Web3
from web3.types import RPCEndpoint, RPCResponse

from anvil_node import anvil_node
from lab.benchmarks.figure import Figure
from lab.benchmarks.market_processes import Arena, Life, Nursery, connect, live
from node_snapshots import order, unchanged
from pol.arithmetic.primitives import Words
from pol.chain.desks.task_registry import Status
from pol.chain.node.connection import Connection
from pol.demo.cheating_parties import BaselessWhistleblower, LyingVerifier
from pol.dispute.position import Side
from pol.errors import OperationalError
from pol.execution.executor import Executor, ExecutorFactory, Seen
from pol.graph.capture import Capture
from pol.graph.step_program import StepProgram
from pol.roles.party.decisions import Action, Mode
from pol.roles.process.party_process import DecisionResult, Process
from pol.roles.solver.solver import Solver
from pol.roles.submitter.submitter import TOLERANT, Offer, Submitter
from pol.roles.submitter.submitter_decisions import next_of_submitter
from pol.roles.verifier.verifier import Verifier
from pol.roles.verifier.verifier_decisions import next_of_verifier
from pol.roles.whistleblower.whistleblower import Whistleblower
from pol.roles.whistleblower.whistleblower_decisions import next_of_whistleblower

STEPS, INTERVAL = 6, 3
OFFER = Offer(STEPS, INTERVAL, draws=1, margin=TOLERANT, rerun_count=2, profiled=2, looks=2)
KILLS, GAMES = 24, 60
"""Of the shortened form; the slow tests have all (tests/roles/test_figures_of_roles.py)."""
MOST_REQUESTS = 120
"""That a process lives for, at most."""


def role_figures() -> dict[str, Figure]:
    """All figures of the area, in a shortened form."""
    with arena() as place:
        killed = kills(place, KILLS, Random(1))
    with arena() as place:
        false = false_challenges(place, GAMES, Random(2))
    end = end_to_end()
    return {
        "lost_disputes": Figure(
            killed.lost, f"of {killed.disputes}, {killed.trainings} trainings; {killed.kills} kills"
        ),
        "duplicated_stakes": Figure(killed.duplicated, f"of {killed.disputes} disputes"),
        "false_challenges": Figure(false, f"of {GAMES} honest verdicts replayed with a flipped bit"),
        "end_to_end_seconds": Figure(end.seconds, "s, from a lying verdict to the slash, blocks of 1 s"),
        "end_to_end_computing_share": Figure(end.computing / end.seconds, "of it"),
        "end_to_end_rpc_share": Figure(end.requests / end.seconds, "of it"),
        "end_to_end_waiting_share": Figure(end.waiting / end.seconds, "of it"),
        "end_to_end_transactions": Figure(end.transactions, "of both sides"),
    }


@contextmanager
def arena() -> Iterator[Arena]:
    """An arena on a node of its own.

    Raises:
        OperationalError: anvil isn't installed, or doesn't start.
    """
    with tempfile.TemporaryDirectory() as folder, anvil_node(hardfork="osaka") as url:
        yield Arena(connect(url), Path(folder))


def small() -> Capture:
    """The training step of a small classifier of digits."""
    from pol.demo import digits
    from pol.graph.capture import capture

    model = digits.DigitClassifier(4)
    return capture(model, digits.loss_function, digits.build_optimizer(model), digits.dataset(), digits.order(1, STEPS))


# --- killed processes -------------------------------------------------------------------------------------------------


@dataclass
class Killed:
    """What became of disputes of which one side was killed again and again, and of trainings whose solver was."""

    disputes: int = 0
    trainings: int = 0
    kills: int = 0
    lost: int = 0
    duplicated: int = 0
    """Stakes put up twice for the same."""


def kills(place: Arena, least: int, random: Random, on_dispute: Callable[[Killed], None] = lambda _: None) -> Killed:
    """Disputes and trainings until the honest side has been killed ``least`` times: of each kind one at least."""
    with Nursery() as nursery:
        return _kills(place, least, nursery, random, on_dispute)


def _kills(place: Arena, least: int, nursery: Nursery, random: Random, on_dispute: Callable[[Killed], None]) -> Killed:
    found = Killed()
    verifier, liar = place.join(Verifier, "verifier"), place.join(LyingVerifier, "liar", 7)
    place.join(Whistleblower, "whistleblower")
    place.join(BaselessWhistleblower, "baseless", 7)
    for share, holder, play in ((least * 2 // 5, liar, _attacked), (least * 4 // 5, verifier, _defended)):
        with unchanged(place.connection):
            task_id = place.challengeable(small(), OFFER, holder)
            while True:
                with unchanged(place.connection):
                    play(place, task_id, found, nursery, random)
                found.disputes += 1
                on_dispute(found)
                if found.kills >= share:
                    break
    while True:
        with unchanged(place.connection):
            _trained(place, found, nursery, random)
        found.trainings += 1
        on_dispute(found)
        if found.kills >= least:
            return found


def again(liar: LyingVerifier, task_id: bytes) -> LyingVerifier:
    """A liar that is begun anew from its seed, with the lie that it has told."""
    liar.replay(task_id)
    return liar


def _attacked(place: Arena, task_id: bytes, found: Killed, nursery: Nursery, random: Random) -> None:
    """A lying verdict and a whistleblower that dies."""
    liar = again(place.join(LyingVerifier, "liar", 7), task_id)
    market = liar.market
    whistleblower = place.join(Whistleblower, "whistleblower").wallet.address
    before, stake = market.vault.free(whistleblower), market.registry.terms(task_id).verifier_stake
    seating = market.registry.task(task_id).seating
    while market.registry.task(task_id).status is Status.CONTESTED:
        found.kills += _life(place, nursery, "whistleblower", "whistleblower", random)
        Process(liar, next_of_verifier).turn()
    found.lost += market.vault.free(whistleblower) - before != stake // 2
    found.duplicated += len(market.challenges.events("Challenged", taskId=task_id, seating=seating)) - 1


def _defended(place: Arena, task_id: bytes, found: Killed, nursery: Nursery, random: Random) -> None:
    """An honest verdict, a challenger without any ground, and a verifier that dies."""
    baseless = place.join(BaselessWhistleblower, "baseless", random.randrange(1 << 30))
    (finding,) = baseless.check(task_id)
    number = baseless.challenge(task_id, finding)
    game, attack = baseless.market.game, baseless.session(task_id, number)
    while game.winner(number) is Side.NONE:
        found.kills += _life(place, nursery, "verifier", "verifier", random)
        if attack.is_on_turn():
            attack.advance()
    found.lost += game.winner(number) is not Side.ASSERTER


def _trained(place: Arena, found: Killed, nursery: Nursery, random: Random) -> None:
    """A solver that dies, from its bid to its commitment."""
    submitter, solver = place.join(Submitter, "submitter"), place.join(Solver, "solver").wallet.address
    task_id, registry = submitter.submit(small(), OFFER), submitter.market.registry
    parties: list[Process[Any]] = [Process(submitter, next_of_submitter)]
    profiler: list[Process[Any]] = [Process(place.join(Verifier, "verifier"), next_of_verifier)]
    live(place.connection, parties + profiler, lambda: registry.task(task_id).status is Status.BIDDING)
    while registry.task(task_id).status in {Status.BIDDING, Status.TRAINING}:
        killed = _life(place, nursery, "solver", "solver", random)
        found.kills += killed
        taken = parties[0].turn()
        if not killed and all(made.result is not DecisionResult.DONE for made in taken):
            place.connection.wait_until(min(made.until for made in taken if made.until is not None))
    found.lost += registry.task(task_id).solver != solver


def _life(place: Arena, nursery: Nursery, kind: str, name: str, random: Random) -> bool:
    where = (place.connection.name, place.deployment.to_json(), place.store_url)
    return nursery.lived(Life(kind, name, *where, random.randrange(1, MOST_REQUESTS), random.random() < 0.5))


# --- machines that err ------------------------------------------------------------------------------------------------


class Erring(Whistleblower):
    """Its machine flips one bit of one scalar, in one step of one of its executions."""

    random: Random
    _when: tuple[int, int] | None = None
    _made = 0

    def replayer(self, task_id: bytes, opinion: int) -> ExecutorFactory:
        """What executes: once it isn't sound."""
        sound = super().replayer(task_id, opinion)
        if self._when is None:
            # The first or the second replay, in any step; those after them aren't reached without a finding.
            self._when = (self.random.randrange(2), self.random.randrange(self.task(task_id).document.interval))

        def build(program: StepProgram, constants: Sequence[Words]) -> Executor:
            executor, number, when = sound(program, constants), self._made, self._when
            self._made += 1
            return Flipping(executor, when[1], self.random) if when and number == when[0] else executor

        return build


class Flipping:
    """An executor that flips one bit in the state after one of its steps, counted from 0."""

    def __init__(self, executor: Executor, step: int, random: Random) -> None:
        self._executor, self._left, self._random = executor, step, random

    def run(self, state: Sequence[Words], step: int) -> list[Words]:
        """The outputs of all nodes, as they are."""
        return self._executor.run(state, step)

    def advance(self, state: Sequence[Words], step: int) -> tuple[list[Words], list[Words]]:
        """The next state, with a bit flipped in the step that it was made for."""
        after, observed = self._executor.advance(state, step)
        self._left -= 1
        if self._left != -1:
            return after, observed
        flipped = [words.copy() for words in after]
        slot = self._random.choice([words for words in flipped if words.size])
        slot.reshape(-1)[self._random.randrange(slot.size)] ^= slot.dtype.type(1 << self._random.randrange(32))
        return flipped, observed

    def watch(self, state: Sequence[Words], step: int, seen: Seen) -> list[Words]:
        """The next state and all outputs, as they are."""
        return self._executor.watch(state, step, seen)

    def observing(self, nodes: Sequence[int]) -> Flipping:
        """The same with these nodes observed; steps are counted on."""
        return Flipping(self._executor.observing(nodes), self._left, self._random)


def false_challenges(place: Arena, games: int, random: Random) -> int:
    """How many of so many whistleblowers, each with a machine that errs once, challenge an honest verdict."""
    verifier = place.join(Verifier, "verifier")
    task_id = place.challengeable(small(), OFFER, verifier)
    place.join(Whistleblower, "whistleblower")
    false = 0
    for _ in range(games):
        erring = place.join(Erring, "whistleblower")
        erring.random = random
        for _ in range(2):
            try:
                decision = next_of_whistleblower(erring, task_id)
                false += isinstance(decision, Action) and decision.mode is Mode.PROPOSE
            except OperationalError:
                continue
    return false


# --- from a lie to the slash ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EndToEnd:
    """Seconds from a verdict that can be challenged to the slash, and what they went into."""

    seconds: float
    requests: float
    """To the node, but for those that ask whether a transaction is in a block."""
    waiting: float
    """For blocks."""
    transactions: int

    @property
    def computing(self) -> float:
        """Replays, hashes and signatures of both sides."""
        return self.seconds - self.requests - self.waiting


class TimedProvider(HTTPProvider):
    """Counts the seconds in which it waits for answers, and for blocks."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.requests = self.waiting = 0.0
        self._sent: float | None = None

    def make_request(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        """The answer."""
        began = time.perf_counter()
        answer = super().make_request(method, params)
        now = time.perf_counter()
        if self._sent is None:
            self.requests += now - began
        if method == "eth_sendRawTransaction":
            self._sent = now
        elif method == "eth_getTransactionReceipt" and answer.get("result") and self._sent is not None:
            self.waiting += now - self._sent
            self._sent = None
        return answer


def transformer() -> Capture:
    """The training step of a small GPT."""
    from lab.benchmarks.training_steps import gpt

    return gpt(layers=2, width=32, heads=2, tokens=32, batch=2, joint_bias=False).captured()


def end_to_end() -> EndToEnd:
    """A lying verdict on a task of a small transformer, with blocks of one second: both sides are processes."""
    with tempfile.TemporaryDirectory() as folder, anvil_node(hardfork="osaka") as url:
        provider = TimedProvider(url)
        place = Arena(Connection(Web3(provider), url), Path(folder))
        liar = place.join(LyingVerifier, "liar", 7)
        task_id = place.challengeable(
            transformer(), Offer(2, 1, draws=1, margin=TOLERANT, rerun_count=1, profiled=1, looks=0), liar
        )
        whistleblower = place.join(Whistleblower, "whistleblower")
        order(place.connection, "evm_setAutomine", False)
        order(place.connection, "evm_setIntervalMining", 1)
        sent = len(whistleblower.wallet.receipts) + len(liar.wallet.receipts)
        began, requests, waiting = time.perf_counter(), provider.requests, provider.waiting
        parties: list[Process[Any]] = [Process(whistleblower, next_of_whistleblower), Process(liar, next_of_verifier)]
        registry = whistleblower.market.registry
        live(place.connection, parties, lambda: registry.task(task_id).status is not Status.CONTESTED)
        seconds = time.perf_counter() - began
        transactions = len(whistleblower.wallet.receipts) + len(liar.wallet.receipts) - sent
        return EndToEnd(seconds, provider.requests - requests, provider.waiting - waiting, transactions)
