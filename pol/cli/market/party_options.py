"""Options shared by the verbs of parties: network, deployment, nodes, store and signer."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from pol.chain.node.network_settings import is_secret
from pol.cli.examples import defaulted
from pol.cli.market.network_options import NetworkOption, network_option, node_option, store_option
from pol.commitments import canonical_json
from pol.errors import OperationalError, ProtocolError, reason_of

if TYPE_CHECKING:
    from pol.chain.account.signers import Signer
    from pol.chain.beacon.drand_relays import RoundSource
    from pol.chain.deployments.deployment import Deployment, RoundsDeployment
    from pol.chain.node.connection import Connection
    from pol.chain.rounds.round_contracts import RoundContracts


def _chain(required: bool) -> tuple[Callable[..., Any], ...]:
    file, agree = "The file that `pol deploy` wrote.", "Number of nodes that have to agree."
    path = click.Path(path_type=Path)
    return (
        network_option,
        click.option("--deployment", cls=NetworkOption, type=path, required=required, metavar="FILE", help=file),
        node_option(required),
        defaulted("--quorum", type=click.IntRange(1), default=1, help=agree),
    )


def _key_file(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    """Refuse a key in place of its file, as an error about the file would show it."""
    if value is not None and is_secret(str(value)):
        raise click.UsageError("--key takes a file, not a key: write the key to a file of mode 600, and name the file")
    return value


_SIGNER = (
    click.option(
        "--key",
        "--keystore",
        "keystore",
        cls=NetworkOption,
        type=click.Path(path_type=Path),
        callback=_key_file,
        metavar="FILE",
        help="A keystore; or a key as 64 hexadecimal digits, on test nets only.",
    ),
    click.option(
        "--passphrase",
        cls=NetworkOption,
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Of the keystore; asked for if not given.",
    ),
    click.option("--signer", metavar="URL", help="Web3Signer or Clef; the key stays there."),
    click.option("--signer-api", type=click.Choice(["web3signer", "clef"]), default="web3signer"),
    click.option("--address", metavar="0x..", help="The account that the signer signs for."),
    click.option("--key-env", metavar="NAME", help="An environment variable with a key, on test nets only."),
)
Options = dict[str, Any]
_SIGNERS = ("keystore", "signer", "key_env")


def chain_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a chain and its contracts; the command gets ``market: MarketAccess``."""
    return _with_access(command, _chain(required=True))


def optional_chain_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """As `chain_options` for a command that needs no market for some of its work: ``market: MarketAccess | None``."""

    @functools.wraps(command)
    def wrapped(deployment: Path | None, rpc: tuple[str, ...], quorum: int, store: str, **values: Any) -> Any:
        if (deployment is None) != (not rpc):
            raise click.UsageError("a market needs both --deployment FILE and --rpc URL")
        market = None if deployment is None else MarketAccess(deployment, rpc, quorum, store)
        return command(market=market, **values)

    return _decorated(wrapped, _chain(required=False))


def market_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a chain, its contracts and the store; the command gets ``market: MarketAccess``."""
    return _with_access(command, (*_chain(required=True), store_option()))


def optional_market_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """As `market_options` for a command that needs no market, or no store (``""``), for some of its work."""

    @functools.wraps(command)
    def wrapped(deployment: Path | None, rpc: tuple[str, ...], quorum: int, store: str | None, **values: Any) -> Any:
        market = None if deployment is None or not rpc else MarketAccess(deployment, rpc, quorum, store or "")
        return command(market=market, **values)

    return _decorated(wrapped, (*_chain(required=False), store_option(required=False)))


def signer_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of the signer; `signer_of` takes their values."""
    return _decorated(command, _SIGNER)


def _with_access(command: Callable[..., Any], options: tuple[Callable[..., Any], ...]) -> Callable[..., Any]:
    @functools.wraps(command)
    def wrapped(deployment: Path, rpc: tuple[str, ...], quorum: int, store: str = "memory://", **values: Any) -> Any:
        return command(market=MarketAccess(deployment, rpc, quorum, store), **values)

    return _decorated(wrapped, options)


def _decorated(command: Callable[..., Any], options: tuple[Callable[..., Any], ...]) -> Callable[..., Any]:
    for option in reversed(options):
        command = option(command)
    return command


@dataclass(frozen=True)
class MarketAccess:
    """A process's access to a market: chain, contracts and store. The first use imports web3 and looks at the node."""

    document: Path
    nodes: Sequence[str]
    quorum: int
    store: str

    def __post_init__(self) -> None:
        _ = self._text

    @cached_property
    def _text(self) -> str:
        """The document, which is read before anything heavy is imported."""
        try:
            return self.document.read_text(encoding="utf-8")
        except OSError as error:
            raise OperationalError(f"can't read the deployment {self.document}: {reason_of(error)}") from error
        except UnicodeDecodeError as error:
            raise ProtocolError(
                f"{self.document} is no deployment, as it isn't text in UTF-8: see `pol deploy`"
            ) from error

    @cached_property
    def deployment(self) -> Deployment:
        """The market's contracts. Raises ProtocolError: the document isn't a deployment's."""
        from pol.chain.deployments.deployment import Deployment

        return Deployment.from_json(self._text)

    @cached_property
    def connection(self) -> Connection:
        """The market's chain."""
        from pol.chain.node.connection import Connection

        # What is wrong with the file is told before a node is asked.
        _ = self.rounds_deployment if self._is_of_rounds else self.deployment
        return Connection.to(*self.nodes, quorum=self.quorum)

    @property
    def _is_of_rounds(self) -> bool:
        document = canonical_json.parse(self._text.encode(), "the document of a deployment")
        return isinstance(document, dict) and "bonds" in (document.get("desks") or ())

    @cached_property
    def rounds_deployment(self) -> RoundsDeployment:
        """The contracts of rounds. Raises ProtocolError: the document isn't theirs."""
        from pol.chain.deployments.deployment import RoundsDeployment

        return RoundsDeployment.from_json(self._text)

    @cached_property
    def round_contracts(self) -> RoundContracts:
        """The contracts of rounds on the chain. Raises as `rounds_deployment` and `connection`."""
        return self.rounds_deployment.contracts(self.connection)

    @property
    def store_url(self) -> str:
        """The URL of the store."""
        return self.store if "://" in self.store else f"file://{Path(self.store).resolve()}"

    def rounds(self, relays: tuple[str, ...]) -> RoundSource | None:
        """The source of drand rounds; None if no relay is named."""
        if not relays:
            return None
        from pol.chain.beacon.drand_relays import Relays
        from pol.verification.beacon.drand import QUICKNET

        return Relays(relays, QUICKNET).round


def plan_of(named: str | None, store_url: str) -> bytes:
    """The id of a registered plan: as it is named, or that of the log in a store."""
    if named is not None:
        if not re.fullmatch("(0x)?[0-9a-fA-F]{64}", named):
            raise ProtocolError(f"{named} is no plan: --plan takes the id of a registration, 64 hexadecimal digits")
        return bytes.fromhex(named.removeprefix("0x"))
    from pol.rounds.log.rounds_log import HEAD, LogHead
    from pol.training.storage.store import Store

    store = Store(store_url)
    if not store.holds(HEAD):
        raise ProtocolError(f"{store_url} has no log of a training yet: name its plan, --plan ID")
    return LogHead.decode(store.read(HEAD)).plan


def signer_of(options: Options, chain_id: int) -> Signer:
    """The signer that `signer_options` name.

    Raises:
        click.UsageError: none is named, or several.
        OperationalError: it can't be used.
    """
    named = _named(options)
    if len(named) != 1:
        raise click.UsageError("name one signer: --key FILE, --signer URL or --key-env NAME (on test nets)")
    from pol.chain.account.signers import from_environment, from_key_file, read_passphrase

    if named == ["keystore"]:
        return from_key_file(options["keystore"], chain_id, lambda: read_passphrase(options["passphrase"]))
    if named == ["key_env"]:
        return from_environment(options["key_env"], chain_id)
    from web3 import Web3

    from pol.chain.account.remote_signer import Api, RemoteSigner

    if options["address"] is None or not Web3.is_address(options["address"]):
        raise click.UsageError("a signer at a URL needs an account: add --address 0x..")
    api = Api[options["signer_api"].upper()]
    return RemoteSigner(options["signer"], Web3.to_checksum_address(options["address"]), api)


def _named(options: Options) -> list[str]:
    """The signers that are named; those of the command line go before those of environment and files."""
    named = [name for name in _SIGNERS if options[name] is not None]
    source = click.get_current_context().get_parameter_source
    return [name for name in named if source(name) is ParameterSource.COMMANDLINE] or named
