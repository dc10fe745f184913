"""How many games the simulator plays, and which forgetful parties it finds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial

from lab.benchmarks.figure import Figure
from lab.simulator.cast import Character, without
from lab.simulator.game import Decide, Game, Result
from lab.simulator.world import World

GAMES, TRIES, BLOCKS = 100, 30, 250
"""Games that are timed, those in which a forgetful party has to be found, and the blocks of one of these."""
FORGOTTEN = {
    "solver": ("reveal", "train", "move", "show data", "challenge the verdict"),
    "verifier": ("post the verdict", "disclose", "move", "say it isn't served", "open claims"),
    "whistleblower": ("object to a segment", "challenge the verdict", "reclaim", "collect"),
    "submitter": ("award", "settle", "remove the solver", "remove the verifier", "decide the seat"),
}
"""What nobody of a role does any more, in one mutant each: what others do in its place isn't found."""


def simulator_figures() -> dict[str, Figure]:
    """Games of a minute of processor time, and the forgetful parties that are found."""
    world = World()
    try:
        began = time.process_time()
        played = list(results(world, range(GAMES)))
        spent = time.process_time() - began
        mutants = [(role, verb) for role, verbs in FORGOTTEN.items() for verb in verbs]
        found = [mutant for mutant in mutants if is_found(world, *mutant)]
    finally:
        world.close()
    wrong = sum(bool(result.wrong) for result in played)
    return {
        "games": Figure(GAMES / spent * 60, "in a minute of one core: real parties, real contracts, real training"),
        "games_wrong": Figure(wrong, f"of {GAMES}"),
        "mutants_found": Figure(len(found) / len(mutants), f"of {len(mutants)} decisions that are forgotten"),
    }


def results(world: World, seeds: Iterable[int]) -> Iterable[Result]:
    """The games of some seeds."""
    return (Game(world, seed).play() for seed in seeds)


def forgetting(role: str, verb: str) -> Callable[[Character], Decide | None]:
    """Honest parties of a role that never do something."""
    return partial(_decide, role, verb)


def is_found(world: World, role: str, verb: str, tries: int = TRIES) -> bool:
    """Whether some game shows that a role forgets something."""
    return any(Game(world, seed, forgetting(role, verb), BLOCKS).play().wrong for seed in range(tries))


def _decide(role: str, verb: str, character: Character) -> Decide | None:
    is_meant = character.is_honest and character.name.endswith(role)
    return without(character.decide, verb) if is_meant else None
