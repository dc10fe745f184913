"""``pol capture --check train.py``: everything that a capture of a training script would refuse, in one table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
from rich.box import SIMPLE
from rich.table import Column, Table
from rich.text import Text

from pol.cli.examples import example
from pol.cli.file_output import DIFFERS, FINE, console, json_option
from pol.cli.training_script import as_script, run_script, script_parts
from pol.errors import OperationalError

if TYPE_CHECKING:
    from pol.graph.refusals import Refusal


class _Refused(BaseException):
    """Ends a script whose capture is refused; not an Exception, which the script could catch."""


@click.command(epilog=example("pol capture --check train.py"))
@click.option("--check", is_flag=True, required=True, help="Find all that is refused, not only the first.")
@json_option
@click.argument("script", metavar="SCRIPT[:FUNCTION]")
def capture(script: str, check: bool, as_json: bool) -> int:
    """Run SCRIPT, or its FUNCTION, and print everything that its captures would refuse, with the way out.

    The script calls pol.capture or pol.exact. A function without arguments may return the arguments of a capture in
    place of that: a dictionary, or a tuple (model, loss, optimizer, dataset), with an order of the samples as fifth
    part if there is one. Ends with 1 if anything is refused.
    """
    from pol.graph.capture.assemble import OBSERVER
    from pol.graph.capture.check_capture import check_capture
    from pol.submission.task_function import task_parts

    found: list[Refusal] = []
    seen = 0

    def observe(*arguments: Any) -> None:
        nonlocal seen
        seen += 1
        found.extend(check_capture(*arguments))
        if found:
            raise _Refused

    path, function = script_parts(script)
    token = OBSERVER.set(observe)
    try:
        with as_script(path):
            result = run_script(path, function)
        if not seen and isinstance(result, Mapping | Sequence) and not isinstance(result, str):
            seen, found = 1, check_capture(**task_parts(result))
    except _Refused:
        pass
    finally:
        OBSERVER.reset(token)
    if not seen:
        raise OperationalError(
            f"{script} captured nothing: let it call pol.capture(...), or name a function that returns the arguments, "
            f"{path.name}:FUNCTION"
        )
    if as_json:
        print(json.dumps({"captures": seen, "refused": [vars(item) for item in found]}, indent=2))
    else:
        terminal = console()
        terminal.print(f"{len(found)} refused" if found else "nothing is refused: the step can be captured")
        if found:
            terminal.print(_table(found))
    return DIFFERS if found else FINE


def _table(found: Sequence[Refusal]) -> Table:
    """A row for each refusal."""
    table = Table("place", "refused", "instead", Column("times", justify="right"), box=SIMPLE)
    for item in found:
        texts = (item.line or "arguments of the capture", item.operation, item.way_out or "see docs/guides/capture.md")
        table.add_row(*(Text(text, overflow="fold") for text in texts), str(item.times))
    return table
