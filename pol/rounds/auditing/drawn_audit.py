"""An audit of chosen or drawn claims of a training in rounds: signatures, rosters and sources, then replays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pol.claims.segment_draw import draw
from pol.errors import OperationalError, PolError
from pol.execution.cpu import CpuExecutor
from pol.execution.executor import ExecutorFactory
from pol.rounds.auditing.claim_replay import findings_by_replay
from pol.rounds.auditing.round_audit import Finding, Lie, findings_by_roots
from pol.rounds.log.log_entries import ClaimEntry
from pol.rounds.log.logged_rounds import LoggedRounds, read_rounds
from pol.rounds.log.rounds_log import HEAD, load_head, require_whole
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.plan.source_rules import ClaimPlace
from pol.training.storage.store import Store


@dataclass(frozen=True)
class RoundsAudit:
    """What an audit has looked at, and what it has found."""

    rounds: LoggedRounds
    """What was read of the log."""
    claims: tuple[ClaimEntry, ...]
    """Those that were checked by their roots and replayed."""
    findings: tuple[Finding, ...]

    @property
    def plan(self) -> RoundsPlan:
        """The plan of the training."""
        return self.rounds.plan

    @property
    def lies(self) -> tuple[Finding, ...]:
        """Findings that somebody is to blame for."""
        return tuple(finding for finding in self.findings if finding.lie is not Lie.WITHHELD)

    @property
    def outcome(self) -> str:
        """``rejected`` if there is a lie, ``inconclusive`` if something is withheld, else ``accepted``."""
        if self.lies:
            return "rejected"
        return "inconclusive" if self.findings else "accepted"


def open_rounds(store: Store, first: int = 0, last: int | None = None) -> LoggedRounds:
    """The log of a store, or of ``store`` in it; the whole log is checked against its signed root.

    Raises:
        ProtocolError: plan, head or a page is malformed, or not signed by the coordinator.
        OperationalError: there is no log, or the store failed.
    """
    if not store.holds(HEAD):
        inner = Store(f"{store.url.rstrip('/')}/store")
        if not inner.holds(HEAD):
            raise OperationalError(f"there is no training in rounds at {store.url}: name a store with {HEAD}")
        store = inner
    plan, head = load_head(store)
    if first == 0 and last is None:
        require_whole(store, head)
    return read_rounds(store, plan, head, first, last)


def claims_in(rounds: LoggedRounds, round_: int, worker: str) -> list[ClaimEntry]:
    """The claims of a worker, by its name or its seat, in a round.

    Raises:
        OperationalError: there is no such round, or no such worker in it.
    """
    if not rounds.rosters.get(round_):
        known = ", ".join(str(number) for number in sorted(rounds.rosters)) or "none"
        raise OperationalError(f"the log has no round {round_}: it has {known} (of {rounds.plan.rounds} in the plan)")
    members = [member for roster in rounds.rosters[round_] for member in roster.members]
    names = {member.worker for member in members if worker.lower() in (member.worker, str(member.seat))}
    found = [e for e in rounds.claims.values() if e.claim.round == round_ and e.worker in names]
    if not names:
        # A worker that keeps its seat is in every roster of the round.
        there = ", ".join(dict.fromkeys(f"{member.seat} ({member.worker})" for member in members))
        raise OperationalError(f"round {round_} has no worker {worker}: name a seat or a key of {there}")
    if not found:
        raise OperationalError(f"{worker} has signed no claim in round {round_}: there is nothing to replay")
    return sorted(found, key=lambda entry: entry.claim.place)


def drawn_claims(entries: Sequence[ClaimEntry], count: int, seed: bytes) -> list[ClaimEntry]:
    """``count`` claims that a seed of 32 bytes draws (docs/spec/verdict.md, "Draw"), in the order drawn.

    Raises:
        OperationalError: there are fewer claims.
    """
    if count > len(entries):
        raise OperationalError(f"can't draw {count} of {len(entries)} claims: draw fewer")
    return [entries[number] for number in draw(seed, len(entries), count, most=len(entries))]


def audit_claims(
    rounds: LoggedRounds,
    claims: Sequence[ClaimEntry],
    *,
    is_all_roots: bool = False,
    executors: ExecutorFactory = CpuExecutor,
    advance: Callable[[int, int], None] = lambda done, total: None,
) -> RoundsAudit:
    """Check claims by their roots, and replay those that roots don't refute.

    With ``is_all_roots``, roots of all claims and rosters are checked. ``advance(done, total)`` tells of replays.
    """
    chosen = {entry.claim.digest for entry in claims}
    by_roots = [f for f in findings_by_roots(rounds) if is_all_roots or f.claim in chosen]
    refuted, by_replay = {finding.claim for finding in by_roots}, list[Finding]()
    for done, entry in enumerate(claims, 1):
        if entry.claim.digest not in refuted:
            # A false claim that is withheld is found by each that follows from it.
            by_replay += [one for one in findings_by_replay(rounds, [entry], executors) if one not in by_replay]
        advance(done, len(claims))
    return RoundsAudit(rounds, tuple(claims), (*by_roots, *by_replay))


def audit(
    store: Store,
    worker: str | None = None,
    round_: int | None = None,
    *,
    draws: int | None = None,
    seed: bytes = b"",
    is_all_roots: bool = False,
    executors: ExecutorFactory = CpuExecutor,
    advance: Callable[[int, int], None] = lambda done, total: None,
) -> RoundsAudit:
    """Audit a training in rounds: the claims of a worker (name or seat) in a round, or drawn ones, or all of them.

    ``draws`` claims are drawn by ``seed`` (32 bytes) out of those that worker and round leave. Without worker, round
    and draws, all claims are replayed and all roots are checked; with ``is_all_roots`` alone, only the roots are.

    Raises:
        ProtocolError: the log is malformed.
        OperationalError: there is no log, no such round, worker or number of claims in it, or the store failed.
    """
    rounds = open_rounds(store) if round_ is None or is_all_roots else open_rounds(store, max(0, round_ - 1), round_)
    claims = _chosen(rounds, worker, round_)
    if draws is not None:
        claims = drawn_claims([entry for entry in claims if _has_place(rounds, entry)], draws, seed)
    elif is_all_roots and worker is None and round_ is None:
        claims = []
    looks_at_all = is_all_roots or (worker is None and round_ is None and draws is None)
    found = audit_claims(rounds, claims, is_all_roots=looks_at_all, executors=executors, advance=advance)
    if rounds.is_whole or found.outcome != "inconclusive":
        return found
    # A source may be of a round long past, of which this part of the log has nothing.
    return audit_claims(open_rounds(store), claims, executors=executors, advance=advance)


def _has_place(rounds: LoggedRounds, entry: ClaimEntry) -> bool:
    """Whether a claim is the first one of a member of its round for a place of the plan.

    Roots show the lies of others, and anybody may have made any number of them: a draw among them would find nothing.
    """
    claim, phases = entry.claim, rounds.plan.phases
    if claim.round >= rounds.plan.rounds or claim.phase >= len(phases) or claim.part >= phases[claim.phase].parts:
        return False
    members = (member for roster in rounds.rosters.get(claim.round, ()) for member in roster.members)
    is_first = rounds.places[ClaimPlace(entry.worker, *claim.place)] == entry
    return is_first and any(member.worker == entry.worker for member in members)


def _chosen(rounds: LoggedRounds, worker: str | None, round_: int | None) -> list[ClaimEntry]:
    numbers = sorted(rounds.rosters) if round_ is None else [round_]
    if worker is None:
        claims = [entry for entry in rounds.claims.values() if entry.claim.round in numbers]
        if not claims:
            what = "no claims yet" if round_ is None else f"no claims of round {round_}"
            raise OperationalError(f"the log has {what}: it has rosters of the rounds {sorted(rounds.rosters)}")
        return claims
    claims = [entry for number in numbers for entry in _claims_if_any(rounds, number, worker, round_ is not None)]
    if not claims:
        raise OperationalError(f"the log has no claim of worker {worker}: name a seat or a key of its rosters")
    return claims


def _claims_if_any(rounds: LoggedRounds, round_: int, worker: str, is_needed: bool) -> list[ClaimEntry]:
    try:
        return claims_in(rounds, round_, worker)
    except PolError:
        if is_needed:
            raise
        return []
