"""Cheating where a second look is due anyway: the solver reruns its own segments, and knows what a look will excuse."""

from collections.abc import Callable, Sequence
from functools import partial

from lab.attacks.attack_loop import AttackLoop, RoundedProducts
from lab.attacks.attack_target import State, Target, has_hidden_units
from lab.attacks.forgery import Attack, Forgery, Workshop
from lab.attacks.hidden_drift import ALONG
from lab.attacks.pushes import Vector, added, difference, distance, harm, length, mixed, noise, scaled, towards
from lab.attacks.within_tolerance import PART, allowance
from pol.execution.cpu import CpuExecutor
from pol.graph.step_program import Component
from pol.verification.verdict.rerun_span import CUT, are_too_many
from pol.verification.verdict.second_look import CAP_BITS, LOOK_MARGIN, look_programs

OWN_LOOKS = 4
"""Reruns that the solver makes of each segment; a verifier makes 16, which allow as much or more."""
MOVING = (Component.PARAMETER, Component.OPTIMIZER)

Act = Callable[[int, State, State, Sequence[State]], State | None]
"""From a segment, its start, its canonical end and the ends of reruns: what is published instead; None: the end."""


def where_looked(workshop: Workshop, act: Act, most: int | None = None) -> Forgery:
    """The training, in which up to ``most`` segments are changed that reruns part in by more than the thresholds."""
    target = workshop.target
    programs = look_programs(target.task.program, OWN_LOOKS)
    states, changed = [workshop.start], 0
    for segment in range(target.segments):
        start = states[-1]
        end = workshop.segment(start, segment)
        reruns = [workshop.segment(start, segment, CpuExecutor(other, target.task.constants)) for other in programs]
        found = act(segment, start, end, reruns) if _part(target, start, end, reruns) and changed != most else None
        changed += found is not None
        states.append(end if found is None else found)
    return Forgery(states, damage={"changed segments": changed / target.segments, **harm(target, states)})


def low_precision(workshop: Workshop, bits: int = 11, unmarked: bool = False) -> Forgery:
    """Backward passes in lower precision where reruns part at least as far.

    ``unmarked`` stops before so many segments are outside of the span of their reruns that the training is rejected.
    """
    target = workshop.target
    loop = AttackLoop(target, behind=lambda: RoundedProducts(bits))

    def act(segment: int, start: State, end: State, reruns: Sequence[State]) -> State | None:
        rough = loop.train(start, segment * target.interval, target.interval)
        workshop.steps += target.interval
        excused = (
            distance(target, difference(target, end, rough, component))
            <= _allowed(target, start, end, reruns, component)
            for component in MOVING
        )
        return rough if all(excused) else None

    return where_looked(workshop, act, bearable(target.segments) if unmarked else None)


def along_reruns(workshop: Workshop) -> Forgery:
    """Weights are pushed by the difference of a rerun, as far as a look allows: it lies in the span of the reruns."""
    target = workshop.target

    def act(_segment: int, start: State, end: State, reruns: Sequence[State]) -> State:
        goal = towards(target, end, target.poisoned)
        ways = [difference(target, end, rerun) for rerun in reruns]
        # Of the branches that honest machines take, the one that leads furthest towards the goal, or away from it.
        aimed = max(ways, key=lambda way: abs(_dot(way, goal)))
        sign = 1.0 if _dot(aimed, goal) > 0 else -1.0
        whole = _allowed(target, start, end, reruns, Component.PARAMETER)
        return added(end, scaled(aimed, sign * whole / length(aimed)))

    return where_looked(workshop, act)


def outside_of_reruns(workshop: Workshop) -> Forgery:
    """Weights are pushed towards a goal, in noise, by eight thresholds: that much no span has to explain."""
    target = workshop.target

    def act(_segment: int, start: State, end: State, reruns: Sequence[State]) -> State:
        whole = _allowed(target, start, end, reruns, Component.PARAMETER)
        most = PART * CUT * allowance(target, start, end, Component.PARAMETER)
        goal = towards(target, end, target.poisoned)
        return added(end, mixed(goal, ALONG, noise(workshop)), min(whole, most))

    return where_looked(workshop, act)


def bearable(segments: int) -> int:
    """The most marked segments with which a training is accepted."""
    return next(count for count in range(segments) if are_too_many(count + 1, segments))


def _part(target: Target, start: State, end: State, reruns: Sequence[State]) -> bool:
    """Whether reruns part by more than the thresholds in the weights, so that a look allows more than they do."""
    furthest = max(distance(target, difference(target, end, rerun)) for rerun in reruns)
    return furthest > allowance(target, start, end, Component.PARAMETER)


def _allowed(target: Target, start: State, end: State, reruns: Sequence[State], component: Component) -> float:
    furthest = max(distance(target, difference(target, end, rerun, component)) for rerun in reruns)
    way = distance(target, difference(target, start, end, component))
    return PART * max(
        allowance(target, start, end, component), min(LOOK_MARGIN * furthest, 2.0 ** -(CAP_BITS // 2) * way)
    )


def _dot(one: Vector, other: Vector) -> float:
    return sum(float((part * other[i]).sum()) for i, part in one.items())


_attack = partial(Attack, hides=True, applies=has_hidden_units)
ATTACKS = (
    _attack("tf32-where-looked", "backward passes of 11 bits where reruns part as far", low_precision),
    _attack(
        "tf32-within-marks", "the same in as many segments as marks are borne", partial(low_precision, unmarked=True)
    ),
    _attack(
        "13-bits-where-looked",
        "backward passes of 13 bits, below what no span explains",
        partial(low_precision, bits=13),
    ),
    _attack("along-reruns", "pushed along honest branches, by what a look allows", along_reruns),
    _attack("outside-reruns", "pushed by the eight thresholds that no span explains", outside_of_reruns),
)
