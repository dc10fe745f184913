"""A whistleblower that follows many tasks and defends many disputes at once, against opponents that lie and dawdle.

Blocks come by the clock of this machine, and each moves the chain's time by the seconds of `PACE`: so the party's own
work costs as many of the chain's seconds as that many machines of this kind had to share.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random

from eth_typing import BlockNumber

from lab.benchmarks.market_processes import AT_ANY_PRICE, Arena, connect, fund, ordered, party
from pol.arithmetic.primitives import Words
from pol.chain.desks.market import Court, Matter
from pol.chain.node.connection import Connection
from pol.commitments.keccak import keccak256
from pol.demo.cheating_parties import CheatingParty
from pol.demo.lying_players import Lie, LyingExecutor, LyingTrace, draw_lie
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.position import Side
from pol.execution.cpu import CpuExecutor
from pol.graph.capture import Capture
from pol.roles.party.decisions import Action, Decision, Wait
from pol.roles.process.party_process import LoggedDecision, Process
from pol.roles.process.process_loop import ProcessLoop
from pol.roles.solver.solver import OnCheckpoint, Solver
from pol.roles.solver.solver_decisions import next_of_solver
from pol.roles.submitter.submitter import GWEI, Offer, Submitter
from pol.roles.whistleblower.objector import FalseSegment
from pol.roles.whistleblower.whistleblower import Whistleblower
from pol.roles.whistleblower.whistleblower_decisions import next_of_whistleblower
from pol.training.task.learning_proof import LearningProof
from pol.training.task.task_recorder import TaskRecorder
from pol.training.task.task_training import environment
from pol.verification.replay.canonical_replay import replay_end

STEPS, INTERVAL, FALSE = 6, 3, 1
HOUR = 3600
OFFER = Offer(STEPS, INTERVAL, draws=1, clock=HOUR, wei_per_work_unit=20 * GWEI)
ETHER = 10**18


@dataclass(frozen=True)
class Pace:
    """How the chain's time goes by."""

    wall: float
    """Seconds of this machine between two blocks."""
    seconds: int = 12
    """Seconds of the chain between them."""


class LyingSolver(CheatingParty, Solver):
    """Trains canonically, but for one flipped bit in the segment `FALSE` of each task, and defends it."""

    @cached_property
    def _lies(self) -> dict[bytes, Lie]:
        return {}

    def train(
        self, task_id: bytes, on_checkpoint: OnCheckpoint | None = None, progress_every: int = 4
    ) -> LearningProof:
        """Record the canonical segments, with the lie in one of them."""
        task = self.task(task_id)
        recorder, state = TaskRecorder(self.store, task), task.initial_state
        recorder(0, state)
        for segment in range(task.document.segments):
            executor: CpuExecutor | LyingExecutor = CpuExecutor(task.program, task.constants)
            if segment == FALSE:
                start, steps = [w.copy() for w in state], task.document.interval
                trace = SegmentTrace(task.program, task.constants, executor, start, segment * steps, steps)
                self._lies[task_id] = draw_lie(trace, range(len(task.program.nodes)), self._random)
                executor = LyingExecutor(task.program, task.constants, executor, self._lies[task_id])
            state = self._end(executor, state, segment, task_id)
            recorder(segment + 1, state)
        return self.commit(task_id, recorder.publish(environment(exact=True))[0])

    def execute(self, task_id: bytes, segment: int) -> SegmentTrace:
        """The execution that the lie belongs to."""
        honest = super().execute(task_id, segment)
        return LyingTrace(honest, self._lies[task_id]) if segment == FALSE and task_id in self._lies else honest

    def _end(self, executor: CpuExecutor | LyingExecutor, start: list[Words], segment: int, task_id: bytes) -> list[Words]:
        steps = self.task(task_id).document.interval
        program = self.task(task_id).program
        return [w.copy() for w in replay_end(program, executor, start, segment * steps, steps)]


def dawdling(margin: int) -> Callable[[Solver, bytes], Decision]:
    """The decisions of a solver that moves in the last ``margin`` seconds of its clock only."""

    def decide(role: Solver, task_id: bytes) -> Decision:
        decision = next_of_solver(role, task_id)
        if not isinstance(decision, Action) or decision.verb != "move" or decision.due is None:
            return decision
        if role.connection.now() >= decision.due - margin:
            return decision
        return Wait(task_id, "there is time left", decision.due - margin)

    return decide


@contextmanager
def passing(connection: Connection, pace: Pace) -> Iterator[None]:
    """Blocks come by themselves."""
    ended = threading.Event()

    def mine() -> None:
        own = connect(connection.name)
        while not ended.wait(pace.wall):
            ordered(own, "evm_mine")

    ordered(connection, "evm_setAutomine", False)
    ordered(connection, "anvil_setBlockTimestampInterval", pace.seconds)
    miner = threading.Thread(target=mine)
    miner.start()
    try:
        yield
    finally:
        ended.set()
        miner.join()
        ordered(connection, "anvil_removeBlockTimestampInterval")
        ordered(connection, "evm_setAutomine", True)


@dataclass(frozen=True)
class Crowd:
    """Many tasks, some of them in dispute."""

    place: Arena
    tasks: tuple[bytes, ...]
    disputed: tuple[bytes, ...]
    numbers: tuple[int, ...]
    opponents: tuple[Process[Solver], ...]

    @property
    def court(self) -> Court:
        """Where the objections are decided."""
        return self.place.deployment.market(self.place.connection).courts[Matter.OBJECTION]

    def over(self) -> bool:
        """Whether every dispute has a winner."""
        return all(self.court.game.winner(number) is not Side.NONE for number in self.numbers)

    def lost(self) -> int:
        """Disputes that the whistleblower hasn't won."""
        return sum(self.court.game.winner(number) is not Side.CHALLENGER for number in self.numbers)


def crowd(place: Arena, captured: Capture, tasks: int, disputes: int, margin: int) -> Crowd:
    """So many tasks, of which a third is at every stage before the first dispute, and disputes about false segments.

    Half of the opponents move at once, the others in the last ``margin`` seconds of their clocks.
    """
    submitter = place.join(Submitter, "submitter")
    # Every task locks its price, and every solver its stake.
    own = submitter.market.vault.free(submitter.wallet.address) - 10 * submitter.quote(captured, OFFER).escrow
    quote = submitter.quote(captured, OFFER)
    bring(place, submitter, tasks * quote.escrow)
    ids = tuple(submitter.submit(captured, OFFER) for _ in range(tasks))
    del own
    liars = [joined(place, name, number) for number, name in enumerate(("liar", "dawdler"))]
    honest = place.join(Solver, "solver")
    disputed, quiet = ids[:disputes], ids[disputes : disputes + tasks // 3]
    solvers: dict[bytes, Solver] = {task_id: liars[i % 2] for i, task_id in enumerate(disputed)}
    solvers |= {task_id: honest for task_id in quiet}
    for role in (*liars, honest):
        bring(place, role, tasks * quote.solver_stake)
    treasury = place.join(Submitter, "treasury")
    bring(place, treasury, 2 * tasks * quote.jackpot)
    treasury.market.jackpot.donate(treasury.wallet, tasks * quote.jackpot)
    for act in ("bid", "reveal"):
        for task_id, solver in solvers.items():
            getattr(solver, act)(task_id)
    for task_id, solver in solvers.items():
        solver.market.registry.award(solver.wallet, task_id)
    for number, (task_id, solver) in enumerate(solvers.items()):
        if number < disputes + len(quiet) * 2 // 3:
            solver.train(task_id)
    whistleblower = place.join(Whistleblower, "whistleblower")
    bring(place, whistleblower, tasks * whistleblower.market.objections.bond_of(disputed[0]))
    numbers = []
    for task_id in disputed:
        claim = whistleblower.own_claim(task_id, FALSE)
        assert claim is not None
        numbers.append(whistleblower.object(task_id, FalseSegment(FALSE, claim)))
    decides = (next_of_solver, dawdling(margin))
    opponents = tuple(Process(role, decide) for role, decide in zip(liars, decides, strict=True))
    return Crowd(place, ids, disputed, tuple(numbers), opponents)


def joined(place: Arena, name: str, seed: int) -> LyingSolver:
    """A lying solver with a connection of its own."""
    place.join(LyingSolver, name, seed)
    own = connect(place.connection.name)
    return party(LyingSolver, own, place.deployment, place.store_url, name, seed)


def bring(place: Arena, role: Submitter | Solver | Whistleblower, amount: int) -> None:
    """More money into the vault."""
    address = role.wallet.address
    held = role.wallet.balance()
    ordered(place.connection, "anvil_setBalance", address, hex(held + amount))
    role.deposit(amount)


def defend(scene: Crowd, pace: Pace, seconds: float) -> float:
    """The whistleblower, begun anew, and its opponents play until all disputes are over; the seconds that it took.

    Raises:
        OperationalError: they aren't after so many seconds.
    """
    place, ended = scene.place, threading.Event()
    own = connect(place.connection.name)
    whistleblower = party(Whistleblower, own, place.deployment, place.store_url, "whistleblower")
    process = Process(whistleblower, next_of_whistleblower, poll=pace.wall)
    poll = pace.wall
    told: list[str] = []
    loops = [ProcessLoop(each, poll, told.append, ended.wait) for each in (process, *scene.opponents)]
    threads = [threading.Thread(target=loop.run) for loop in loops]
    began = time.perf_counter()
    with passing(place.connection, pace):
        for thread in threads:
            thread.start()
        try:
            while not scene.over() and time.perf_counter() - began < seconds:
                time.sleep(pace.wall)
        finally:
            ended.set()
            for thread in threads:
                thread.join()
    print("told", told[:3])
    return time.perf_counter() - began


def slack(scene: Crowd, role: str = "whistleblower") -> float:
    """The least share of its clock that the party had left at any of its moves."""
    game = scene.court.game
    own = party(Whistleblower, scene.place.connection, scene.place.deployment, scene.place.store_url, role).wallet
    shares = []
    for number in scene.numbers:
        clock = game.params(number).clock
        for event in game.events("Moved", number=number):
            sent = own.connection.web3.eth.get_transaction(event["transaction"])
            if sent["from"] != own.address:
                continue
            block = int(event["block"])
            deadline = game.function("deadline", number).call(block_identifier=BlockNumber(block - 1))
            shares.append((deadline - own.connection.time_of(block)) / clock)
    return min(shares)
