"""The rules for terms (contracts/market/TermsRules.sol), checked before sending, with messages that name the bound.

The contract's error names the field only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from pol.chain.desks.task_registry import Terms
from pol.errors import ProtocolError
from pol.graph.step_program import MAX_STEPS
from pol.incentives.payouts import (
    DEMANDER_OF_SOLVER_STAKE,
    MAX_AMOUNT,
    SAYER_OF_BOND,
    SUBMITTER_OF_SOLVER_STAKE,
    WHOLE,
    WORDS,
    look_fee,
    share_down,
    unserved_bond,
)

MIN_WINDOW, MAX_WINDOW, MAX_TRAINING_WINDOW = 60, 90 * 24 * 3600, 365 * 24 * 3600
MIN_CLOCK, MAX_CLOCK = 600, 14 * 24 * 3600
MAX_DRAWS, MAX_PROFILED, MAX_LOOKS, MAX_RERUNS_POSTED, MAX_RERUNS = 32, 16, 64, 512, 1 << 16
MAX_MARGIN = (1 << 16) - 1
MIN_PROMISE = 60
"""Shortest training that a bid can promise; seconds."""
WINDOWS = ("bid_window", "seat_window", "verification_window", "watch_window", "disclosure_window", "challenge_window")


def require(terms: Terms, shares: int, tax: int, commit_window: int) -> None:
    """Check terms as the registry does.

    Args:
        terms: of the task to submit.
        shares: watch rewards of a task at most, of the deployment.
        tax: of a task with these terms; units of the asset.
        commit_window: last seconds of the watch in which commitments are accepted, of the deployment.

    Raises:
        ProtocolError: they break rules; the message names every broken bound.
    """
    broken = list(_broken(terms, shares, tax))
    if terms.watch_window <= commit_window:
        broken.append(
            f"watch_window is {terms.watch_window} s: more than {commit_window} s, the window of commitments, is needed"
        )
    if broken:
        raise ProtocolError("no market takes these terms: " + "; ".join(broken) + ". Nothing was sent")


def _broken(terms: Terms, shares: int, tax: int) -> Iterator[str]:
    for field in ("program", "constants", "initial_state", "document"):
        if not any(getattr(terms, field)):
            yield f"{field} is zero"
    yield from _shape(terms)
    yield from _profile(terms)
    yield from _amounts(terms, shares, tax)
    for field in WINDOWS:
        yield from _between(terms, field, MIN_WINDOW, MAX_WINDOW, " s")
    yield from _between(terms, "training_window", MIN_WINDOW, MAX_TRAINING_WINDOW, " s")
    yield from _between(terms, "clock", MIN_CLOCK, MAX_CLOCK, " s")


def _shape(terms: Terms) -> Iterator[str]:
    if terms.interval < 1 or terms.steps < 1 or terms.steps % max(terms.interval, 1):
        yield f"steps is {terms.steps}: a positive multiple of the interval {terms.interval} is needed"
        return
    if terms.steps > MAX_STEPS:
        yield f"steps is {terms.steps}: {MAX_STEPS} at most"
    segments = terms.steps // terms.interval
    if segments >= (1 << 32) - 1:
        yield f"steps / interval is {segments}: less than {(1 << 32) - 1} is needed"
    yield from _between(terms, "draws", 1, min(segments, MAX_DRAWS))
    if not terms.is_exact:
        yield from _between(terms, "profiled", 1, min(segments, MAX_PROFILED))


def _profile(terms: Terms) -> Iterator[str]:
    if terms.is_exact:
        for field in ("rerun_count", "profiled", "looks", "look_margin", "profile_window"):
            if getattr(terms, field):
                yield f"{field} is {getattr(terms, field)}: exact mode (margin 0) has no profile, so 0 is needed"
        if any(terms.reruns):
            yield "reruns isn't zero: exact mode (margin 0) has none"
        return
    if not any(terms.reruns):
        yield "reruns is zero: a profile names its reruns"
    yield from _between(terms, "margin", 1, MAX_MARGIN)
    yield from _between(terms, "rerun_count", 1, MAX_RERUNS)
    yield from _between(terms, "looks", 0, min(MAX_LOOKS, MAX_RERUNS_POSTED // max(terms.draws, 1)))
    if (terms.looks == 0) != (terms.look_margin == 0) or terms.look_margin > MAX_MARGIN:
        yield f"look_margin is {terms.look_margin} beside {terms.looks} looks: both are zero, or neither"
    yield from _between(terms, "profile_window", MIN_WINDOW, MAX_WINDOW, " s")


def _amounts(terms: Terms, shares: int, tax: int) -> Iterator[str]:
    for field in ("work_units", "unit_price", "verifier_stake", "solver_stake"):
        yield from _between(terms, field, 1, MAX_AMOUNT)
    yield from _between(terms, "verifier_fee", 0, MAX_AMOUNT)
    if terms.maximum_price > MAX_AMOUNT:
        yield f"the price is {terms.maximum_price}: at most {MAX_AMOUNT} is taken"
    if terms.second_price * MIN_PROMISE > terms.maximum_price:
        yield f"second_price is {terms.second_price}: at most {terms.maximum_price // MIN_PROMISE} lets any bid win"
    yield from _between(terms, "bond", -(-terms.verifier_stake // 16), terms.verifier_stake // 2)
    looked = terms.draws * look_fee(terms.verifier_fee, terms.looks, terms.draws) if terms.draws else 0
    least = looked + max(1, -(-terms.verifier_fee * WHOLE // SUBMITTER_OF_SOLVER_STAKE))
    if terms.solver_stake < least:
        yield (
            f"solver_stake is {terms.solver_stake}: at least {least}, so that half of what second looks leave of it "
            f"({looked} at most) covers the verifier's fee"
        )
    yield from _between(terms, "jackpot", shares, min(MAX_AMOUNT, terms.verifier_stake // 2))
    kept = max(0, terms.solver_stake - looked)
    shared = kept * SUBMITTER_OF_SOLVER_STAKE // WHOLE + kept * DEMANDER_OF_SOLVER_STAKE // WHOLE
    if kept - shared < tax:
        yield (
            f"solver_stake is {terms.solver_stake}: what second looks ({looked} at most), a half and a sixteenth leave "
            f"of it has to cover the tax, {tax}"
        )
    words = WORDS * share_down(
        unserved_bond(terms.maximum_price, terms.solver_stake, terms.verifier_stake), SAYER_OF_BOND
    )
    if words + tax > terms.solver_stake:
        yield (
            f"solver_stake is {terms.solver_stake}: it has to pay the shares of {WORDS} verifiers that aren't served, "
            f"{words}, and the tax, {tax}"
        )


def _between(terms: Terms, field: str, low: int, high: int, unit: str = "") -> Iterator[str]:
    assert field in {f.name for f in fields(terms)}
    value = getattr(terms, field)
    if not low <= value <= high:
        yield f"{field} is {value}{unit}: {low} to {high}{unit} is taken"
