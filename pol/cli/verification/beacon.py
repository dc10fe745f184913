"""``pol beacon``: the round of drand that binds a claim, and its seed once it is published."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import click

from pol.cli.examples import defaulted, example
from pol.verification.beacon.drand import LAST_ROUND, NETWORKS, DrandNetwork, Round, verify_round


class _Time(click.ParamType[int]):
    """Seconds since 1970, or ISO 8601 with its offset from UTC."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        text = str(value).strip()
        if text.isdecimal():
            return int(text)
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            self.fail(f"{text!r} is no time; write seconds since 1970, or 2023-08-23T15:58:22Z", param, ctx)
        if time.tzinfo is None:
            self.fail(f"{text!r} doesn't say where: end it with Z, or with an offset from UTC", param, ctx)
        # Rounds are due in whole seconds: a part of one makes no difference.
        return int(time.timestamp())


class _Hex(click.ParamType[bytes]):
    """Bytes in hexadecimal."""

    name = "hex"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bytes:
        try:
            return value if isinstance(value, bytes) else bytes.fromhex(value)
        except ValueError:
            self.fail(f"{value!r}: a signature is hexadecimal", param, ctx)


@click.command(epilog=example("pol beacon --after 2026-01-31T12:00:00Z --relay https://api.drand.sh"))
@defaulted("--network", type=click.Choice(sorted(NETWORKS)), default="quicknet")
@click.option(
    "--after", type=_Time(), metavar="TIME", help="Time of the claim; its maker must not be able to choose it."
)
@defaulted("--delay", type=click.IntRange(0), default=60, help="Seconds from it to the round.")
@click.option(
    "--round", "number", type=click.IntRange(1, LAST_ROUND), metavar="N", help="Show this round instead of the claim's."
)
@click.option("--relay", "relays", multiple=True, metavar="URL", help="Where to fetch the round; several are tried.")
@click.option("--signature", type=_Hex(), metavar="HEX", help="The round's signature, instead of a relay.")
@click.option(
    "--previous",
    type=_Hex(),
    default="",
    metavar="HEX",
    help="Signature of the round before; the default network signs it too.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def beacon(
    network: str,
    after: int | None,
    delay: int,
    number: int | None,
    relays: tuple[str, ...],
    signature: bytes | None,
    previous: bytes,
    as_json: bool,
) -> None:
    """Show the round of drand that binds a claim, its time, and its seed for `pol verify --seed`.

    The seed comes with --relay or --signature, and only if the League of Entropy has signed the round.
    """
    if (after is None) == (number is None):
        raise click.UsageError("give either the time of the claim (--after TIME) or a round (--round N)")
    if relays and signature is not None:
        raise click.UsageError("a round comes from --relay or from --signature, not from both")
    chosen = NETWORKS[network]
    found = number if after is None else chosen.round_after(after, delay)
    if found is None:
        raise click.UsageError("there is neither a claim nor a round")
    if found > LAST_ROUND:
        raise click.UsageError(f"there is no round {found}: name an earlier time, or seconds instead of milliseconds")
    shown: dict[str, Any] = {"network": network, "chain_hash": chosen.chain_hash.hex(), "round": found}
    shown["due"] = chosen.time_of(found)
    if relays:
        from pol.chain.beacon.drand_relays import Relays

        shown |= _seed(chosen, Relays(relays, chosen).round(found))
    elif signature is not None:
        shown |= _seed(chosen, Round(found, signature, previous))
    if as_json:
        print(json.dumps(shown, indent=2))
        return
    for name, value in shown.items():
        print(f"{name.replace('_', ' '):<12} {_time(value) if name == 'due' else value}")


def _seed(network: DrandNetwork, published: Round) -> dict[str, str]:
    return {"signature": published.signature.hex(), "seed": verify_round(network, published).hex()}


def _time(seconds: int) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, UTC).isoformat()} ({seconds})"
    except (ValueError, OverflowError):
        return f"second {seconds} since 1970"
