"""``pol sample``: the number of segments to replay for a wanted probability of detection."""

from __future__ import annotations

import json
from fractions import Fraction

import click
from rich.console import Console
from rich.table import Table

from pol.claims.sample_size import Sample
from pol.claims.sample_size import sample as plan
from pol.cli.examples import defaulted, example
from pol.cli.verification.verification_options import Share

FRACTIONS = tuple(Fraction(n, 1000) for n in (1, 10, 50, 100, 200, 500))
"""Rows of the table beside the fraction that was asked for."""
CONFIDENCES = (Fraction(9, 10), Fraction(99, 100), Fraction(999, 1000))
MOST_SEGMENTS = 10**7


@click.command(epilog=example("pol sample --segments 1000 --cheat-fraction 0.05"))
@click.option("--segments", type=click.IntRange(1, MOST_SEGMENTS), required=True, help="Segments of the training.")
@defaulted("--confidence", type=Share(), default="0.99", help="Wanted probability of detection.")
@defaulted("--cheat-fraction", type=Share(), default="0.05", help="Assumed share of bad segments.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def sample(segments: int, confidence: Fraction, cheat_fraction: Fraction, as_json: bool) -> None:
    """Show the number of segments to draw and replay in order to detect cheating.

    The odds are exact (hypergeometric): segments are drawn without replacement, after the log is committed, by a beacon
    that nobody in the task can foresee. A segment counts as found if it is drawn: a replay of it fails for certain.
    """
    wanted = plan(segments, cheat_fraction, confidence)
    fractions = sorted({*FRACTIONS, cheat_fraction})
    rows = [[plan(segments, fraction, sure) for sure in CONFIDENCES] for fraction in fractions]
    if as_json:
        table = [cell.as_json() for row in rows for cell in row]
        print(json.dumps({**wanted.as_json(), "table": table}, indent=2))
        return
    console = Console(highlight=False)
    console.print(_sentences(wanted), soft_wrap=True, markup=False)
    console.print(_table(rows))


def _sentences(wanted: Sample) -> str:
    share, sure = _percent(wanted.cheat_fraction), _percent(wanted.confidence)
    text = (
        f"{wanted.draws} of {wanted.segments} segments have to be drawn to find {wanted.cheated} cheated ones "
        f"({share}) with {sure}: they are found with {_percent(wanted.detection_probability)}, "
        f"{_percent(wanted.reexecution)} of the training is replayed.\n"
    )
    if wanted.chain_enough:
        return text + f"A task on chain can have so many drawn: up to {wanted.chain_draws}.\n"
    least = wanted.chain_detectable
    with_confidence = f"{least} cheated ones ({_percent(Fraction(least, wanted.segments))})" if least else "nothing"
    return text + (
        f"A task on chain has {wanted.chain_draws} drawn at most: they find these with "
        f"{_percent(wanted.chain_detection_probability)}, and {with_confidence} with {sure}. "
        "What is beyond that has to be verified off chain.\n"
    )


def _table(rows: list[list[Sample]]) -> Table:
    table = Table(title="segments to draw", title_justify="left")
    table.add_column("cheated")
    for confidence in CONFIDENCES:
        table.add_column(f"to find with {_percent(confidence)}", justify="right")
    table.add_column(f"{rows[0][0].chain_draws} draws find", justify="right")
    for row in rows:
        cells = [f"{cell.draws} ({_percent(cell.reexecution)})" for cell in row]
        found = _percent(row[0].chain_detection_probability)
        table.add_row(f"{_percent(row[0].cheat_fraction)}: {row[0].cheated}", *cells, found)
    return table


def _percent(share: Fraction) -> str:
    """A percentage, rounded down: a probability must not be overstated."""
    hundredths = int(share * 10_000)
    return f"{hundredths / 100:g} %" if hundredths else "< 0.01 %"
