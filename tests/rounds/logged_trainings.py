"""Trainings of several processes, read back from their logs, and whom an audit accuses."""

from collections.abc import Callable, Iterable
from pathlib import Path

from pol.decentralised.processes.local_processes import Author, Round, local_key, run_workers
from pol.execution.cpu import CpuExecutor
from pol.rounds.auditing.claim_replay import findings_by_replay
from pol.rounds.auditing.round_audit import Finding, Lie, findings_by_roots
from pol.rounds.log.log_entries import ClaimEntry
from pol.rounds.log.logged_rounds import LoggedRounds, read_rounds
from pol.rounds.log.rounds_log import load_head, require_whole
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.roster import Roster
from pol.training.storage.store import Store

Convict = Callable[[LoggedRounds, bytes], None]
"""Takes a claim to the court; AssertionError: its author wins."""


def read_whole(folder: Path) -> LoggedRounds:
    """All of the log in a folder's store."""
    store = Store(f"file://{folder}/store")
    plan, head = load_head(store)
    require_whole(store, head)
    return read_rounds(store, plan, head)


def trained_by_workers(
    folder: Path,
    plan_of: Callable[..., RoundsPlan],
    options: object,
    do_round: Round,
    workers: int,
    cheats: dict[int, Author] | None = None,
    wired: Callable[[Roster], Roster] | None = None,
) -> LoggedRounds:
    """A training of a synchronous group in processes, and its log."""
    plan = plan_of(Store(f"file://{folder}/store"), options, local_key(-1).name, bytes(32))
    run_workers(folder, plan, do_round, workers, cheats, wired)
    return read_whole(folder)


def by_replay(rounds: LoggedRounds, entries: Iterable[ClaimEntry] | None = None) -> list[Finding]:
    """What a replay of all claims finds, or of some."""
    return list(findings_by_replay(rounds, rounds.claims.values() if entries is None else entries, CpuExecutor))


def require_honest(rounds: LoggedRounds) -> None:
    """Nobody can be accused of anything."""
    assert not list(findings_by_roots(rounds))
    assert not by_replay(rounds)


def entries_of(rounds: LoggedRounds, phase: str, round_: int) -> list[ClaimEntry]:
    """All claims of a phase in a round."""
    entries = [entry for entry in rounds.claims.values() if entry.claim.round == round_]
    return [entry for entry in entries if rounds.plan.phases[entry.claim.phase].name == phase]


def ends_of(rounds: LoggedRounds, phase: str, round_: int) -> list[bytes]:
    """Their ends."""
    return [entry.claim.end for entry in entries_of(rounds, phase, round_)]


def told(found: Iterable[Finding]) -> list[tuple[Lie, str, int, str]]:
    """Of each finding the lie, the liar, the round and the phase; sorted."""
    return sorted(((one.lie, one.worker, one.round, one.phase) for one in found), key=str)


def executions(*lies: tuple[int, int, str]) -> list[tuple[Lie, str, int, str]]:
    """The same of false executions, by the worker's number, the round and the phase."""
    return sorted(((Lie.EXECUTION, local_key(worker).name, *place) for worker, *place in lies), key=str)
