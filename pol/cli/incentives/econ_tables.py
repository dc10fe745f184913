"""Output of ``pol econ``: rows of tables, and the same as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from pol.incentives.amounts import amount
from pol.incentives.forced_errors import ONE
from pol.incentives.game.griefing import burn_ratio, burns, hostage
from pol.incentives.game.parameter_design import Design, alternatives

CHOICES = ("role", "when", "honesty brings", "best deviation", "brings less by")
DRAWS = ("draws", "one lie is drawn", "solver's stake", "verifier's", "submitter pays", "")
SHOWN_DRAWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
HANDS = ("drawn tickets in one hand", "each earns a watch", "times a single one")
BURNS = ("attack", "burns", "costs others", "times")


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table of rows below a head."""
    made = Table(*head, title=title, title_justify="left")
    for row in rows:
        made.add_row(*row)
    return made


def parameters(found: Design) -> list[tuple[str, str]]:
    """All parameters of a design."""
    stakes, chance, windows = found.stakes, found.chance, found.windows
    return [
        ("price of the training, at least", amount(stakes.price)),
        ("verifier's fee", amount(stakes.verifier_fee)),
        ("tax of the task", amount(found.game.tax)),
        ("solver's stake", amount(stakes.solver_stake)),
        ("verifier's stake", amount(stakes.verifier_stake)),
        ("first bond of a challenger", amount(stakes.bond)),
        ("bounty of a challenger that is right", amount(found.game.reward)),
        ("jackpot, reserved", amount(stakes.jackpot)),
        ("a catch pays", amount(found.game.share)),
        ("draws, of segments", f"{stakes.draws} of {stakes.segments}"),
        ("one false segment is drawn", f"{found.one_lie_detection:.2%}"),
        ("the least cheat is drawn", f"{found.detection:.2%}"),
        ("RATE of planted errors", f"{chance.rate} ({chance.rate / ONE:.4f})"),
        ("WATCHERS, SHARES", f"{chance.watchers}, {chance.shares}"),
        *((f"{name.replace('_', ' ')}", seconds(value)) for name, value in asdict(windows).items()),
    ]


def choices(found: Design) -> list[tuple[str, ...]]:
    """Every decision, with its best deviation."""
    return [
        (c.role, c.state, amount(c.honest), c.temptation, amount(c.margin)) for c in found.game.choices() if c.others
    ]


def draws(found: Design) -> list[tuple[str, ...]]:
    """Other numbers of draws: lower stakes for more work."""
    shown = {*SHOWN_DRAWS, found.stakes.draws}
    return [
        (
            str(d.stakes.draws),
            f"{d.one_lie_detection:.2%}",
            amount(d.stakes.solver_stake),
            amount(d.stakes.verifier_stake),
            amount(d.pays),
            "chosen" if d.stakes.draws == found.stakes.draws else "",
        )
        for d in alternatives(found.needs)
        if d.stakes.draws in shown
    ]


def tickets(found: Design) -> list[tuple[str, ...]]:
    """Earnings of a drawn ticket by the number of tickets in one hand, which replays once for all."""
    alone = found.game.watching(1)
    hands = sorted({1, 2, 4, found.chance.watchers})
    return [
        (str(hand), amount(found.game.watching(hand)), f"{found.game.watching(hand) / alone:.1f}") for hand in hands
    ]


def burnt(found: Design) -> list[tuple[str, ...]]:
    """Every griefing attack."""
    every = [*burns(found.game), hostage(found)]
    return [(b.attack, amount(b.burnt), amount(b.harm), f"{b.ratio:.1f}") for b in every]


def sentences(found: Design) -> str:
    """The cost of verification, and the limits of the design."""
    stakes, needs = found.stakes, found.needs
    overhead = found.overhead / stakes.price
    return (
        f"Verification costs the submitter {amount(found.overhead)}, {overhead:.0%} of the price. One ticket is enough "
        f"to watch; a solver needs {amount(stakes.solver_stake)}, a verifier {amount(stakes.verifier_stake)}.\n"
        f"All of this holds while nobody holds more than {needs.coalition:.0%} of the tickets; "
        f"that is {needs.coalition / (1 - needs.coalition):.2f} times what all others have locked in theirs."
    )


def design_json(found: Design) -> dict[str, Any]:
    """A design as JSON; amounts in the smallest unit."""
    return {
        "stakes": asdict(found.stakes),
        "tax": found.game.tax,
        "catch": found.game.share,
        "bounty": found.game.reward,
        "overhead": found.overhead,
        "rate": found.chance.rate,
        "watchers": found.chance.watchers,
        "shares": found.chance.shares,
        "windows": asdict(found.windows),
        "detection_probability": found.detection,
        "one_lie_detection_probability": found.one_lie_detection,
        "choices": [
            {"role": c.role, "state": c.state, "honest": c.honest, "best_deviation": c.temptation, "margin": c.margin}
            for c in found.game.choices()
            if c.others
        ],
        "burns": [
            {"attack": b.attack, "burnt": b.burnt, "harm": b.harm, "ratio": b.ratio if b.harm else None}
            for b in burns(found.game)
        ],
        "fund_hostage": {"burnt": hostage(found).burnt, "harm": hostage(found).harm, "ratio": hostage(found).ratio},
        "watch_of_tickets": {hand: found.game.watching(hand) for hand in (1, 2, 4, found.chance.watchers)},
        "attacker_burn_ratio": burn_ratio(found.game),
    }


def seconds(value: int) -> str:
    """A duration in words."""
    for size, unit in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if value >= 2 * size:
            return f"{value / size:.1f} {unit}"
    return f"{value} seconds"
