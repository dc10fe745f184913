"""Options that the files of settings may give: network, nodes, store, and what else has a class `NetworkOption`.

What a command line leaves out comes from the environment, then from the files (docs/guides/configure.md).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from pol.chain.node.network_settings import read_settings
from pol.errors import ProtocolError

_STORE = "The store of tasks and proofs: a folder, file:// or s3://."


class NetworkOption(click.Option):
    """An option that a file of settings may give; what reports its absence says so."""

    def __init__(self, names: Sequence[str], **kwargs: Any) -> None:
        self.setting = names[0].removeprefix("--")
        super().__init__(names, envvar=f"POL_{self.setting.upper()}", show_envvar=True, **kwargs)

    def get_error_hint(self, ctx: click.Context | None) -> str:
        """The option's names, and other ways to give it."""
        return f"'--{self.setting}' ({self.envvar}, or once for all: `pol config set {self.setting} ...`)"


def _set_defaults(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    """Take the defaults of a command's options from the files of settings.

    Raises:
        click.UsageError: a file isn't one of settings, or there is no such network.
    """
    if ctx.resilient_parsing:
        return
    try:
        found = read_settings(value).values
    except ProtocolError as error:
        raise click.UsageError(str(error), ctx) from error
    options = {"keystore" if name == "key" else name: setting.value for name, setting in found.items()}
    ctx.default_map = {**(ctx.default_map or {}), **options}


def network_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--network``, whose settings are the defaults of the other options."""
    return click.option(
        "--network",
        envvar="POL_NETWORK",
        show_envvar=True,
        is_eager=True,
        expose_value=False,
        callback=_set_defaults,
        metavar="NAME",
        help="Take what isn't given from this network of pol.toml.",
    )(command)


def node_option(required: bool = True) -> Callable[..., Any]:
    """Add ``--rpc``; the command gets ``rpc: tuple[str, ...]``."""
    nodes = "A node of the deployment's chain; may be repeated."
    return click.option("--rpc", cls=NetworkOption, required=required, multiple=True, metavar="URL", help=nodes)


def store_option(required: bool = True, default: str | None = None, what: str = _STORE) -> Callable[..., Any]:
    """Add ``--store``; the command gets ``store: str``."""
    return click.option("--store", cls=NetworkOption, required=required, default=default, metavar="URL", help=what)
