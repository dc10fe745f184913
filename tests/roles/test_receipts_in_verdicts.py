"""Receipts of execution on a real node: nobody can write a verdict about an exact training without a replay."""

from dataclasses import replace
from math import inf

import pytest
from all_parties import Solver, Verifier, next_of_verifier, next_of_whistleblower
from role_market import EXACT, OFTEN, Town, awarded, disclosed, done, gain, seated_with_duty, submitted
from test_watching import paid, watching

from lab.benchmarks.market_processes import live
from pol.chain.desks.challenges import ClaimChargeKind
from pol.chain.desks.task_registry import Status, TaskOutcome
from pol.roles.process.party_process import Process
from pol.verification.verdict.verdict import Verdict

MARKET_RULES, JOINED = OFTEN, ()
GUESS = b"\x07" * 32


class Lazy(Verifier):
    """Replays nothing: it copies the solver's log and guesses some roots."""

    guessed: tuple[str, ...] = ()

    def replay(self, task_id: bytes, until: float = inf) -> list[Verdict]:
        """Claims whose guessed parts are wrong; the others are as if somebody had told them."""
        told = super().replay(task_id)
        guesses = dict.fromkeys(self.guessed, GUESS)
        return [replace(each, claim=each.claim and replace(each.claim, **guesses)) for each in told]


def trained(town: Town, verifier: Verifier, forced: bool) -> bytes:
    """An honest exact training whose seat this verifier holds."""
    task_id, _ = submitted(town, EXACT)
    solver = town.join(Solver, "t")
    awarded(solver, task_id)
    solver.train(task_id)
    seated_with_duty(verifier, task_id, forced=forced)
    return task_id


@pytest.mark.parametrize(
    ("guessed", "charged"),
    [
        (("receipt",), ClaimChargeKind.RECEIPT),
        (("before", "receipt"), ClaimChargeKind.BEFORE),
        (("before",), ClaimChargeKind.BEFORE),
        (("replay",), ClaimChargeKind.REPLAY),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, tuple) else value.name,
)
def test_a_guess_costs_the_stake(town: Town, guessed: tuple[str, ...], charged: ClaimChargeKind) -> None:
    watcher, lazy = watching(town), town.join(Lazy, "v")
    lazy.guessed = guessed
    task_id = trained(town, lazy, forced=False)
    lazy.verify(task_id)
    disclosed(lazy, task_id)
    assert [finding.charge.kind for finding in watcher.check(task_id)] == [charged]
    registry, stake = watcher.market.registry, watcher.market.registry.terms(task_id).verifier_stake
    processes = [Process(watcher, next_of_whistleblower), Process(lazy, next_of_verifier)]
    told = live(town.connection, processes, lambda: registry.task(task_id).status is not Status.CONTESTED)
    assert done(told)[0] == "challenge the verdict"
    assert gain(watcher, tickets=1) == stake // 2


def test_who_forgets_everything_stakes_once(town: Town) -> None:
    """Before every turn the process is a new one: of its challenge only the chain knows."""
    lazy = town.join(Lazy, "v")
    lazy.guessed, task_id = ("replay",), trained(town, lazy, forced=False)
    lazy.verify(task_id)
    disclosed(lazy, task_id)
    told = [taken for _ in range(4) for taken in Process(watching(town), next_of_whistleblower).turn()]
    assert done(told).count("challenge the verdict") == 1


def test_a_planted_receipt_shows_only_in_a_replay(town: Town) -> None:
    watcher, verifier = watching(town), town.join(Verifier, "v")
    task_id = trained(town, verifier, forced=True)
    (verdict,) = verifier.verify(task_id)
    verdicts, seating = watcher.market.verdicts, watcher.market.registry.task(task_id).seating
    (posted,) = verdicts.claims(task_id, seating)
    assert verdict.claim is not None
    assert posted == replace(verdict.claim, receipt=verifier.duty(task_id).error_root)
    # The replay is the solver's own end, as in every true claim.
    assert posted.replay == posted.end
    paid(watcher, verifier, task_id)
    assert watcher.market.registry.task(task_id).outcome is TaskOutcome.ACCEPTED
    assert verdicts.claims(task_id, seating) == [verdict.claim]
