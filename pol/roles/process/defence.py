"""Whether a party could win a dispute about a task on this machine, before it stakes anything on it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from pol.chain.court.dispute_game import DisputeGame
from pol.chain.desks.task_registry import Status, Terms
from pol.chain.node.networks import outage_of
from pol.dispute.dispute_needs import DisputeNeeds, DisputeSeconds, dispute_seconds
from pol.errors import ProtocolError
from pol.execution.available_memory import available_memory
from pol.graph.work_estimate import step_work
from pol.roles.party.machine import time_work
from pol.roles.party.role import Role
from pol.roles.party.task_reader import TaskReader
from pol.roles.process.obligations import MARGIN, begun_tasks, has_bid
from pol.roles.process.schedule import Job, require_schedule
from pol.roles.process.work_time import RESERVE, SLOWER, move_steps, require_time, require_time_to_answer, seconds_for
from pol.training.task.task_source import TaskStep


def require_defensible(
    reader: TaskReader, task_id: bytes, terms: Terms, game: DisputeGame, steps: int | None = None
) -> None:
    """Check that a party on this machine can afford, hold and make in time all moves of a dispute in ``game``.

    ``steps`` are executed before the first move; by default those of the segment.
    """
    reader.policy.require_game(game, terms.clock)
    task, times = reader.task(task_id), reader.times
    needs = times.needs(task_id, task, game.bits)
    reader.policy.require_gas(needs, reader.connection.block_gas_limit())
    require_memory(needs, available_memory())
    executed = terms.interval if steps is None else steps
    clock = terms.clock - reader.policy.outage
    most = clock / RESERVE
    least = seconds_for(reader, task_id, executed, most)
    if least > most:
        raise ProtocolError(_too_long("clock", clock, least, f", and has to fit {RESERVE} times"))
    taken = dispute_seconds(needs, times.speeds(times.pace(task_id, task)), executed)
    require_moves_in_time(taken, clock, game.graces)


def require_moves_in_time(taken: DisputeSeconds, clock: int, graces: tuple[int, int]) -> None:
    """Check that all moves of one side fit into its clock, and the longest ones into the graces."""
    if taken.all > clock / RESERVE:
        raise ProtocolError(_too_long("clock", clock, taken.all, f", and has to fit {RESERVE} times"))
    for field, grace, needed in zip(("replayGrace", "moveGrace"), graces, (taken.at_trace, taken.later), strict=True):
        if needed > grace:
            raise ProtocolError(_too_long(field, grace, needed, ""))


def reason_not_to_defend(role: Role, step: TaskStep, terms: Terms) -> str:
    """Why a party with this machine and policy would leave a task alone that isn't published yet; empty if none.

    On a rollup the party asks for terms that survive a halt of the chain. One step is timed, unless its work units
    alone are too many.
    """
    market = role.market
    game = market.objection_game if terms.is_exact else market.game
    needs, pace = DisputeNeeds(step.program, terms.interval, game.bits), step_work(step.program) / role.times.fastest
    policy = replace(role.policy, outage=max(role.policy.outage, outage_of(role.connection.chain_id)))
    clock = terms.clock - policy.outage
    try:
        policy.require(terms)
        policy.require_gas(needs, role.connection.block_gas_limit())
        require_memory(needs, available_memory())
        if terms.interval * pace <= clock / RESERVE:
            executor = role.times.executors(step.program, step.constants)
            pace = time_work(lambda: executor.watch(step.state, 0, lambda number, output: None), role.times.timer)
        require_moves_in_time(dispute_seconds(needs, role.times.speeds(pace)), clock, game.graces)
    except ProtocolError as error:
        return str(error)
    return ""


def require_seat(role: Role, task_id: bytes, terms: Terms, verifies: bool) -> float:
    """Check that this party can do the duty of a seat and defend it. Returns the seconds that the duty takes."""
    needed = require_time(role, task_id, terms, verifies)
    require_schedule(role, task_id, Job(MARGIN * needed, window=terms.verification_window))
    game = role.market.game if verifies else role.market.profile_game
    require_defensible(role, task_id, terms, game, move_steps(terms, verifies))
    require_time_beside_others(role, task_id, terms, verifies)
    return needed


def require_log(role: Role, task_id: bytes, terms: Terms) -> None:
    """Check that this party can defend a log of its own."""
    require_time_to_answer(role, task_id, terms)
    game = role.market.objection_game if terms.is_exact else role.market.counterclaim_game
    require_defensible(role, task_id, terms, game, move_steps(terms, verifies=True))
    require_time_beside_others(role, task_id, terms, verifies=True)


def require_time_beside_others(role: Role, task_id: bytes, terms: Terms, verifies: bool) -> None:
    """Check that all moves of this party fit into the clocks, even if all that it has staked on is disputed at once."""
    known = role.connection.once(("disputes", role), lambda: _disputes(role))
    others = [each for other, each in known.items() if other != task_id]
    seconds = _seconds_of_moves(role, task_id, terms, verifies) + sum(needed for needed, _ in others)
    clock = min([terms.clock, *(own for _, own in others)])
    if seconds > (clock - role.policy.outage) / RESERVE:
        raise ProtocolError(
            f"{len(others)} other tasks of this party may be disputed at the same time, and the moves about all of "
            f"them and this one take this machine about {seconds:.0f} s, which have to fit {RESERVE} times into a "
            f"clock of {clock} s, beside {role.policy.outage} s of a halt of the chain: leave the task alone until "
            "some are closed, or use another key on another machine"
        )


def _disputes(role: Role) -> dict[bytes, tuple[float, int]]:
    """For each task in which this party has a stake: seconds of its moves in a dispute, and the clock."""
    found, market, own = dict[bytes, tuple[float, int]](), role.market, role.wallet.address
    for task_id in begun_tasks(role):
        task, terms = market.registry.task(task_id), market.registry.terms(task_id)
        if has_bid(role, task_id) if task.status is Status.BIDDING else own in {task.solver, task.holder}:
            # What can't be executed here at all is left out: nothing that is left undone now would help it.
            with suppress(ProtocolError):
                verifies = task.status is not Status.PROFILING
                found[task_id] = _seconds_of_moves(role, task_id, terms, verifies), terms.clock
    return found


def _seconds_of_moves(role: Role, task_id: bytes, terms: Terms, verifies: bool) -> float:
    """Seconds of all moves of one side; of a task that is far too slow only a lower bound. Worked out once."""
    key = task_id, move_steps(terms, verifies)
    if key not in role.times.sides:
        least = seconds_for(role, *key, terms.clock)
        if least > terms.clock:
            return least
        task, times = role.task(task_id), role.times
        needs = times.needs(task_id, task, role.market.game.bits)
        times.sides[key] = dispute_seconds(needs, times.speeds(times.pace(task_id, task)), key[1]).all
    return role.times.sides[key]


def require_memory(needs: DisputeNeeds, available: int | None) -> None:
    """Check that this machine holds what a dispute needs; nothing is checked where its free memory is unknown.

    The task is loaded: what is free is so besides its data.
    """
    needed = needs.memory - needs.constant_bytes
    if available is not None and needed > available:
        raise ProtocolError(
            f"a dispute about this task needs {needed} bytes of memory besides its data, and {available} are free "
            "here: leave the task alone, or give this machine more memory"
        )


def _too_long(field: str, window: int, needed: float, rest: str) -> str:
    return f"the work for the {field} of {window} s takes this machine about {needed:.0f} s{rest}: {SLOWER}"
