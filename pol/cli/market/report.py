"""``pol report``: a market as one page that opens from disk: what `pol explore` shows, at one block."""

from __future__ import annotations

from pathlib import Path

import click

from pol.cli.market.explore import surveyor_of
from pol.cli.market.party_options import chain_options
from pol.errors import OperationalError
from pol.report.market_page import whole


@click.command()
@chain_options
@click.option("--store", default="memory://", metavar="URL", help="Where tasks are: without it, no lines of code.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("market.html"), show_default=True, metavar="FILE")
@click.option("--test-terms", is_flag=True, help="Show tasks with the large terms of test networks, too.")
def report(deployment: Path, rpc: tuple[str, ...], quorum: int, store: str, out: Path, test_terms: bool) -> None:
    """Write everything about a market into one page: tasks, verdicts, disputes. It asks nobody for anything."""
    view = surveyor_of(deployment, rpc, quorum, store, test_terms).survey()
    try:
        out.write_text(whole(view))
    except OSError as error:
        raise OperationalError(f"can't write {out}: {error}") from error
    disputes = sum(len(task.disputes) for task in view.tasks)
    print(f"{out}: {len(view.tasks)} tasks and {disputes} disputes at block {view.block}")
