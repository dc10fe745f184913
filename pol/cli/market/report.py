"""``pol report``: one page about a training, or about a whole market at one block."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from pol.cli.examples import example
from pol.cli.file_output import json_option, write_file
from pol.cli.market.network_options import store_option
from pol.cli.market.party_options import MarketAccess, optional_chain_options

NOTHING = (
    "name what the page is about: a training (a learning record, a store and the digest of a proof, or a training in "
    "rounds), or a market with --deployment FILE and --rpc URL"
)


@click.command(epilog=example("pol report runs/first --out training.html"))
@click.argument("training", required=False)
@click.argument("proof", required=False)
@optional_chain_options
@store_option(required=False, default="memory://", what="Store of the market's tasks; else no lines of code.")
@click.option("--test-terms", is_flag=True, help="Of a market: also tasks with the terms of test networks.")
@click.option("--profile", metavar="DIGEST", help="Of a training: its profile with the thresholds, or a file with it.")
@click.option("--draws", type=click.IntRange(1), metavar="N", help="Of a training: replay N drawn segments or claims.")
@click.option("--seed", metavar="HEX", help="Of a training: randomness of the draw; else fresh entropy.")
@click.option("--by", default="", metavar="NAME", help="Of a training: who makes the report.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Default: report.html.")
@json_option
def report(
    training: str | None,
    proof: str | None,
    market: MarketAccess | None,
    test_terms: bool,
    out: Path | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Write one page about a TRAINING (with the digest of its PROOF), or about a market. It loads nothing.

    A training: loss, distances of each segment and tensor, the screen, what was drawn, receipts. As much is replayed
    as finds a lie in one of 20 segments with 99 %.

    Exit codes: of a training those of `pol verify` and `pol audit`.
    """
    file = out or Path("report.html")
    source = click.get_current_context().get_parameter_source("deployment")
    if training is not None and source is ParameterSource.COMMANDLINE:
        raise click.UsageError("a page is about a training or about a market: leave one of them out")
    if training is not None:
        from pol.cli.verification.training_report import write_training_page

        return write_training_page(file, training, proof, as_json=as_json, **options)
    if market is None:
        raise click.UsageError(NOTHING)
    named = [name for name, value in options.items() if value]
    if named:
        raise click.UsageError(f"--{named[0]} is for the page of a training, not of a market: leave it out")
    return _write_market(file, market, test_terms, as_json)


def _write_market(file: Path, market: MarketAccess, test_terms: bool, as_json: bool) -> int:
    from pol.cli.market.explore import market_reader
    from pol.report.market_page import whole

    view = market_reader(market, test_terms).view()
    write_file(file, whole(view).encode())
    disputes = sum(len(task.disputes) for task in view.tasks)
    if as_json:
        told = {"page": str(file), "tasks": len(view.tasks), "disputes": disputes, "block": view.block}
        print(json.dumps(told))
        return 0
    print(f"{file}: {len(view.tasks)} tasks and {disputes} disputes at block {view.block}")
    return 0
