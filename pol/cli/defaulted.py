"""An option with a default, which its help says."""

from functools import partial

import click

defaulted = partial(click.option, show_default=True)
"""`click.option` with `default`."""
