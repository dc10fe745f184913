"""``pol stake``: a party's money in the vault, and its tickets."""

from __future__ import annotations

import json
from contextlib import nullcontext
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

import click

from pol.cli.examples import defaulted, example
from pol.cli.market.party_options import MarketAccess, market_options, signer_of, signer_options

if TYPE_CHECKING:
    from pol.chain.account.wallet import Wallet
    from pol.chain.desks.market import Market


ETHER = 10**18


class _Ether(click.ParamType[int]):
    """An amount in wei, written in coins or with the unit wei."""

    name = "amount"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).strip()
        try:
            wei = Decimal(text.removesuffix("wei")) * (1 if text.endswith("wei") else ETHER)
        except InvalidOperation:
            self.fail(f"{text!r} is no amount; write 1.5, or 1500000000wei", param, ctx)
        if not wei.is_finite():
            self.fail(f"{text!r} is no amount; write 1.5, or 1500000000wei", param, ctx)
        if wei != int(wei) or wei < 0:
            self.fail(f"{text!r} is no whole number of wei", param, ctx)
        return int(wei)


def _coins(wei: int) -> str:
    """An amount as people write it: all digits, no zeros at the end."""
    whole, rest = divmod(wei, ETHER)
    return f"{whole}.{rest:018}".rstrip("0").rstrip(".")


@click.command(epilog=example("pol stake deposit 1.5", "pol stake enrol --tickets 2"))
@click.argument("verb", type=click.Choice(["show", "deposit", "withdraw", "donate", "enrol", "resign"]))
@click.argument("amount", type=_Ether(), required=False)
@market_options
@signer_options
@defaulted("--tickets", type=click.IntRange(1), default=1, help="Number to enrol or resign.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def stake(verb: str, amount: int | None, market: MarketAccess, tickets: int, as_json: bool, **signer: Any) -> None:
    """Deposit into the vault (deposit 1.5), withdraw free money, and enrol for seats and watches.

    A ticket locks a bond, which can be forfeited for a while after it resigns. `donate 0.1` gives free money to the
    jackpot's fund for good: a task is awarded only if the fund can reserve its jackpot.
    """
    from pol.chain.account.wallet import Wallet

    wallet = Wallet(market.connection, signer_of(signer, market.connection.chain_id))
    desks = market.deployment.market(market.connection)
    with nullcontext() if verb == "show" else wallet.once():
        _send(verb, amount, tickets, wallet, desks)
        _show(wallet, desks, as_json)


def _send(verb: str, amount: int | None, tickets: int, wallet: Wallet, desks: Market) -> None:
    if verb == "deposit":
        if not amount:
            raise click.UsageError("say how much: pol stake deposit 1.5")
        desks.vault.deposit(wallet, amount)
    elif verb == "withdraw":
        # The contract refuses what isn't free: here a killed command may have taken it out already.
        if left := desks.vault.free(wallet.address) if amount is None else amount:
            desks.vault.withdraw(wallet, left)
    elif verb == "donate":
        if not amount:
            raise click.UsageError("say how much: pol stake donate 0.1")
        desks.jackpot.donate(wallet, amount)
    elif verb == "enrol":
        desks.sortition.enrol(wallet, tickets)
    elif verb == "resign":
        desks.sortition.resign(wallet, tickets)


def _show(wallet: Wallet, desks: Market, as_json: bool) -> None:
    balances = desks.vault.balances(wallet.address)
    shown = {
        "address": wallet.address,
        "balance": wallet.balance(),
        "free": balances.free,
        "locked": balances.locked,
        "leaving": balances.leaving,
        "tickets": desks.sortition.tickets_now(wallet.address),
        "ticket_costs": desks.sortition.unit(),
        "fund_available": desks.jackpot.available(),
    }
    if as_json:
        print(json.dumps(shown, indent=2))
        return
    for name, value in shown.items():
        told = _coins(value) if isinstance(value, int) and name != "tickets" else value
        print(f"{name.replace('_', ' '):<14} {told}")
