"""A pipeline of stages with several workers each, as SWARM: a beacon draws the route of each micro-batch.

Ryabinin et al., SWARM Parallelism, 2301.11913. A stage's workers merge the gradients of all micro-batches of a round
and make the same step; a worker that fails isn't in the next roster, whose routes lead around it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pol.commitments.keccak import keccak256
from pol.decentralised.parts import small_gpt
from pol.decentralised.parts.flat_adam import MOMENTS
from pol.decentralised.parts.gpt_stages import gpt_stages
from pol.decentralised.pipelines.activation_codec import PLAIN, ActivationCodec
from pol.decentralised.pipelines.pipeline_steps import PipelineSteps
from pol.decentralised.processes.local_processes import local_key
from pol.decentralised.processes.round_worker import RoundWorker
from pol.decentralised.training_options import TrainingOptions
from pol.errors import ProtocolError
from pol.graph.captured_step import Capture
from pol.graph.work_estimate import step_work
from pol.rounds.auditing.claim_replay import load_phase
from pol.rounds.claim_author import MadeClaim
from pol.rounds.plan.plan_builder import ALWAYS, From, PlanBuilder
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.plan.source_rules import ClaimPlace, holder
from pol.rounds.roster import Member, Roster, drawn_routes, stage_role
from pol.training.storage.store import Store

HEAD = "head"
STATE = ("weights", *MOMENTS)
"""What a stage brings from round to round."""


@dataclass(frozen=True)
class Pipeline(TrainingOptions):
    """Options of a training. ``parts`` are the micro-batches of a round."""

    rounds: int = 5
    parts: int = 4
    stages: int = 2
    batch: int = 4
    rows: int = 256
    rate: float = 3e-3
    shape: small_gpt.Shape = small_gpt.SMALL


def forward(stage: int) -> str:
    """The phase of a stage's forward pass; the last stage has `HEAD` instead."""
    return f"forward {stage}"


def backward(stage: int) -> str:
    """The phase of a stage's backward pass."""
    return f"backward {stage}"


def update(stage: int) -> str:
    """The phase of a stage's update."""
    return f"update {stage}"


def micro_batches(options: Pipeline) -> Tensor:
    """The rows of each micro-batch, int64 (micro-batches, batch): each row once in an epoch."""
    generator = torch.Generator().manual_seed(1000)
    wanted = options.rounds * options.parts
    each = options.rows // options.batch
    epochs = [torch.randperm(options.rows, generator=generator) for _ in range(-(-wanted // each))]
    return torch.cat([epoch[: each * options.batch].view(each, options.batch) for epoch in epochs])[:wanted]


def pipeline_plan(
    store: Store, options: Pipeline, coordinator: str, nonce: bytes, codec: ActivationCodec = PLAIN
) -> RoundsPlan:
    """The plan of a training of the small GPT through a pipeline, stored."""
    builder = PlanBuilder(store)
    add_pipeline(builder, options, codec)
    said = {"batch": str(options.batch), "model": f"GPT {options.shape}", "codec": type(codec).__name__}
    return builder.build("pipeline", coordinator, nonce, options.rounds, said)


def add_pipeline(builder: PlanBuilder, options: Pipeline, codec: ActivationCodec, members: int = 0) -> PipelineSteps:
    """Add the phases of a pipeline to a plan; ``members`` as in `PlanBuilder.phase`, of the updates."""
    text, following = small_gpt.text_rows(options.rows, options.shape.length, seed=1)
    stages = gpt_stages(options.shape, options.stages)
    steps = PipelineSteps(stages, text, following, micro_batches(options), codec)
    last = options.stages - 1
    for stage in range(last):
        _add(builder, forward(stage), stage, steps.forward(stage), options)
    _add(builder, HEAD, last, steps.head(), options)
    for stage in reversed(range(last)):
        _add(builder, backward(stage), stage, steps.backward(stage), options)
    for stage in range(options.stages):
        made = HEAD if stage == last else backward(stage)
        sources = {name: held(stage, name) for name in STATE}
        sources |= {f"gradient.{p}": From(made, "gradient", f"route:{stage}:{p}") for p in range(options.parts)}
        builder.phase(update(stage), steps.update(stage, options.parts, options.rate), sources, members=members)
    return steps


def held(stage: int, slot: str, starts: bool = True) -> From:
    """A slot of a stage's state, from who has held it in the round before."""
    return From(update(stage), slot, f"holder:{stage}", lag=1, starts=starts)


def _add(builder: PlanBuilder, name: str, stage: int, capture: Capture, options: Pipeline) -> None:
    """Add a phase that is done for each micro-batch."""
    before, after = forward(stage - 1), HEAD if stage == options.stages - 2 else backward(stage + 1)
    sources: dict[str, From] = {}
    for slot in capture.names.slots:
        kind, _, rest = slot.partition(".")
        match kind:
            case "weights":
                sources[slot] = held(stage, slot)
            case "in":
                sources[slot] = From(before, f"out.{rest}", f"route:{stage - 1}")
            case "from":
                sources[slot] = From(after, f"back.{rest}", f"route:{stage + 1}")
            case "given" if name == backward(stage):
                sources[slot] = From(forward(stage), slot, f"route:{stage}")
            case "seen":
                sources[slot] = From(name, slot, "part", starts=True)
            case _:
                sources[slot] = ALWAYS
    # Stages differ in what they compute. All that hold one make the same update, which counts nothing.
    work = step_work(capture.program)
    builder.phase(name, capture, sources, parts=options.parts, author=f"route:{stage}", units=work)


def staged_roster(plan: RoundsPlan, round_: int, present: list[int], stages: int, parts: int) -> Roster:
    """The roster of local workers, dealt to stages by their numbers, with routes that a beacon draws."""
    members = tuple(Member(local_key(number).name, number, role=stage_role(number % stages)) for number in present)
    beacon = keccak256(b"beacon of a local run" + round_.to_bytes(8, "big"))  # a real one comes from outside
    routes = drawn_routes(beacon, round_, members, parts)
    return Roster(plan.digest, round_, members, routes=routes, beacon=beacon)


class StageWorker:
    """A worker's share in one round of a pipeline: what its roster's routes give it, in an order without a deadlock."""

    def __init__(self, worker: RoundWorker, roster: Roster, before: Roster | None) -> None:
        self._worker, self._roster, self._before = worker, roster, before
        self._plan = worker.author.plan
        self._own = roster.place(worker.author.name)
        self._stages = len(roster.routes[0])

    def run(self) -> None:
        """All phases of the round."""
        last = self._stages - 1
        self.take_over()
        for stage in range(last):
            for part, route in enumerate(self._roster.routes):
                if stage:
                    self._bring(forward(stage - 1), part, route[stage - 1], [route[stage]], "out.")
                self._make(forward(stage), part, route[stage])
        for part, route in enumerate(self._roster.routes):
            if last:
                self._bring(forward(last - 1), part, route[last - 1], [route[last]], "out.")
            self._make(HEAD, part, route[last])
        for stage in reversed(range(last)):
            for part, route in enumerate(self._roster.routes):
                after = HEAD if stage == last - 1 else backward(stage + 1)
                self._bring(after, part, route[stage + 1], [route[stage]], "back.")
                self._make(backward(stage), part, route[stage])
        for stage in range(self._stages):
            self.merge(stage)

    def take_over(self) -> None:
        """Bring the state of stages to members that hold them newly."""
        for stage in range(self._stages):
            for place in sorted({route[stage] for route in self._roster.routes}):
                self.bring_state(stage, place)

    def bring_state(self, stage: int, place: int) -> None:
        """Bring the state of a stage after the round before to a member, if it hasn't held it itself."""
        if self._before is None:
            return
        giver = holder(self._roster, self._before, stage, self._roster.members[place].worker)
        index = self._plan.phase_index(update(stage), len(self._before.members))
        self._send(ClaimPlace(giver, self._before.round, index, 0), self._roster.place(giver), [place], STATE)

    def merge(self, stage: int) -> None:
        """Bring the gradients of a stage to all that hold it, and update it."""
        made = HEAD if stage == self._stages - 1 else backward(stage)
        places = sorted({route[stage] for route in self._roster.routes})
        for part, route in enumerate(self._roster.routes):
            self._bring(made, part, route[stage], places, "gradient")
        if self._own in places:
            self._worker.make(update(stage))

    def _make(self, phase: str, part: int, place: int) -> None:
        if place == self._own:
            self._worker.make(phase, part)

    def _bring(self, phase: str, part: int, giver: int, takers: list[int], prefix: str) -> None:
        """A claim of this round, with the slots of a prefix, from one place to others."""
        index = self._plan.phase_index(phase, len(self._roster.members))
        names = load_phase(self._worker.author.store, self._plan.phases[index]).names.slots
        slots = [name for name in names if name.startswith(prefix)]
        at = ClaimPlace(self._roster.members[giver].worker, self._roster.round, index, part)
        self._send(at, giver, takers, slots)

    def _send(self, at: ClaimPlace, giver: int, takers: list[int], slots: list[str] | tuple[str, ...]) -> None:
        for taker in takers:
            if taker == giver:
                continue
            if self._own == giver:
                self._worker.deliver(self.claim(at), slots, taker)
            if self._own == taker:
                self._worker.accept(at, slots)

    def claim(self, at: ClaimPlace) -> MadeClaim:
        """A claim of this worker, maybe of the round before a restart."""
        claim = self._worker.author.claim(at)
        if claim is None:
            raise ProtocolError(f"the log has no claim of {at.worker} for round {at.round}: put back its newest state")
        return claim


def pipeline_round(worker: RoundWorker) -> None:
    """One round of one worker, between `RoundWorker.begin` and `RoundWorker.finish`."""
    roster = worker.author.rosters[worker.round]
    StageWorker(worker, roster, worker.author.rosters.get(worker.round - 1)).run()
