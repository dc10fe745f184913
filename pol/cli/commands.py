"""The verbs of ``pol``. Each is imported when it is called: some need torch or a chain, and most need neither."""

from __future__ import annotations

import importlib
from typing import cast

import click

from pol import __version__

VERBS = (
    "beacon",
    "bench",
    "check",
    "commit",
    "completion",
    "demo",
    "deploy",
    "diff",
    "dispute",
    "doctor",
    "econ",
    "explain",
    "explore",
    "inspect",
    "log",
    "monitor",
    "price",
    "profile",
    "replay",
    "report",
    "run",
    "sample",
    "serve",
    "stake",
    "verify",
    "zk",
)
"""``pol VERB`` is the command of this name in the module ``pol.cli.VERB``."""


class _Verbs(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*VERBS, *self.commands})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return super().get_command(ctx, cmd_name)
        return cast(click.Command, getattr(importlib.import_module(f"pol.cli.{cmd_name}"), cmd_name))


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "POL"})
@click.version_option(__version__, prog_name="pol")
def commands() -> None:
    """Proof of learning: pay strangers to train a neural network and know that the training was done."""
