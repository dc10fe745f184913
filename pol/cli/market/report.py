"""``pol report``: the pages of `pol explore` at one block, as one file."""

from __future__ import annotations

from pathlib import Path

import click

from pol.cli.examples import example
from pol.cli.market.explore import market_reader
from pol.cli.market.network_options import store_option
from pol.cli.market.party_options import MarketAccess, chain_options
from pol.errors import OperationalError
from pol.report.market_page import whole


@click.command(epilog=example("pol report --out market.html"))
@chain_options
@store_option(required=False, default="memory://", what="Store of the tasks; without it, no lines of code.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("market.html"), show_default=True, metavar="FILE")
@click.option("--test-terms", is_flag=True, help="Also show tasks with the terms of test networks.")
def report(market: MarketAccess, out: Path, test_terms: bool) -> None:
    """Write a whole market into one page: tasks, verdicts, disputes. The page loads nothing from elsewhere."""
    view = market_reader(market, test_terms).view()
    try:
        out.write_text(whole(view))
    except OSError as error:
        raise OperationalError(f"can't write {out}: {error}") from error
    disputes = sum(len(task.disputes) for task in view.tasks)
    print(f"{out}: {len(view.tasks)} tasks and {disputes} disputes at block {view.block}")
