"""The search for what a coalition gains by load: more than an honest party can do in time (docs/spec/market.md).

An honest party has one machine and does one thing after another. A flood is so many disputes, counterclaims, tasks or
copied proofs at once. Where one of them ends late the coalition wins its prize, and gets back what the others cost;
where all end in time it loses every bond.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from lab.incentives.amounts import UNIT
from pol.incentives.payouts import (
    SUBMITTER_OF_VERIFIER_STAKE,
    TREASURY_OF_PRICE,
    objection_bond,
    objector_reward,
    share_down,
    share_up,
)
from pol.roles.process.schedule import Job, late_job

STAKE, PRICE, DEFENSE = 64 * UNIT, 16 * UNIT, UNIT // 100
"""Of a solver; of the training that a coalition has only pretended; what one side of the longest dispute costs."""
HOUR, DAY = 3_600, 86_400
COPY = UNIT // 2_000
"""What a stranger pays for a copied proof that is included before the solver's batch."""
FLOODS = (1, 2, 3, 5, 10, 30, 100)
LOADS = (0.1, 0.4, 0.9)
"""Of a clock, a window or a training's time: what an honest party's machine needs for one of a flood."""


@dataclass(frozen=True)
class LoadRules:
    """Rules about many things at once that were once other rules."""

    queues: bool = True
    """The n-th contest, or challenge of a profile, that is open has n clocks."""
    doubles: bool = True
    """Each contest that is open doubles the bond of the next."""
    waits: bool = True
    """The window of the n-th counterclaim has room for the contests of those before it."""
    passes_over: bool = True
    """A batch of proofs passes over steps that are proved when it lands."""
    schedules: bool = True
    """An honest party asks for nothing that doesn't fit beside what it has taken on."""


RULES = LoadRules()
REVERTED: Mapping[str, LoadRules] = {
    "contests and challenges of profiles share a clock": LoadRules(queues=False),
    "the windows of counterclaims leave no time for those before": LoadRules(waits=False),
    "a batch of proofs reverts where a step is proved": LoadRules(passes_over=False),
    "a party takes every task that it could do alone": LoadRules(schedules=False),
}
"""Each rule as it was. A flat bond alone admits no attack: it makes a flood that wins nothing cheaper."""


@dataclass(frozen=True)
class Flood:
    """A coalition's best: what it does, how many of it at once, and what it brings in the smallest unit."""

    move: str
    size: int
    profit: int


def floods(rules: LoadRules = RULES) -> Iterator[Flood]:
    """Every flood of each kind."""
    for size, load in product(FLOODS, LOADS):
        yield Flood("contest a true counterclaim", size, _contests(rules, size, load))
        yield Flood("say false counterclaims", size, _counterclaims(rules, size, load))
        yield Flood("copy the next proof before each batch", size, _copies(rules, size, load))
        yield Flood("submit tasks that don't fit together", size, _tasks(rules, size, load))


def worst_flood(rules: LoadRules = RULES) -> Flood:
    """What brings a coalition most."""
    return max(floods(rules), key=lambda flood: flood.profit)


def reverted_of_floods() -> dict[str, Flood]:
    """For each rule that is put back as it was, a flood that it admits."""
    found = {name: worst_flood(rules) for name, rules in REVERTED.items()}
    return {name: flood for name, flood in found.items() if flood.profit > 0}


def _contests(rules: LoadRules, size: int, load: float) -> int:
    """Friends of a lying solver contest at once; the first contest that the objector loses saves the solver."""
    clock = 6 * DAY
    jobs = [Job(load * clock, clock * (number if rules.queues else 1)) for number in range(1, size + 1)]
    if late_job(jobs, 0) is not None:
        return PRICE
    bond = objection_bond(DEFENSE, STAKE, 0)
    return -sum(objection_bond(DEFENSE, STAKE, number) if rules.doubles else bond for number in range(size))


def _counterclaims(rules: LoadRules, size: int, load: float) -> int:
    """A solver that has one bond beside its stake contests one after the other, each of them in its window."""
    window, dispute = HOUR, 12 * DAY  # the longest of a clock of six days
    ends = [number * window + (number - 1) * dispute * rules.waits for number in range(1, size + 1)]
    bonds = [objection_bond(DEFENSE, STAKE, number) for number in range(size)]
    if any(number * load * dispute + load * window > end for number, end in enumerate(ends)):
        return objector_reward(STAKE, bonds[0], 0)
    return -sum(bonds)


def _copies(rules: LoadRules, size: int, load: float) -> int:
    """A stranger proves the next step before each batch of a solver that has time for so many; then the solver has
    nothing proved, and defends its segment in a dispute, whose defense it pays."""
    is_cut = not rules.passes_over and size >= int(1 / load)
    return is_cut * objector_reward(STAKE, DEFENSE, 0) - size * COPY


def _tasks(rules: LoadRules, size: int, load: float) -> int:
    """The coalition submits tasks, and gets half of the stake of a party that is late with one."""
    jobs = [Job(load * DAY, DAY) for _ in range(size)]
    while rules.schedules and late_job(jobs, 0) is not None:
        jobs.pop()  # it asks for as many as fit
    late = sum(late_job(jobs[:number], 0) is not None for number in range(1, len(jobs) + 1))
    return late * share_down(STAKE, SUBMITTER_OF_VERIFIER_STAKE) - size * share_up(PRICE, TREASURY_OF_PRICE)
