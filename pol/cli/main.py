"""The entry point: ``pol VERB``. Errors raised on purpose end in one line and an exit code, not in a traceback."""

from __future__ import annotations

import json
import sys

import click
from rich.console import Console
from rich.markup import escape

from pol import __version__
from pol.cli.bench import bench
from pol.cli.demo import demo
from pol.cli.replay import replay
from pol.errors import OperationalError, PolError

EXIT_PROTOCOL, EXIT_OPERATIONAL, EXIT_INTERRUPTED = 1, 3, 130


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="pol")
def commands() -> None:
    """Proof of learning: pay strangers to train a neural network and know that the training was done."""


commands.add_command(bench)
commands.add_command(demo)
commands.add_command(replay)


def main() -> None:
    """Run one command; exit code 1: bad evidence, 2: bad usage, 3: something couldn't be looked at, 130: ^C."""
    try:
        commands(standalone_mode=False)
    except click.exceptions.Abort:
        _fail("interrupted; nothing was left half-written", EXIT_INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except PolError as error:
        _fail(str(error), EXIT_OPERATIONAL if isinstance(error, OperationalError) else EXIT_PROTOCOL)


def _fail(message: str, code: int) -> None:
    if "--json" in sys.argv:
        print(json.dumps({"error": message}))
    else:
        Console(stderr=True).print(f"[bold red]pol:[/bold red] {escape(message)}", highlight=False, soft_wrap=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
