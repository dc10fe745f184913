"""The verbs of ``pol``."""

from __future__ import annotations

import click

from pol import __version__
from pol.cli.bench import bench
from pol.cli.demo import demo
from pol.cli.dispute import dispute
from pol.cli.log import log
from pol.cli.replay import replay


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="pol")
def commands() -> None:
    """Proof of learning: pay strangers to train a neural network and know that the training was done."""


commands.add_command(bench)
commands.add_command(demo)
commands.add_command(dispute)
commands.add_command(log)
commands.add_command(replay)
