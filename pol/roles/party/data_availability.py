"""Data on demand: asking on chain for what can't be had elsewhere, and answering (docs/spec/market.md)."""

from __future__ import annotations

from collections.abc import Sequence

from pol.chain.account.wallet import Reverted
from pol.chain.desks.data_demands import DataDemand
from pol.chain.desks.task_registry import Status
from pol.commitments.checkpoint_log import CheckpointLog
from pol.commitments.state_leaf import prove
from pol.errors import OperationalError, PolError, ProtocolError
from pol.roles.party.role import Role
from pol.training.task.learning_proof import load_checkpoint
from pol.training.task.task_document import LoadedTask

PROBES = 4
"""Entries of the log that are read before a seat is claimed while nothing is drawn yet."""


def missing(role: Role, task_id: bytes) -> list[int]:
    """Entries of the log at the ends of the drawn segments whose states this party can't get, or can't read.

    Raises:
        Reverted: nothing is drawn yet.
        OperationalError: the node failed, or the task itself isn't to be had.
    """
    segments = role.market.proofs.drawn_segments(task_id)
    return _unreadable(role, task_id, sorted({entry for segment in segments for entry in (segment, segment + 1)}))


def unavailable(role: Role, task_id: bytes) -> list[int]:
    """Entries whose states a verdict may need and that can't be had: whoever sits without them can only default.

    The ends of the drawn segments, and before the draw PROBES entries that nobody foresees.

    Raises:
        OperationalError: the node failed, or the task itself isn't to be had.
    """
    if task_id in role.probed:
        return []
    try:
        lost = missing(role, task_id)
    except Reverted:
        lost = _unreadable(role, task_id, _probes(role, task_id))
    if not lost:
        role.probed.add(task_id)
    return lost


def _probes(role: Role, task_id: bytes) -> list[int]:
    segments = role.task(task_id).document.segments
    drawn = [role.secret("probe", task_id, number.to_bytes(4, "big")) for number in range(PROBES)]
    return sorted({int.from_bytes(secret, "big") % (segments + 1) for secret in drawn})


def _unreadable(role: Role, task_id: bytes, entries: Sequence[int]) -> list[int]:
    """Those of the entries whose states this party can't get, or can't read."""
    task = role.task(task_id)
    try:
        checkpoints = role.proof(task_id).checkpoints
    except (OperationalError, ProtocolError):
        return list(entries)
    found = []
    for entry in entries:
        if not any(checkpoints[entry].state_root):
            continue  # Zero is no state: it is rejected without a look.
        try:
            load_checkpoint(role.store, task, checkpoints[entry])
        except (OperationalError, ProtocolError):
            found.append(entry)
    return found


def demand_missing(role: Role, task_id: bytes) -> list[DataDemand]:
    """Demand one leaf, drawn by its bytes, of each missing state that this party doesn't wait for yet.

    Nobody knows the leaf before. Of a seated verifier the first demand moves its deadline by the window for answers.

    Raises:
        Reverted: nothing is drawn, it is too late, or the vault holds too little of this party's.
        OperationalError: the node failed.
    """
    waits = {d.entry for d in _current(role, task_id) if d.demander == role.wallet.address}
    return [demand(role, task_id, entry) for entry in missing(role, task_id) if entry not in waits]


def demand(role: Role, task_id: bytes, entry: int) -> DataDemand:
    """Demand one leaf of a state, drawn by its bytes: nobody knows it before.

    Raises:
        Reverted: it is too late, or the vault holds too little of this party's.
        OperationalError: the node failed.
    """
    made = role.market.demands.demand(role.wallet, task_id, entry, *_place(role, task_id, entry))
    role.demanded.add(task_id)
    return made


def answer(role: Role, task_id: bytes) -> list[DataDemand]:
    """Answer every open demand for a task's log, the most urgent one first; those that were answered.

    The solver has to call it more often than every half of the window, from its commitment to the settlement; with a
    copy of the states anybody may answer in the second half.

    Raises:
        ProtocolError: the store holds something else than what was committed.
        OperationalError: node or store failed. Either is raised after all other demands have had their turn.
    """
    answered, failures = list[DataDemand](), list[PolError]()
    for demand in _current(role, task_id):
        if role.connection.now() > demand.deadline:
            continue
        try:
            _answer(role, role.task(task_id), demand)
            answered.append(demand)
        except PolError as error:
            # Somebody else may have answered it in the meantime.
            if not isinstance(error, Reverted) or error.error != "NoSuchDemand":
                failures.append(error)
    if failures:
        raise failures[0]
    return answered


def expire(role: Role, task_id: bytes) -> list[DataDemand]:
    """End the demands that are over: the solver loses its stake for the first, and bonds of all others come back.

    Raises:
        Reverted: a verdict is on its way, and is decided before.
        OperationalError: the node failed.
    """
    ended = []
    for demand in role.market.demands.demands(task_id):
        task = role.market.registry.task(task_id)
        moot = task.began != demand.began or task.status is Status.CLOSED
        if moot or role.connection.now() > demand.deadline:
            role.market.demands.expire(role.wallet, demand)
            ended.append(demand)
    return ended


def reclaim(role: Role, task_id: bytes) -> list[DataDemand]:
    """Take back the bonds of this party's demands that decide nothing any more.

    Raises:
        OperationalError: the node failed.
    """
    task, own = role.market.registry.task(task_id), role.wallet.address
    moot = [
        demand
        for demand in role.market.demands.demands(task_id)
        if demand.demander == own and (demand.began != task.began or task.status is Status.CLOSED)
    ]
    for demand in moot:
        role.market.demands.expire(role.wallet, demand)
    return moot


def _current(role: Role, task_id: bytes) -> Sequence[DataDemand]:
    began = role.market.registry.task(task_id).began
    return [demand for demand in role.market.demands.demands(task_id) if demand.began == began]


def _answer(role: Role, task: LoadedTask, demand: DataDemand) -> None:
    checkpoints = role.proof(demand.task_id).checkpoints
    state = load_checkpoint(role.store, task, checkpoints[demand.entry])
    piece = prove(task.program, state, demand.position, demand.leaf)
    path = CheckpointLog([entry.state_root for entry in checkpoints]).inclusion(demand.entry)
    role.market.demands.answer(role.wallet, demand, piece, path)


def _place(role: Role, task_id: bytes, entry: int) -> tuple[int, int]:
    """A slot and a leaf of it: every leaf is as likely as any other."""
    leaves = [type_.leaves for type_ in role.task(task_id).slot_types]
    time = role.connection.now().to_bytes(8, "big")
    drawn = int.from_bytes(role.secret("demand", task_id, entry.to_bytes(8, "big"), time), "big") % sum(leaves)
    position = 0
    while drawn >= leaves[position]:
        drawn -= leaves[position]
        position += 1
    return position, drawn
