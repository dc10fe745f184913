"""``pol stake``: the money of a party in the vault, and its tickets."""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import click

from pol.chain.account.wallet import Wallet
from pol.cli.market.party_options import Place, place_options, signer_of, signer_options
from pol.errors import ProtocolError

ETHER = 10**18


class _Ether(click.ParamType[int]):
    """An amount of the asset in wei, written in whole coins or with the unit wei."""

    name = "amount"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).strip()
        try:
            wei = Decimal(text.removesuffix("wei")) * (1 if text.endswith("wei") else ETHER)
        except InvalidOperation:
            self.fail(f"{text!r} is no amount; write 1.5, or 1500000000wei", param, ctx)
        if wei != int(wei) or wei < 0:
            self.fail(f"{text!r} is no whole number of wei", param, ctx)
        return int(wei)


@click.command()
@click.argument("verb", type=click.Choice(["show", "deposit", "withdraw", "donate", "enrol", "resign"]))
@click.argument("amount", type=_Ether(), required=False)
@place_options
@signer_options
@click.option("--tickets", type=click.IntRange(1), default=1, show_default=True, help="To enrol or to resign.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def stake(
    verb: str,
    amount: int | None,
    deployment: Path,
    rpc: tuple[str, ...],
    quorum: int,
    store: str,
    tickets: int,
    as_json: bool,
    **signer: Any,
) -> None:
    """Bring money into the vault (deposit 1.5), take out what is free, and enrol for seats and watches.

    A ticket locks a bond that stays forfeitable for a while after it resigns. `donate 0.1` gives free money to the fund
    of the jackpot, for good: a task is awarded only if the fund can reserve its jackpot.
    """
    place = Place.of(deployment, rpc, quorum, store)
    wallet = Wallet(place.connection, signer_of(signer, place.connection.chain_id))
    market = place.deployment.market(place.connection)
    if verb == "deposit":
        if not amount:
            raise click.UsageError("say how much: pol stake deposit 1.5")
        market.vault.deposit(wallet, amount)
    elif verb == "withdraw":
        free = market.vault.free(wallet.address)
        if amount is not None and amount > free:
            raise ProtocolError(f"only {free} wei are free; the rest answers for something")
        if free:
            market.vault.withdraw(wallet, free if amount is None else amount)
    elif verb == "donate":
        if not amount:
            raise click.UsageError("say how much: pol stake donate 0.1")
        market.jackpot.donate(wallet, amount)
    elif verb == "enrol":
        market.sortition.enrol(wallet, tickets)
    elif verb == "resign":
        market.sortition.resign(wallet, tickets)
    balances = market.vault.balances(wallet.address)
    shown = {
        "address": wallet.address,
        "balance": wallet.balance(),
        "free": balances.free,
        "locked": balances.locked,
        "leaving": balances.leaving,
        "tickets": market.sortition.tickets_now(wallet.address),
        "ticket_costs": market.sortition.unit(),
        "fund_available": market.jackpot.available(),
    }
    if as_json:
        print(json.dumps(shown, indent=2))
        return
    for name, value in shown.items():
        print(f"{name.replace('_', ' '):<14} {value}")
