"""The market of `pol submit` and `pol fetch`: a folder of `pol up`, or the options of any other market."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from pol.cli.market.party_options import MarketAccess, optional_market_options, signer_of, signer_options
from pol.cli.training_script import script_parts
from pol.errors import OperationalError

SIGNERS = ("keystore", "signer", "key_env")


def place_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a market and a signer; the command gets ``place: MarketPlace``."""

    @functools.wraps(command)
    def wrapped(folder: Path | None, market: MarketAccess | None, **values: Any) -> Any:
        if "script" in values:
            script_parts(values["script"])  # a wrong path is told before web3 is imported
        from pol.local_market.market_folder import MARK
        from pol.submission.market_place import NOTES, MarketPlace

        names = ("keystore", "passphrase", "signer", "signer_api", "address", "key_env")
        given = {name: values.pop(name) for name in names}
        if folder is not None or market is None or not market.store:
            place = MarketPlace.here(folder)
        else:
            beside = Path(click.get_current_context().params["deployment"]).absolute().parent
            try:
                place = MarketPlace(market.connection, market.deployment, market.store_url, beside / NOTES)
            except OperationalError as error:
                if not (beside / MARK).exists():
                    raise
                raise OperationalError(f"{error}; start the market by `pol up --folder {beside}`") from error
        if any(given[name] is not None for name in SIGNERS):
            place = replace(place, signer=signer_of(given, place.connection.chain_id))
        return command(place=place, **values)

    option = click.option(
        "--market",
        "folder",
        type=click.Path(path_type=Path),
        envvar="POL_MARKET",
        metavar="DIR",
        help="A folder of `pol up`; by default this one, or pol-market in it.",
    )
    return option(optional_market_options(signer_options(wrapped)))
