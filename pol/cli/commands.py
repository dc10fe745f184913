"""The verbs of ``pol``. Each is imported when it is called, as some need torch or a chain.

A new verb is one entry of `GROUPS`.
"""

from __future__ import annotations

import importlib
from typing import cast

import click

from pol import __version__
from pol.cli.verb_group import VerbGroup
from pol.errors import OperationalError
from pol.extras import missing_extra

GROUPS = {
    "Record what a training did": {
        "capture": ("record.capture", "List what pol can't define in a training script, and ways out."),
        "doctor": ("record.doctor", "Kill and resume a trainer: is it as if nothing had happened?"),
        "commit": ("record.commit", "Compute the commitment of a model file, folder or record."),
        "check": ("record.check", "Check files against a commitment, or a record against itself."),
        "diff": ("record.diff", "Compare models or records: which tensors differ, since when."),
        "inspect": ("record.inspect", "Show what a file, a store or a checkpoint holds."),
        "log": ("record.log", "Show a record's log, and check that nothing was rewritten."),
        "serve": ("record.serve", "Serve a record over HTTP, read only."),
    },
    "Verify that it was done": {
        "verify": ("verification.verify", "Replay drawn segments of a training, and accept or reject."),
        "audit": ("verification.audit", "Check the signed claims of a training of many workers."),
        "profile": ("verification.profile", "Measure how far honest runs diverge, and set thresholds."),
        "sample": ("verification.sample", "Compute how many segments to replay to find cheating."),
        "beacon": ("verification.beacon", "Show the public random number that draws the segments."),
        "worker": ("verification.pull_worker", "Replay segments here for verifiers elsewhere."),
        "selftest": ("verification.selftest", "Check that this machine computes exactly the defined bits."),
    },
    "Dispute what is false": {
        "object": ("market.object", "Dispute one segment of a proof on the chain, with a bond."),
        "explain": ("market.explain", "Show where a task or a dispute stands, and whose turn it is."),
        "dispute": ("dispute.dispute", "Show a kept dispute: who picked what, and what was left."),
        "replay": ("dispute.replay", "Replay a kept dispute, and check every rule."),
    },
    "Market for trainings": {
        "up": ("local_market.up", "Run a whole market on this machine: node, parties, and a page."),
        "submit": ("local_market.submit", "Put your own model on a market, and follow it to settlement."),
        "fetch": ("local_market.fetch", "Write a task's trained weights, checked against the chain."),
        "price": ("market.price", "Show what a task would cost before it is submitted."),
        "stake": ("market.stake", "Deposit and withdraw money, and enrol to verify."),
        "run": ("market.run", "Run a party of a market, or a worker or keeper of rounds."),
        "explore": ("market.explore", "Show a market in the browser, live."),
        "report": ("market.report", "Write one HTML page about a training, or a whole market."),
    },
    "Operate a network": {
        "config": ("configuration.config", "Show or set the node, store and key that other verbs take."),
        "deploy": ("deployment.deploy", "Deploy the contracts on a chain, or check a deployment."),
        "monitor": ("market.monitor", "Recompute all balances and payments of a market, and alert."),
        "completion": ("completion", "Print the completion script of a shell."),
    },
    "Develop, learn, measure": {
        "demo": ("demo", "Start here: train, cheat, dispute and settle, in one run."),
        "bench": ("bench", "Measure the published figures on this machine."),
        "zk": ("zk.zk", "Prove training steps in zero knowledge, and verify proofs."),
    },
}
"""By title, as ``pol --help`` shows them: verbs, each with the module under ``pol.cli`` that holds its command, and
one line for newcomers."""
VERBS = {verb: module for group in GROUPS.values() for verb, (module, _) in group.items()}
"""By verb: the module under ``pol.cli``."""


class _Verbs(VerbGroup):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*VERBS, *self.commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return super().get_command(ctx, cmd_name)
        try:
            return cast(click.Command, getattr(importlib.import_module(f"pol.cli.{VERBS[cmd_name]}"), cmd_name))
        except ModuleNotFoundError as error:
            advice = missing_extra(error)
            if advice is None:
                raise
            return _without_extra(cmd_name, advice)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # From the table: a list of verbs must not depend on what each of them imports.
        width = max(map(len, VERBS))
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(verb.ljust(width), line) for verb, (_, line) in group.items()])


def _without_extra(verb: str, advice: str) -> click.Command:
    """A verb whose module needs an extra that isn't there: its help says so, anything else fails."""

    def fail() -> None:
        raise OperationalError(f"{advice}; the work of `pol {verb}` needs it")

    line = next(group[verb][1] for group in GROUPS.values() if verb in group)
    any_arguments = {"ignore_unknown_options": True, "allow_extra_args": True}
    return click.Command(verb, callback=fail, help=f"{line}\n\nIts options: {advice}", context_settings=any_arguments)


@click.group(
    cls=_Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "POL"},
    epilog="`pol VERB --help` has an example of each verb.",
)
@click.version_option(__version__, prog_name="pol")
def commands() -> None:
    """Proof of learning: pay strangers to train a neural network and know that the training was done."""
