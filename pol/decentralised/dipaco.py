"""DiPaCo: documents are routed to paths, each path trains two modules, each module is merged over its paths.

Douillard et al., DiPaCo: Distributed Path Composition, 2403.10616. Two modules for each of two levels make four paths,
one a worker: path ``2 i + j`` has module i of level a and module j of level b. The router is committed in the plan.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pol.decentralised.parts import small_gpt
from pol.decentralised.parts.flat_adam import MOMENTS, adam_start, adam_step
from pol.decentralised.parts.gpt_stages import GptStage, gpt_stages
from pol.decentralised.processes.local_processes import local_key
from pol.decentralised.processes.round_worker import RoundWorker
from pol.decentralised.training_options import TrainingOptions
from pol.graph.capture import to_words
from pol.graph.capture.functions import capture_function
from pol.graph.captured_step import Capture
from pol.graph.step_program import Component
from pol.rounds.plan.plan_builder import ALWAYS, From, PlanBuilder
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.plan.source_rules import ClaimPlace
from pol.rounds.roster import Member, Roster
from pol.training.storage.store import Store

SHARD = "shard"
LEVELS = ("a", "b")
SIDES, PATHS = 2, 4
Slots = dict[str, Tensor]


@dataclass(frozen=True)
class DiPaCo(TrainingOptions):
    """Options of a training; ``steps`` are those of a path in a round."""

    rounds: int = 5
    steps: int = 10
    batch: int = 8
    rows: int = 256
    rate: float = 3e-3
    outer_rate: float = 0.7
    momentum: float = 0.9
    shape: small_gpt.Shape = small_gpt.SMALL


def modules_of(path: int) -> tuple[int, int]:
    """Which module of each level a path has."""
    return path // SIDES, path % SIDES


def paths_of(level: str, module: int) -> list[int]:
    """The paths that share a module."""
    return [path for path in range(PATHS) if modules_of(path)[LEVELS.index(level)] == module]


def local(path: int) -> str:
    """The phase of a path's own steps."""
    return f"path {path}"


def merge(level: str, module: int) -> str:
    """The phase that merges a module."""
    return f"merge {level}{module}"


def dipaco_plan(store: Store, options: DiPaCo, coordinator: str, nonce: bytes) -> RoundsPlan:
    """The plan of a training of the small GPT by four paths, stored."""
    stages = gpt_stages(options.shape, len(LEVELS))
    text, following = small_gpt.text_rows(options.rows, options.shape.length, seed=1)
    builder = PlanBuilder(store)
    shard = shard_step(text)
    at = shard.names.constants.index("path")
    data = [
        [*shard.constants[:at], to_words("path", torch.tensor(path)), *shard.constants[at + 1 :]]
        for path in range(PATHS)
    ]
    builder.phase(SHARD, shard, dict.fromkeys(shard.names.slots, ALWAYS), data=data)
    step = path_step(stages, text, following, options)
    for path in range(PATHS):
        sources = {name: From(local(path), name, lag=1, starts=True) for name in MOMENTS}
        for level, module in zip(LEVELS, modules_of(path), strict=True):
            sources[level] = From(merge(level, module), "weights", lag=1, starts=True)
        sources |= {"rows": From(SHARD, "rows"), "loss": ALWAYS}
        builder.phase(local(path), step, sources, steps=options.steps, author=f"member:{path}", units=options.steps)
    for stage, level in zip(stages, LEVELS, strict=True):
        merged = merge_step(stage.vector(), options)
        for module in range(SIDES):
            name = merge(level, module)
            sources = {slot: From(name, slot, lag=1, starts=True) for slot in ("weights", "momentum")}
            for k, path in enumerate(paths_of(level, module)):
                sources[f"after.{k}"] = From(local(path), level, f"member:{path}")
            builder.phase(name, merged, sources)
    said = {"steps": str(options.steps), "batch": str(options.batch), "model": f"GPT {options.shape}"}
    return builder.build("dipaco", coordinator, nonce, options.rounds, said)


def shard_step(text: Tensor) -> Capture:
    """The documents of a path: those of which the router gives it the highest of four scores, over and over."""
    count, letters = len(text), len(small_gpt.ALPHABET)

    def step(state: Slots, known: Slots, _: Tensor) -> Slots:
        shares = (known["text"].unsqueeze(2) == torch.arange(letters)).to(torch.float32).mean(1)
        is_own = (shares @ state["router"]).argmax(1) == known["path"]
        number = torch.cumsum(is_own.to(torch.int64), 0) - 1  # of a document in its shard
        many, place = is_own.to(torch.float32).sum().clamp(min=1.0), torch.arange(count).to(torch.float32)
        wanted = (place - (place / many).floor() * many).to(torch.int64)  # place modulo many, exact below 2^24
        found = (number.unsqueeze(0) == wanted.unsqueeze(1)) & is_own.unsqueeze(0)
        return {"rows": (found.to(torch.int64) * torch.arange(count)).sum(1).to(torch.int32)}

    router = torch.randn(letters, PATHS, generator=torch.Generator().manual_seed(11))
    # Scores of the mean document are equal, so that no path gets them all.
    mean = (text.unsqueeze(2) == torch.arange(letters)).to(torch.float32).mean((0, 1))
    router = router - torch.outer(mean, mean @ router) / mean.dot(mean)
    state = {"router": router, "rows": torch.zeros(count, dtype=torch.int32)}
    known = {"text": text, "path": torch.zeros((), dtype=torch.int64)}
    return capture_function(step, state, known, components={"rows": Component.BUFFER})


def path_step(stages: list[GptStage], text: Tensor, following: Tensor, options: DiPaCo) -> Capture:
    """A step of AdamW of both modules of a path, on the next documents of its shard."""
    first, second = stages
    size = first.vector().numel()

    def step(state: Slots, known: Slots, at: Tensor) -> Slots:
        places = (at * options.batch + torch.arange(options.batch)) % options.rows
        rows = state["rows"].index_select(0, places).to(torch.int64)
        weights = torch.cat([state["a"], state["b"]]).detach().requires_grad_()
        hidden = first.run(weights[:size], known["text"].index_select(0, rows))
        loss = small_gpt.loss(second.run(weights[size:], hidden), known["following"].index_select(0, rows))
        (gradient,) = torch.autograd.grad(loss, [weights])
        moved = adam_step(weights.detach(), gradient, state, options.rate)
        joined = moved.pop("weights")
        return {**moved, "a": joined[:size], "b": joined[size:], "loss": loss.detach()}

    both = torch.cat([stage.vector() for stage in stages])
    weights = {level: stage.vector() for level, stage in zip(LEVELS, stages, strict=True)}
    rest = {"rows": torch.zeros(options.rows, dtype=torch.int32), "loss": torch.zeros(())}
    kinds = dict.fromkeys(MOMENTS, Component.OPTIMIZER) | dict.fromkeys(rest, Component.BUFFER)
    known = {"text": text, "following": following}
    return capture_function(step, {**weights, **adam_start(both), **rest}, known, components=kinds)


def merge_step(weights: Tensor, options: DiPaCo) -> Capture:
    """The outer step of a module: the mean change of its two paths, with Nesterov's momentum."""

    def step(state: Slots, _: Slots, __: Tensor) -> Slots:
        mean = state["weights"] - 0.5 * (state["after.0"] + state["after.1"])
        moved = options.momentum * state["momentum"] + mean
        change = options.outer_rate * (mean + options.momentum * moved)
        return {"weights": state["weights"] - change, "momentum": moved}

    zeros = torch.zeros_like(weights)
    kinds = {"momentum": Component.OPTIMIZER, "after.0": Component.BUFFER, "after.1": Component.BUFFER}
    state = {"weights": weights, "momentum": zeros, "after.0": zeros, "after.1": zeros}
    return capture_function(step, state, components=kinds)


def path_roster(plan: RoundsPlan, round_: int, present: list[int]) -> Roster:
    """The roster of local workers, one a path."""
    return Roster(plan.digest, round_, tuple(Member(local_key(number).name, number) for number in present))


def dipaco_round(worker: RoundWorker) -> None:
    """One round of one worker: its shard, its steps, and the merges of both of its modules."""
    author, plan = worker.author, worker.author.plan
    roster = author.rosters[worker.round]
    own = roster.place(author.name)
    worker.make(SHARD)
    trained = worker.make(local(own))
    for level, module in zip(LEVELS, modules_of(own), strict=True):
        (other,) = (path for path in paths_of(level, module) if path != own)
        worker.deliver(trained, [level], other)
        name = roster.members[other].worker
        worker.accept(ClaimPlace(name, worker.round, plan.phase_index(local(other), PATHS), 0), [level])
        worker.make(merge(level, module))
