"""``pol price``: what a published task would cost its submitter, and what others would have to put at stake."""

from __future__ import annotations

import json
import secrets
from dataclasses import asdict, replace
from pathlib import Path

import click

from pol.chain.times import duration
from pol.cli.market.party_options import Place, place_options
from pol.roles.submitter.submitter import GWEI, Offer, Submitter, terms_of
from pol.training.task.task_document import DOCUMENT_LIMIT, Task


@click.command()
@click.argument("task", metavar="DIGEST")
@place_options
@click.option("--unit-price", type=click.IntRange(1), default=GWEI, show_default=True, help="Wei for a unit of work.")
@click.option("--draws", type=click.IntRange(1), default=Offer.draws, show_default=True, help="Segments to verify.")
@click.option("--exact", is_flag=True, help="Ask for canonical training: no profile, equal roots.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def price(
    task: str,
    deployment: Path,
    rpc: tuple[str, ...],
    quorum: int,
    store: str,
    unit_price: int,
    draws: int,
    exact: bool,
    as_json: bool,
) -> None:
    """Say what a published task would cost, before it is submitted; nobody signs and nothing is sent.

    DIGEST names the task's document in the store. Amounts are wei. The escrow is an upper bound; what isn't needed
    comes back at settlement.
    """
    place = Place.of(deployment, rpc, quorum, store)
    # A party that exists for this only: it reads, and could pay for nothing.
    reader = Submitter(place.connection, place.deployment, secrets.token_bytes(32), place.store_url)
    document = Task.decode(reader.store.get(task, limit=DOCUMENT_LIMIT))
    offer = Offer(document.steps, document.interval, draws=draws, wei_per_work_unit=unit_price)
    if exact:
        offer = replace(offer, margin=0)
    terms = terms_of(document.work, offer)
    quote = reader.quote_of(terms)
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
