"""Options shared by the verbs of parties: deployment, nodes, store and signer."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from web3 import Web3

from pol.chain.account.remote_signer import Api, RemoteSigner
from pol.chain.account.signers import Signer, from_environment, from_keystore, read_passphrase
from pol.chain.beacon.drand_relays import Relays, RoundSource
from pol.chain.deploy.deployment import Deployment
from pol.chain.node.connection import Connection
from pol.errors import OperationalError
from pol.verification.beacon.drand import QUICKNET


def _chain(required: bool) -> tuple[Callable[..., Any], ...]:
    nodes = "A node of the deployment's chain; may be repeated."
    agree = "Number of nodes that have to agree."
    return (
        click.option("--deployment", type=click.Path(path_type=Path), required=required, metavar="FILE"),
        click.option("--rpc", required=required, multiple=True, metavar="URL", help=nodes),
        click.option("--quorum", type=click.IntRange(1), default=1, show_default=True, help=agree),
    )


def _store(required: bool) -> Callable[..., Any]:
    what = "The store of tasks and proofs: a folder, file:// or s3://."
    return click.option("--store", required=required, metavar="URL", help=what)


_SIGNER = (
    click.option("--keystore", type=click.Path(path_type=Path), metavar="FILE", help="A key file with a passphrase."),
    click.option("--passphrase", type=click.Path(path_type=Path), metavar="FILE", help="Asked for if not given."),
    click.option("--signer", metavar="URL", help="Web3Signer or Clef; the key stays there."),
    click.option("--signer-api", type=click.Choice([a.name.lower() for a in Api]), default="web3signer"),
    click.option("--address", metavar="0x..", help="The account that the signer signs for."),
    click.option("--key-env", metavar="NAME", help="An environment variable with a key, on test nets only."),
)
Options = dict[str, Any]


def chain_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a chain and its contracts; the command gets ``market: MarketAccess``."""
    return _with_access(command, _chain(required=True))


def market_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a chain, its contracts and the store; the command gets ``market: MarketAccess``."""
    return _with_access(command, (*_chain(required=True), _store(required=True)))


def optional_market_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """As `market_options` for a command that needs no market for some of its work: ``market: MarketAccess | None``."""

    @functools.wraps(command)
    def wrapped(deployment: Path | None, rpc: tuple[str, ...], quorum: int, store: str | None, **values: Any) -> Any:
        market = None
        if deployment is not None and rpc and store is not None:
            market = MarketAccess.of(deployment, rpc, quorum, store)
        return command(market=market, **values)

    return _decorated(wrapped, (*_chain(required=False), _store(required=False)))


def signer_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of the signer; `signer_of` takes their values."""
    return _decorated(command, _SIGNER)


def _with_access(command: Callable[..., Any], options: tuple[Callable[..., Any], ...]) -> Callable[..., Any]:
    @functools.wraps(command)
    def wrapped(deployment: Path, rpc: tuple[str, ...], quorum: int, store: str = "memory://", **values: Any) -> Any:
        return command(market=MarketAccess.of(deployment, rpc, quorum, store), **values)

    return _decorated(wrapped, options)


def _decorated(command: Callable[..., Any], options: tuple[Callable[..., Any], ...]) -> Callable[..., Any]:
    for option in reversed(options):
        command = option(command)
    return command


@dataclass(frozen=True)
class MarketAccess:
    """A process's access to a market: chain, contracts and store."""

    connection: Connection
    deployment: Deployment
    store_url: str

    @classmethod
    def of(cls, document: Path, rpc: Sequence[str], quorum: int, store: str) -> MarketAccess:
        """Build from the values of `market_options`.

        Raises:
            OperationalError: the document can't be read, or the node doesn't answer.
            ProtocolError: it isn't a deployment's.
        """
        try:
            deployment = Deployment.from_json(document.read_text())
        except (OSError, UnicodeDecodeError) as error:
            raise OperationalError(f"can't read the deployment {document}: {error}") from error
        store_url = store if "://" in store else f"file://{Path(store).resolve()}"
        return cls(Connection.to(*rpc, quorum=quorum), deployment, store_url)

    def rounds(self, relays: tuple[str, ...]) -> RoundSource | None:
        """The source of drand rounds; None if no relay is named."""
        return Relays(relays, QUICKNET).round if relays else None


def signer_of(options: Options, chain_id: int) -> Signer:
    """The signer that `signer_options` name.

    Raises:
        click.UsageError: none is named, or several.
        OperationalError: it can't be used.
    """
    named = [name for name in ("keystore", "signer", "key_env") if options[name] is not None]
    if len(named) != 1:
        raise click.UsageError("name one signer: --keystore FILE, --signer URL or --key-env NAME (on test nets)")
    if options["keystore"] is not None:
        return from_keystore(options["keystore"], read_passphrase(options["passphrase"]))
    if options["key_env"] is not None:
        return from_environment(options["key_env"], chain_id)
    if options["address"] is None or not Web3.is_address(options["address"]):
        raise click.UsageError("a signer at a URL needs an account: add --address 0x..")
    api = Api[options["signer_api"].upper()]
    return RemoteSigner(options["signer"], Web3.to_checksum_address(options["address"]), api)
