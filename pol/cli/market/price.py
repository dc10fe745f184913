"""``pol price``: the cost of a published task, and the stakes of the other parties."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from pol.chain.account.gas_fees import GWEI
from pol.chain.node.networks import outage_of
from pol.chain.times import duration
from pol.cli.examples import defaulted, example
from pol.cli.market.party_options import MarketAccess, market_options
from pol.training.task.task_document import DOCUMENT_LIMIT, TaskDocument


@click.command(epilog=example("pol price DIGEST --draws 3"))
@click.argument("task", metavar="DIGEST")
@market_options
@defaulted("--unit-price", type=click.IntRange(1), default=GWEI, help="Wei per work unit.")
@defaulted("--draws", type=click.IntRange(1), default=3, help="Segments to verify.")
@defaulted(
    "--margin",
    type=click.IntRange(0),
    default=0,
    help="Factor on profiled distances; 64 is usual where solvers can't train canonically. 0: exact training.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def price(task: str, market: MarketAccess, unit_price: int, draws: int, margin: int, as_json: bool) -> None:
    """Print the cost of a published task before it is submitted. Nothing is signed or sent.

    DIGEST names the task's document in the store. Amounts are wei. The escrow is an upper bound; what isn't needed
    comes back at settlement.
    """
    from pol.roles.submitter.submitter import Offer, quote_of, terms_of
    from pol.training.storage.store import Store

    document = TaskDocument.decode(Store(market.store_url).get(task, limit=DOCUMENT_LIMIT))
    offer = Offer(document.steps, document.interval, draws=draws, wei_per_work_unit=unit_price, margin=margin)
    offer = offer.surviving(outage_of(market.connection.chain_id))
    terms = terms_of(document.work, offer)
    quote = quote_of(market.deployment.market(market.connection), terms)
    if as_json:
        click.echo(json.dumps({"task": task, "steps": document.steps, "work": terms.work_units} | asdict(quote)))
        return
    click.echo(f"steps            {document.steps:,} in {document.segments:,} segments, {terms.draws} of them drawn")
    click.echo(f"work             {terms.work_units:,} units")
    for name, value in asdict(quote).items():
        click.echo(f"{name.replace('_', ' '):<16} {value:,}")
    windows = ("profile_window", "bid_window", "training_window", "verification_window", "watch_window")
    for name in (*windows, "disclosure_window", "challenge_window", "clock"):
        click.echo(f"{name.replace('_', ' '):<16.16} {duration(getattr(terms, name))}")
    if quote.fund_short:
        click.echo(f"pol: before a solver can win it somebody adds `pol stake donate {quote.fund_short}wei`", err=True)
