"""Synthetic data: adversarial examples that make a foreign model look like the result of training.

Zhang et al. choose data, number of checkpoints and start themselves. Here all three are the task's, so what is left of
their attacks are checkpoints that their own data explains, and the task's data doesn't.

And updates too small to be seen by an absolute threshold, or by a verifier that looks at the greatest updates.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from lab.attacks.attack_loop import with_weights
from lab.attacks.attack_target import Floats, State, numbers, words_of
from lab.attacks.forgery import Attack, Forgery, Workshop
from pol.graph.step_program import Component
from pol.training.task.task_document import LoadedTask

ZHANG = "Zhang et al. 2022, arXiv:2108.09454"
ITERATIONS = 3
"""Optimisation steps per synthetic batch: few, so that the forgery is cheaper than the training."""
RATE = 0.1


def between(workshop: Workshop, start: State, end: State, count: int) -> list[State]:
    """``count + 1`` states on the straight line from one state to another; counters count on."""
    target = workshop.target
    states = []
    for index in range(count + 1):
        share = np.float32(index / count)

        def blend(place: int, values: Floats, share: np.float32 = share) -> Floats:
            moved: Floats = values + (numbers(end[place]) - values) * share
            return moved

        states.append(workshop.ticked(workshop.with_numbers(start, blend), index * target.interval))
    states[-1] = [end[i] if words.dtype == end[i].dtype else words for i, words in enumerate(states[-1])]
    return states


def gradients(model: torch.nn.Module, inputs: Tensor, labels: Tensor, workshop: Workshop) -> list[Tensor]:
    """The gradients of the parameters for a batch, which can be differentiated again by the batch."""
    loss = workshop.target.loss(model(inputs), labels)
    return list(torch.autograd.grad(loss, list(model.parameters()), create_graph=True))


def explain(workshop: Workshop, state: State, wanted: Sequence[Tensor] | None, step: int) -> tuple[float, float]:
    """Look for a batch near the step's own that gives the wanted gradients (None: none at all).

    How far the gradients are from the wanted ones, before and after, as a share of the first.
    """
    model = with_weights(workshop.target, state)
    inputs, labels = workshop.target.batch(step)
    noise = torch.zeros_like(inputs, requires_grad=True)
    optimizer = torch.optim.Adam([noise], lr=RATE)
    found: list[float] = []
    for _ in range(ITERATIONS):
        with workshop.counted():
            actual = gradients(model, inputs + noise, labels, workshop)
            goals = wanted or [torch.zeros_like(item) for item in actual]
            miss = torch.stack([((a - g) ** 2).sum() for a, g in zip(actual, goals, strict=True)]).sum()
            optimizer.zero_grad()
            miss.backward()  # type: ignore[no-untyped-call]  # torch declares no types
        optimizer.step()
        found.append(float(miss.detach().sqrt()))
    return found[0], found[-1]


def vanishing(workshop: Workshop) -> Forgery:
    """Attack I: a line to the stolen model, each checkpoint with a batch whose gradient nearly vanishes there."""
    states = between(workshop, workshop.start, workshop.target.stolen[-1], workshop.target.segments)
    shrunk = [explain(workshop, state, None, i * workshop.target.interval) for i, state in enumerate(states[:-1])]
    gain = float(np.mean([after / before for before, after in shrunk]))
    return Forgery(states, damage={"gradient left on its own data": gain})


def directed(workshop: Workshop) -> Forgery:
    """Attack II: the last step of each segment carries the whole way, by a batch whose gradient points along it."""
    target = workshop.target
    states = between(workshop, workshop.start, target.stolen[-1], target.segments)
    names = dict(zip(target.task.names.slots, range(len(states[0])), strict=True))
    misses = []
    for index, (state, following) in enumerate(pairwise(states)):
        ways = [
            target.tensor(names[name], state[names[name]]) - target.tensor(names[name], following[names[name]])
            for name, _ in target.build().named_parameters()
        ]
        before, after = explain(workshop, state, ways, (index + 1) * target.interval - 1)
        misses.append(after / before)
    return Forgery(states, damage={"gradient missed on its own data": float(np.mean(misses))})


def near_start(workshop: Workshop) -> Forgery:
    """Attack III: a start of its own near the stolen model, so that hardly any way is left to explain."""
    end = workshop.target.stolen[-1]
    spread = np.float32(1e-3)

    def near(_place: int, values: Floats) -> Floats:
        return values + spread * workshop.random.standard_normal(values.shape).astype(np.float32)

    start = workshop.with_numbers(end, near, [Component.PARAMETER])
    return Forgery(between(workshop, start, end, workshop.target.segments))


def near_start_joined(workshop: Workshop) -> Forgery:
    """Attack III behind the committed start: the first segment jumps to where the attack would have begun."""
    return Forgery([workshop.start, *near_start(workshop).states[1:]])


def own_task(workshop: Workshop) -> Forgery:
    """A learning proof of a task of one's own, whose data was made to fit, handed in for the task that is paid for."""
    target = workshop.target
    name = target.task.names.constants[0]
    place = target.task.names.constants.index(name)
    shifted = words_of(np.roll(numbers(target.task.constants[place]), 1, axis=0))
    task = target.task
    own = LoadedTask(
        digest="0" * 64,
        document=task.document,
        program=task.program,
        names=task.names,
        source=task.source,
        constants=target.constants_with(name, shifted),
        first_state=task.first_state,
        lineage=task.lineage,
    )
    return Forgery(workshop.run(), task=own)


ATTACKS = (
    Attack("zhang-1", "line to a stolen model; synthetic batches with vanishing gradients", vanishing, ZHANG),
    Attack("zhang-2", "line to a stolen model; one synthetic batch per segment points along", directed, ZHANG),
    Attack("zhang-3", "own start next to the stolen model", near_start, ZHANG),
    Attack("zhang-3-joined", "the same behind the committed start: one jump", near_start_joined, ZHANG),
    Attack("own-task", "the proof of another task with data that was made to fit", own_task, ZHANG),
)


FANG = "Fang et al. 2023, arXiv:2208.03567"
SHARE = np.float32(1e-4)
"""An infinitesimal update's share of a real one."""
TOP = 0.1
"""Share of segments that are trained honestly, because a top-q verifier looks at the greatest updates."""


def infinitesimal(workshop: Workshop) -> Forgery:
    """The stolen model from the first checkpoint on; one real step per segment, scaled down to nearly nothing."""
    target = workshop.target
    state = workshop.ticked(target.stolen[-1], target.interval - target.task.document.steps)
    states = [workshop.start, state]
    for segment in range(1, target.segments):
        states.append(creep(workshop, states[-1], segment))
    return Forgery(states)


def top_q(workshop: Workshop) -> Forgery:
    """Honest where updates are greatest, at the start; the rest creeps, but for one jump to the stolen model."""
    target = workshop.target
    honest = max(1, round(TOP * target.segments))
    states = [workshop.start]
    for segment in range(honest):
        states.append(workshop.segment(states[-1], segment))
    if honest < target.segments:
        rest = target.segments - honest
        states += between(workshop, states[-1], target.stolen[-1], rest)[1:]
    return Forgery(states)


def dodging(workshop: Workshop) -> Forgery:
    """Trains all segments but those with the smallest updates, which creep: a top-q verifier never looks there."""
    target = workshop.target
    ways = [
        sum(float(np.square(numbers(b[i]) - numbers(a[i])).sum()) for i in target.places(Component.PARAMETER))
        for a, b in pairwise(target.honest)
    ]
    smallest = set(np.argsort(ways)[: max(1, round(TOP * target.segments))].tolist())
    states = [workshop.start]
    for segment in range(target.segments):
        skipped = segment in smallest
        states.append(creep(workshop, states[-1], segment) if skipped else workshop.segment(states[-1], segment))
    return Forgery(states)


def creep(workshop: Workshop, state: State, segment: int) -> State:
    """A segment of which only one step is trained, and added scaled down to nearly nothing."""
    moved = workshop.train(state, segment * workshop.target.interval, 1)

    def scaled(place: int, values: Floats) -> Floats:
        small: Floats = values + (numbers(moved[place]) - values) * SHARE
        return small

    return workshop.ticked(workshop.with_numbers(state, scaled))


TINY = (
    Attack("infinitesimal", "jump to a stolen model, then updates of next to nothing", infinitesimal, FANG),
    Attack("blindfold-top-q", "honest where a top-q verifier looks, a line to a stolen model elsewhere", top_q, FANG),
    Attack("dodge-top-q", "skips the 10 % of segments that move least", dodging, "Jia et al. 2021, arXiv:2103.05633"),
)
