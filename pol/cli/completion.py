"""``pol completion SHELL``: the script with which a shell completes verbs and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from pol.cli.examples import example

SHELLS = {
    "bash": "echo 'eval \"$(pol completion bash)\"' >> ~/.bashrc",
    "zsh": "echo 'eval \"$(pol completion zsh)\"' >> ~/.zshrc",
    "fish": "pol completion fish > ~/.config/fish/completions/pol.fish",
}
"""By shell: the command that installs the script."""


@click.command(epilog=example(*SHELLS.values()))
@click.argument("shell", type=click.Choice(list(SHELLS)))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell: eval "$(pol completion bash)"."""
    kind = get_completion_class(shell)
    assert kind is not None, "click knows all shells of SHELLS"
    click.echo(kind(context.find_root().command, {}, "pol", "_POL_COMPLETE").source())
