"""What the help of a verb shows: examples, of which tests parse every one, and defaults."""

from __future__ import annotations

from functools import partial

import click

defaulted = partial(click.option, show_default=True)
"""An option with a `default`, which its help says."""


def example(*lines: str) -> str:
    """The epilog of a command that shows command lines, each as it is typed."""
    return "\n".join(["\b", "Example:" if len(lines) == 1 else "Examples:", *(f"  {line}" for line in lines)])
