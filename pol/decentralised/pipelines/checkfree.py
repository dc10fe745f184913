"""CheckFree: a lost stage is recovered as the mean of its neighbors, by a program that anybody can replay.

Blagoev et al. (Gensyn), All is Not Lost: LLM Recovery without Checkpoints, 2506.15461. Three stages have one block
each; the middle one may be lost. The round after the loss has a roster of two, for which the plan has other updates:
the outer stages keep their state, the middle one is the mean. Then a spare worker takes the middle stage over.
"""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from pol.decentralised.parts.flat_adam import MOMENTS, adam_start
from pol.decentralised.parts.gpt_stages import GptStage, gpt_stages
from pol.decentralised.parts.small_gpt import SMALL
from pol.decentralised.pipelines.activation_codec import PLAIN
from pol.decentralised.pipelines.pipeline import STATE, Pipeline, StageWorker, add_pipeline, held, update
from pol.decentralised.processes.local_processes import local_key
from pol.decentralised.processes.round_worker import RoundWorker
from pol.errors import ProtocolError
from pol.graph.capture.functions import capture_function
from pol.graph.captured_step import Capture
from pol.graph.step_program import Component
from pol.rounds.plan.plan_builder import ALWAYS, From, PlanBuilder
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.roster import Member, Roster
from pol.training.storage.store import Store

STAGES, MIDDLE, LEFT = 3, 1, 2
"""Stages, the one that may be lost, and the members that are left then."""
THREE_BLOCKS = replace(SMALL, layers=STAGES)
Slots = dict[str, Tensor]


def checkfree_plan(store: Store, options: Pipeline, coordinator: str, nonce: bytes) -> RoundsPlan:
    """The plan of a training through three stages, stored; ``options`` are of three blocks, such as `THREE_BLOCKS`."""
    builder = PlanBuilder(store)
    add_pipeline(builder, options, PLAIN, members=STAGES)
    stages = gpt_stages(options.shape, STAGES)
    for number, stage in enumerate(stages):
        if number == MIDDLE:
            sources: dict[str, From] = dict.fromkeys(STATE, ALWAYS)
            sources |= {"left": held(0, "weights", starts=False), "right": held(2, "weights", starts=False)}
            builder.phase(update(number), mean_step(stages), sources, members=LEFT)
        else:
            kept = {name: held(number, name) for name in STATE}
            builder.phase(update(number), kept_step(stage), kept, members=LEFT)
    return builder.build("checkfree", coordinator, nonce, options.rounds, {"model": f"GPT {options.shape}"})


def mean_step(stages: list[GptStage]) -> Capture:
    """The middle stage as the mean of the blocks of its neighbors, with moments of zeros."""
    first, middle, last = stages
    size = middle.block_size

    def step(state: Slots, _: Slots, __: Tensor) -> Slots:
        return {"weights": 0.5 * (state["left"][:size] + state["right"][:size])}

    weights = middle.vector()
    state = {"weights": weights, **adam_start(weights), "left": first.vector(), "right": last.vector()}
    return capture_function(step, state, components=dict.fromkeys(MOMENTS, Component.OPTIMIZER))


def kept_step(stage: GptStage) -> Capture:
    """The state as it was."""

    def step(state: Slots, _: Slots, __: Tensor) -> Slots:
        return {"weights": state["weights"] * 1.0}

    weights = stage.vector()
    return capture_function(
        step, {"weights": weights, **adam_start(weights)}, components=dict.fromkeys(MOMENTS, Component.OPTIMIZER)
    )


def spare_roster(plan: RoundsPlan, round_: int, present: list[int], parts: int, lost: int) -> Roster:
    """The roster of local workers 0, 1 and 2, one a stage; worker 3 takes the place of 1 after round ``lost``."""
    if round_ < lost:
        numbers, route = [0, 1, 2], (0, 1, 2)
    elif round_ == lost:
        numbers, route = [0, 2], (0, 0, 1)  # worker 0 recovers the middle stage
    else:
        numbers, route = [0, 2, 3], (0, 2, 1)
    if missing := set(numbers) - set(present):
        raise ProtocolError(f"worker {min(missing)} isn't there in round {round_}: only worker 1 can be replaced")
    joined = {3: lost + 1}
    members = tuple(Member(local_key(n).name, n, joined.get(n, 0)) for n in numbers)
    return Roster(plan.digest, round_, members, routes=(route,) * parts)


def checkfree_round(worker: RoundWorker) -> None:
    """One round of one worker; with two members, the one that recovers the middle stage."""
    roster = worker.author.rosters[worker.round]
    share = StageWorker(worker, roster, worker.author.rosters.get(worker.round - 1))
    if len(roster.members) == STAGES:
        share.run()
        return
    route = roster.routes[0]
    share.bring_state(STAGES - 1, route[MIDDLE])
    for stage, place in enumerate(route):
        if roster.members[place].worker == worker.author.name:
            worker.make(update(stage))
