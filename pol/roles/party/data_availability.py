"""Data on demand: demanding on chain what no store gives, and answering demands (docs/spec/market.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from eth_typing import ChecksumAddress

from pol.arithmetic.primitives import Words
from pol.chain.account.wallet import Reverted
from pol.chain.desks.data_demands import DataDemand
from pol.chain.desks.task_registry import MarketTask, Status
from pol.commitments.checkpoint_log import CheckpointLog
from pol.commitments.state_leaf import prove
from pol.errors import OperationalError, PolError, ProtocolError
from pol.roles.party.decisions import Action, Mode
from pol.roles.party.policy import MINUTE
from pol.roles.party.role import PublicCall, Role
from pol.roles.party.task_reader import TaskReader
from pol.training.task.learning_proof import load_checkpoint

UNDECIDED = frozenset({Status.COMMITTED, Status.VERIFYING})
"""No verdict is on its way, so an expired demand removes the solver at once."""


def missing_states(role: Role, task_id: bytes) -> Iterator[int]:
    """Log entries whose states a verdict needs and this party can't read: ends of drawn segments, and the model.

    Each is given as soon as it is found: a server that never answers takes its time for every entry.

    Raises:
        Reverted: nothing is drawn yet.
    """
    segments = role.market.proofs.drawn_segments(task_id)
    last = role.task(task_id).document.segments
    return lost_states(role, task_id, sorted({last, *segments, *(segment + 1 for segment in segments)}))


def lost_states(role: Role, task_id: bytes, entries: Sequence[int]) -> Iterator[int]:
    """Those of some log entries whose states this party can't read, each as soon as it is found."""
    # The node's failures, and the task's, are no loss of a state.
    task, committed = role.task(task_id), role.committed(task_id)
    try:
        checkpoints = role.published_proof(task_id, *committed).checkpoints
    except (OperationalError, ProtocolError):
        yield from entries
        return
    for entry in entries:
        if not any(checkpoints[entry].state_root):
            continue  # Zero is no state: it is rejected without a look.
        try:
            load_checkpoint(role.store, task, checkpoints[entry])
        except (OperationalError, ProtocolError):
            yield entry


def demand_state(role: Role, task_id: bytes, entry: int) -> DataDemand:
    """Demand one leaf of a state, drawn uniformly over its bytes, so that nobody can foresee it.

    Raises:
        Reverted: it is too late, or too little of this party's money is free in the vault.
    """
    return role.market.demands.demand(role.wallet, task_id, entry, *_random_leaf(role, task_id, entry))


def demanded_entries(role: Role, task_id: bytes, task: MarketTask) -> set[int]:
    """Entries of the present log of which this party has demanded a leaf, so that it demands none of them again."""
    made = (event["demand"] for event in role.market.demands.events("Demanded", taskId=task_id))
    own = role.wallet.address
    return {int(each["entry"]) for each in made if (each["began"], each["demander"]) == (task.began, own)}


def answer_demands(role: Role, task_id: bytes) -> list[DataDemand]:
    """Answer open demands for a task's log for about a minute, the most urgent entries first; returns the answered.

    From commitment to settlement, the solver calls this more often than every half of the answer window. In the second
    half anybody with a copy of the states may answer. The rest is left to the next call: a clock may run meanwhile.
    """
    answered, failures, began = list[DataDemand](), list[PolError](), role.times.timer()
    demands = current_demands(role, task_id, role.market.registry.task(task_id))
    entries = {demand.entry: number for number, demand in reversed(list(enumerate(demands)))}

    @lru_cache(1)  # a flood of demands for a large state would take longer than their window
    def state(entry: int) -> list[Words]:
        return load_checkpoint(role.store, role.task(task_id), role.proof(task_id).checkpoints[entry])

    for demand in sorted(demands, key=lambda each: entries[each.entry]):
        if role.connection.now() > demand.deadline:
            continue
        try:
            _answer(role, demand, state(demand.entry))
            answered.append(demand)
        except PolError as error:
            # Somebody else may have answered it in the meantime.
            if not isinstance(error, Reverted) or error.error != "NoSuchDemand":
                failures.append(error)
        if role.times.timer() - began > MINUTE:
            break
    if failures:
        raise failures[0]
    return answered


def expire_demands(role: Role, task_id: bytes) -> list[DataDemand]:
    """End expired demands, this party's own first: the solver loses its stake for one, and own bonds come back.

    Whose demand it is gets a part of the stake. A stranger's moot ones are left to it: there may be any number.

    Raises:
        Reverted: a verdict is on its way, and is decided before.
    """
    ended, own = list[DataDemand](), role.wallet.address
    for demand in sorted(role.market.demands.demands(task_id), key=lambda each: each.demander != own):
        moot = is_moot(demand, role.market.registry.task(task_id))
        if demand.demander == own if moot else role.connection.now() > demand.deadline:
            role.market.demands.expire(role.wallet, demand)
            ended.append(demand)
    return ended


def reclaim_demand_bonds(role: Role, task_id: bytes) -> list[DataDemand]:
    """Take back the bonds of this party's moot demands."""
    task = role.market.registry.task(task_id)
    moot = [demand for demand in own_demands(role, task_id) if is_moot(demand, task)]
    for demand in moot:
        role.market.demands.expire(role.wallet, demand)
    return moot


def expired_demand(
    reader: TaskReader, task_id: bytes, task: MarketTask, by: ChecksumAddress | None
) -> PublicCall | None:
    """The call that removes a solver for an expired demand, before any verdict; None if no demand has expired.

    The demander has a stake in it: its bond is locked until then.
    """
    if task.status not in UNDECIDED or reader.market.objections.objected(task_id).open:
        return None
    now = reader.connection.now()
    over = [demand for demand in current_demands(reader, task_id, task) if now > demand.deadline]
    if not over:
        return None
    mode = Mode.DEFEND if any(demand.demander == by for demand in over) else Mode.RESOLVE
    why = "the solver hasn't shown what was demanded of it"
    return PublicCall(task_id, "remove the solver", why, lambda role: expire_demands(role, task_id), mode)


def waiting_demands(role: Role, task_id: bytes, task: MarketTask) -> tuple[list[DataDemand], Action | None]:
    """This party's demands that are still open, and the action that takes back the bonds of its moot ones."""
    mine = own_demands(role, task_id)
    waiting = [demand for demand in mine if not is_moot(demand, task)]
    if len(waiting) == len(mine):
        return waiting, None
    why = "the data that it demanded decide nothing any more"
    return waiting, Action(task_id, "end a demand", why, Mode.DEFEND, lambda: reclaim_demand_bonds(role, task_id))


def current_demands(reader: TaskReader, task_id: bytes, task: MarketTask) -> list[DataDemand]:
    """Open demands for the log of the present solver, the most urgent first."""
    return [demand for demand in reader.market.demands.demands(task_id) if demand.began == task.began]


def own_demands(role: Role, task_id: bytes) -> list[DataDemand]:
    """This party's open demands, moot ones included."""
    return [demand for demand in role.market.demands.demands(task_id) if demand.demander == role.wallet.address]


def is_moot(demand: DataDemand, task: MarketTask) -> bool:
    """Whether a demand decides nothing any more: another solver trains, or the task is closed."""
    return demand.began != task.began or task.status is Status.CLOSED


def _answer(role: Role, demand: DataDemand, state: Sequence[Words]) -> None:
    checkpoints = role.proof(demand.task_id).checkpoints
    piece = prove(role.task(demand.task_id).program, state, demand.position, demand.leaf)
    path = CheckpointLog([entry.state_root for entry in checkpoints]).inclusion(demand.entry)
    role.market.demands.answer(role.wallet, demand, piece, path)


def _random_leaf(role: Role, task_id: bytes, entry: int) -> tuple[int, int]:
    """A slot and a leaf of it; all leaves are equally likely."""
    leaves = [type_.leaves for type_ in role.task(task_id).slot_types]
    time = role.connection.now().to_bytes(8, "big")
    drawn = int.from_bytes(role.secret("demand", task_id, entry.to_bytes(8, "big"), time), "big") % sum(leaves)
    position = 0
    while drawn >= leaves[position]:
        drawn -= leaves[position]
        position += 1
    return position, drawn
