"""A command with verbs of its own that suggests the nearest one for a verb that isn't there."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from typing import Any

import click


class VerbGroup(click.Group):
    """A group whose errors suggest a verb of `list_commands`, which may not be imported yet."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb; an interrupt leaves a terminal's ^C on a line of its own, and nothing in a file.

        Raises:
            click.Abort: the verb was interrupted.
        """
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            if sys.stderr.isatty():
                click.echo(err=True)
            raise click.Abort from error

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb that arguments begin with. Raises click.UsageError: there is no such verb."""
        verb, verbs = args[0], self.list_commands(ctx)
        if verb not in verbs and not verb.startswith("-"):
            near = get_close_matches(verb, verbs, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"`{ctx.command_path} --help` lists them."
            raise click.UsageError(f"No such command {verb!r}. {hint}")
        return super().resolve_command(ctx, args)
