"""Exits of a task whose beacon is silent (docs/spec/market.md, "Exits")."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from pol.chain.account.wallet import Reverted
from pol.chain.beacon.beacon_contract import PATIENCE
from pol.chain.desks.proof_registry import ProofRegistry
from pol.chain.desks.seats import Seats
from pol.chain.desks.task_registry import Status
from pol.chain.desks.verdicts import Verdicts
from pol.errors import OperationalError
from pol.roles.party.role import PublicCall, Role
from pol.roles.party.task_reader import TaskReader


@dataclass(frozen=True)
class BeaconWait:
    """A wait for one beacon round; times in seconds of the chain."""

    number: int
    fixed_at: int
    until: int
    """Last second before the task may be abandoned."""
    replace: Callable[[Role], object] | None
    """None for the round of a duty: a second round would be a second draw."""


def beacon_exit(reader: TaskReader, task_id: bytes, status: Status) -> PublicCall | None:
    """The call that ends a long wait for a beacon round; None if there is no such wait.

    Every call first tries to bring the round.
    """
    now = reader.connection.now()
    for wait in _waits(reader, task_id, status):
        rounds = [wait.number]
        if now > wait.until and not reader.market.objections.objected(task_id).open:
            why = f"the beacon hasn't given round {wait.number} in the longest time allowed: stakes and escrow go back"
            return _call(task_id, "abandon the task", why, rounds, partial(_abandon, task_id))
        fresh = wait.until == wait.fixed_at + 2 * PATIENCE
        if wait.replace is not None and fresh and now > wait.fixed_at + PATIENCE:
            why = f"the beacon hasn't given round {wait.number} for a week"
            return _call(task_id, "replace the round", why, rounds, wait.replace)
    return None


def duty_extension(reader: TaskReader, task_id: bytes, deadline: int) -> PublicCall | None:
    """The call that extends a verifier's deadline while the beacon rounds of its duty are missing."""
    missing = [number for number in rounds_of_duty(reader, task_id) if not reader.beacon.recorded(number)]
    window = reader.market.registry.terms(task_id).verification_window
    if not missing or reader.connection.now() + window // 2 <= deadline:
        return None
    why = f"the beacon hasn't given round {missing[0]}, and the verifier's time runs"
    return _call(task_id, "extend the verifier's time", why, missing, partial(_extend, task_id))


def rounds_of_duty(reader: TaskReader, task_id: bytes) -> list[int]:
    """The beacon rounds that fix the duty of the seated verifier: forced error, and drawn segments."""
    return [reader.market.seats.seating(task_id).duty_round, reader.market.proofs.proof(task_id).round]


def _waits(reader: TaskReader, task_id: bytes, status: Status) -> Iterator[BeaconWait]:
    market = reader.market
    if status in (Status.PROFILING, Status.COMMITTED, Status.VERIFYING):
        until, seating = market.seats.patient_until(task_id), market.seats.seating(task_id)
        if until and seating.is_held:
            yield BeaconWait(seating.duty_round, seating.duty_fixed_at, until, None)
        elif until:
            replace = partial(_replace, market.seats, task_id)
            yield BeaconWait(seating.round, seating.fixed_at, until, replace)
    if status in (Status.COMMITTED, Status.VERIFYING):
        until, proof = market.proofs.patient_until(task_id), market.proofs.proof(task_id)
        if until:
            yield BeaconWait(proof.round, proof.committed, until, partial(_replace, market.proofs, task_id))
    if status is Status.WATCHED:
        until, verdict = market.verdicts.patient_until(task_id), market.verdicts.verdict(task_id)
        if until:
            replace = partial(_replace, market.verdicts, task_id)
            yield BeaconWait(verdict.watch_round, verdict.watch_fixed_at, until, replace)


def _replace(desk: Seats | ProofRegistry | Verdicts, task_id: bytes, role: Role) -> None:
    desk.replace_round(role.wallet, task_id)


def _abandon(task_id: bytes, role: Role) -> None:
    role.market.settlement.abandon(role.wallet, task_id)


def _extend(task_id: bytes, role: Role) -> None:
    role.market.settlement.extend(role.wallet, task_id)


def _call(task_id: bytes, verb: str, why: str, rounds: Sequence[int], call: Callable[[Role], object]) -> PublicCall:
    def make(role: Role) -> None:
        for number in rounds:
            with suppress(OperationalError, Reverted):
                role.bring(number)
        if not all(role.beacon.recorded(number) for number in rounds):
            call(role)

    return PublicCall(task_id, verb, why, make)
