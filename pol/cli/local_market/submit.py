"""``pol submit``: the training of a user's own model, put on a market and followed to its settlement."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape

from pol.chain.node.networks import is_test_net
from pol.cli.examples import defaulted, example
from pol.cli.file_output import DIFFERS, FINE, json_option
from pol.cli.local_market.market_folder_option import place_options
from pol.cli.training_script import as_script, run_script, script_parts

if TYPE_CHECKING:
    from pol.chain.desks.task_registry import MarketTask, Terms
    from pol.submission.market_place import MarketPlace
    from pol.submission.submission import Submission
    from pol.submission.task_progress import Step

ETHER = 10**18


@click.command(epilog=example("pol submit train.py:make_task --price 0.5"))
@click.argument("script", metavar="SCRIPT:FUNCTION")
@click.option("--price", required=True, metavar="COINS", help="The most that the solver is paid, e.g. 0.5.")
@place_options
@click.option("--steps", type=click.IntRange(1), help="If the function gives no order of the samples. [default: 300]")
@click.option("--batch", type=click.IntRange(1), help="The same. [default: 32]")
@defaulted("--seed", type=int, default=0, help="Of that order.")
@click.option("--interval", type=click.IntRange(1), help="Steps of a segment; it divides the steps.")
@defaulted("--draws", type=click.IntRange(1), default=3, help="Segments to verify.")
@click.option("--no-follow", is_flag=True, help="End when the task is on chain.")
@json_option
def submit(
    script: str,
    price: str,
    place: MarketPlace,
    steps: int | None,
    batch: int | None,
    seed: int,
    interval: int | None,
    draws: int,
    no_follow: bool,
    as_json: bool,
) -> int:
    """Put the training of your own model on a market, and follow it to its settlement.

    FUNCTION of your SCRIPT takes no arguments and returns (model, loss, optimizer, dataset), with an order of the
    samples as fifth part if you have one, or what pol.capture returns. It is run here; others get the captured step.

    Ends with 1 if the training isn't accepted: then nobody is paid for it, and the price is yours again.
    """
    from pol.chain.desks.task_registry import TaskOutcome
    from pol.submission import submission

    path, function = script_parts(script)
    if not function:
        raise click.UsageError(f"name the function that returns the task: {path}:make_task")
    submission.wei_of(price)
    show = _Lines(as_json)
    show.prepares(f"running {script}")
    with as_script(path):
        made = run_script(path, function)
    desks = place.deployment.market(place.connection)
    free = 0 if place.signer is None else desks.vault.free(place.signer.address)

    def announce(sent: Submission) -> None:
        terms = desks.registry.terms(sent.task_id)
        show.submitted(sent.id, terms, desks.settlement.escrow_of(terms))

    given: dict[str, Any] = {"steps": steps, "batch": batch, "interval": interval, "draws": draws, "seed": seed}
    sent = submission.submit(made, price, place, **given, tell=show.prepares, announce=announce)
    if not is_test_net(place.connection.chain_id) and not as_json:
        click.echo("pol: keep `pol run submitter` running, which demands the model if the solver hides it", err=True)
    if no_follow:
        return FINE
    for step in sent.progress():
        show.step(step)
    task = sent.task()
    assert place.signer is not None
    show.settled(sent.id, task, free - desks.vault.free(place.signer.address))
    return FINE if task.outcome is TaskOutcome.ACCEPTED else DIFFERS


class _Lines:
    """The output for people or programs."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._console = Console(highlight=False, soft_wrap=True)

    def prepares(self, doing: str) -> None:
        """Something begins that may take minutes."""
        if not self._as_json:
            click.echo(f"pol: {doing}", err=True)

    def submitted(self, task: str, terms: Terms, escrow: int) -> None:
        """The task is on chain."""
        segments = terms.steps // terms.interval
        if self._as_json:
            told = {"task": task, "steps": terms.steps, "segments": segments, "price": terms.maximum_price}
            _print({"event": "submitted", **told, "escrow": escrow})
            return
        self._console.print(f"[bold]Task {task[:8]}[/bold] is on chain: {terms.steps} steps in {segments} segments.")
        self._console.print(
            f"{escrow / ETHER:.6f} coins are in escrow: at most {terms.maximum_price / ETHER:.6f} for the solver, the "
            "rest for verifiers and watchers."
        )

    def step(self, step: Step) -> None:
        """Something has happened, or the task waits for something else."""
        if self._as_json:
            _print({"event": "progress", "time": step.time, "status": step.status.name.lower(), "what": step.what})
            return
        when = datetime.fromtimestamp(step.time, UTC).strftime("%H:%M:%S")
        is_phase = step.what.endswith(".")
        text = f"{when}  {step.what}" if is_phase else f"{when}    {step.what}"
        self._console.print(escape(text), style=None if is_phase else "dim")

    def settled(self, task: str, state: MarketTask, spent: int) -> None:
        """The end, and what it has cost."""
        from pol.chain.desks.task_registry import TaskOutcome

        outcome = state.outcome.name.lower()
        if self._as_json:
            _print({"event": "settled", "task": task, "outcome": outcome, "price": state.price, "spent": spent})
        elif state.outcome is TaskOutcome.ACCEPTED:
            cost = f"{spent / ETHER:.6f} coins, {state.price / ETHER:.6f} of them for the solver"
            self._console.print(f"[green]accepted[/green]: it has cost {cost}")
            self._console.print(f"the weights: pol fetch {task[:8]}")
        else:
            ended = f"the task has cost {spent / ETHER:.6f} coins"
            if spent < 0:
                ended = f"with a part of the solver's stake you have {-spent / ETHER:.6f} coins more than before"
            self._console.print(f"[yellow]{outcome}[/yellow]: the solver isn't paid, the price is yours again; {ended}")


def _print(told: dict[str, Any]) -> None:
    print(json.dumps(told), flush=True)
