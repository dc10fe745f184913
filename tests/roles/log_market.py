"""Tasks of eight segments whose logs are true or false, and parties that dispute them: on the node of `conftest.py`."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, cached_property
from random import Random

import torch
from all_parties import Solver, Verifier, Whistleblower
from role_market import OFFER, Town, awarded, profiled, seated_with_duty

from node_snapshots import until_true
from pol.arithmetic.primitives import Words
from pol.demo import digits
from pol.demo.lying_players import Lie, LyingTrace, draw_lie
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.execution.cpu import CpuExecutor
from pol.graph.capture import Capture, capture
from pol.graph.tensor_type import DType
from pol.roles.party.decisions import Decision
from pol.roles.party.role import Role
from pol.roles.process.party_process import DecisionResult, Process
from pol.roles.submitter.submitter import GWEI, Offer, Submitter
from pol.roles.whistleblower.objector import FalseSegment
from pol.training.task.task_document import LoadedTask
from pol.training.task.task_recorder import TaskRecorder
from pol.verification.replay.canonical_replay import replay_end

SEGMENTS, INTERVAL = 8, 3
JUMP = 5
"""The segment in which the cheat goes elsewhere."""
TOLERANT = replace(OFFER, steps=SEGMENTS * INTERVAL, wei_per_work_unit=20 * GWEI)
EXACT = replace(TOLERANT, margin=0, looks=0, rerun_count=0, profiled=0)


@cache
def long_capture() -> Capture:
    torch.manual_seed(23)
    model = digits.DigitClassifier(4)
    order = digits.order(1, SEGMENTS * INTERVAL)
    return capture(model, digits.loss_function, digits.build_optimizer(model), digits.dataset(), order)


def started(town: Town, offer: Offer) -> tuple[bytes, Solver]:
    """A task that ``t`` trains."""
    task_id = town.join(Submitter, "s").submit(long_capture(), offer)
    if offer.margin:
        profiled(town.join(Verifier, "v"), task_id)
    solver = town.join(Solver, "t")
    awarded(solver, task_id)
    return task_id, solver


def committed(solver: Solver, task_id: bytes, digest: str, spared: int) -> bytes:
    """The solver commits a proof, and the draw passes over the segment ``spared``."""

    def passed_over() -> bool:
        solver.commit(task_id, digest)
        solver.bring(solver.market.proofs.proof(task_id).round)
        return spared not in solver.market.proofs.drawn_segments(task_id)

    until_true(solver.connection, passed_over)
    return task_id


def forged(
    town: Town, offer: Offer, spared: int, forge: Callable[[int, LoadedTask, list[Words]], list[Words] | None]
) -> bytes:
    """A log of canonical segments, but for those whose end ``forge`` says."""
    task_id, solver = started(town, offer)
    task = solver.task(task_id)
    recorder, state = TaskRecorder(solver.store, task), task.initial_state
    recorder(0, state)
    for segment in range(SEGMENTS):
        end = forge(segment, task, state)
        if end is None:
            executor = CpuExecutor(task.program, task.constants)
            end = [*replay_end(task.program, executor, state, segment * INTERVAL, INTERVAL)]
        state = [words.copy() for words in end]
        recorder(segment + 1, state)
    exact = {"arithmetic": "canonical"} if offer.margin == 0 else {}
    return committed(solver, task_id, recorder.publish(exact)[0], spared)


def honest(town: Town, offer: Offer, spared: int = 0) -> bytes:
    return forged(town, offer, spared, lambda segment, task, start: None)


def dead(task: LoadedTask, start: list[Words]) -> list[Words]:
    """Zeros: the training stands still behind them, and every later segment is true."""
    executor = CpuExecutor(task.program, task.constants)
    state = [words.copy() for words in replay_end(task.program, executor, start, JUMP * INTERVAL, INTERVAL)]
    for slot, words in zip(task.program.slots, state, strict=True):
        if slot.type.dtype is DType.F32:
            words[...] = 0
    return state


def jumped(town: Town, offer: Offer, jump: Callable[[LoadedTask, list[Words]], list[Words]] = dead) -> bytes:
    """A log whose segments are all true but one, which isn't drawn."""
    return forged(town, offer, JUMP, lambda segment, task, start: jump(task, start) if segment == JUMP else None)


def sitting(town: Town, task_id: bytes) -> Verifier:
    """A verifier that has not to err."""
    verifier = town.join(Verifier, "v")
    seated_with_duty(verifier, task_id, forced=False)
    return verifier


def run(party: Role, decide: Callable[..., Decision], turns: int = 30) -> list[str]:
    """The verbs that a process carries out until it only waits, but for mere looks."""
    process, verbs = Process(party, decide), list[str]()
    for _ in range(turns):
        taken = [made for made in process.turn() if made.result is not DecisionResult.WAITED]
        assert all(made.result is DecisionResult.DONE for made in taken), taken
        if not taken:
            break
        verbs += [made.verb for made in taken if made.verb not in {"screen the log", "replay a segment"}]
    return verbs


def play(first: Role, then: Role, decides: tuple[Callable[..., Decision], Callable[..., Decision]]) -> list[str]:
    """Two processes in turn until both only wait."""
    verbs: list[str] = []
    while True:
        made = run(first, decides[0]) + run(then, decides[1])
        if not made:
            return verbs
        verbs += made


class Seer(Whistleblower):
    """Objects to a true segment, by an execution that is wrong in one bit."""

    @cached_property
    def lies(self) -> dict[int, Lie]:
        return {}

    def execute(self, task_id: bytes, segment: int) -> SegmentTrace:
        trace = super().execute(task_id, segment)
        if segment not in self.lies:
            self.lies[segment] = draw_lie(trace, range(len(trace.program.nodes)), Random(segment))
        return LyingTrace(trace, self.lies[segment])

    def baseless(self, task_id: bytes, segment: int) -> int:
        own = self.own_claim(task_id, segment)
        assert own is not None
        return self.object(task_id, FalseSegment(segment, own))


class Accuser(Whistleblower):
    """Says that a true segment ends somewhere else, far away."""

    def accuse(self, task_id: bytes, segment: int) -> int:
        own = self.own_claim(task_id, segment)
        assert own is not None
        false = replace(own, replay=b"\x07" * 32, distances=(1 << 150, 0, 0))
        return self.object(task_id, FalseSegment(segment, false))


class Hidden:
    """States of a log that the store doesn't show for now."""

    def __init__(self, town: Town, role: Role, task_id: bytes, *entries: int) -> None:
        names = {role.proof(task_id).checkpoints[entry].object for entry in entries}
        self.files = [town.file(name) for name in names]
        for file in self.files:
            file.rename(file.with_suffix(".hidden"))

    def show(self) -> None:
        for file in self.files:
            file.with_suffix(".hidden").rename(file)


def not_drawn(role: Role, task_id: bytes) -> list[int]:
    drawn = role.market.proofs.drawn_segments(task_id)
    return [segment for segment in range(SEGMENTS) if segment not in drawn]


def leave(role: Role, amount: int) -> None:
    """All but ``amount`` is taken out of the vault."""
    free = role.market.vault.free(role.wallet.address)
    role.market.vault.withdraw(role.wallet, free - amount)
