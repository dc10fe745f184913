"""The verbs of ``pol``. Each is imported when it is called, as some need torch or a chain."""

from __future__ import annotations

import importlib
from difflib import get_close_matches
from typing import cast

import click

from pol import __version__

VERBS = {
    "audit": ("verification.audit", "Check the claims of a worker in a training of many: sources, then replays."),
    "beacon": ("verification.beacon", "Say which round of drand binds a claim, when it is due, and its seed."),
    "bench": ("bench", "Measure the figures of some areas now, on this machine."),
    "capture": ("record.capture", "Say all that a capture of a training script would refuse, with the way out."),
    "check": (
        "record.check",
        "Check files against their commitment, or a learning record against itself.",
    ),
    "commit": ("record.commit", "Commit to a safetensors file, a folder of them, or a learning record."),
    "completion": ("completion", "Print the completion script of a shell."),
    "demo": ("demo", "Train, verify, cheat, lie, dispute and settle: the whole protocol on handwritten digits."),
    "deploy": ("deployment.deploy", "Deploy the protocol, or the part of it that is missing."),
    "diff": ("record.diff", "Compare two files, folders or learning records: which tensors part, since when, how far."),
    "dispute": ("dispute.dispute", "Read a kept dispute: who picked what, and what was left."),
    "doctor": ("record.doctor", "Kill and resume a trainer: is a resumed training an uninterrupted one?"),
    "econ": ("incentives.econ", "How high stakes have to be, and what happens to parties that don't do their duty."),
    "explain": ("market.explain", "Say where a task or a dispute stands, whose turn it is and until when."),
    "explore": ("market.explore", "Look at a market in the browser: tasks, verdicts, and disputes as they narrow."),
    "inspect": ("record.inspect", "Say what a store, a checkpoint, an object or a file holds."),
    "log": ("record.log", "Show the log of a learning record, and check that nothing in it was rewritten."),
    "monitor": (
        "market.monitor",
        "Recompute balances, outcomes and payments of a whole market; show what waits for whom.",
    ),
    "object": (
        "market.object",
        "Object to one segment of a committed proof: replay it, lock the bond, open the dispute.",
    ),
    "price": ("market.price", "Say what a published task would cost, before it is submitted."),
    "profile": ("verification.profile", "Measure how much honest runs of a task diverge, and keep the profile."),
    "replay": ("dispute.replay", "Replay a kept dispute: claim, task and proof must agree, every rule is checked."),
    "report": ("market.report", "Write everything about a market into one page: tasks, verdicts, disputes."),
    "run": ("market.run", "Run a submitter, solver, verifier or whistleblower."),
    "sample": ("verification.sample", "Say how many segments have to be drawn and replayed to find cheating."),
    "selftest": ("verification.selftest", "Does this machine's GPU give the defined bits, and how fast is it?"),
    "serve": ("record.serve", "Serve a store read only: its record, its files, and chunks that prove themselves."),
    "stake": (
        "market.stake",
        "Bring money into the vault, take out what is free, feed the fund, enrol for seats and watches.",
    ),
    "verify": ("verification.verify", "Verify a learning proof, or that of a learning record."),
    "worker": ("verification.pull_worker", "Replay segments for verifiers who admit this worker's key."),
    "zk": ("zk.zk", "Prove gradient steps in zero knowledge, and verify such proofs."),
}
"""By verb: the module under ``pol.cli`` that holds its command, and its line in ``pol --help``."""


class _Verbs(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*VERBS, *self.commands})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return super().get_command(ctx, cmd_name)
        module, _ = VERBS[cmd_name]
        return cast(click.Command, getattr(importlib.import_module(f"pol.cli.{module}"), cmd_name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        # From the table: a list of verbs must not depend on what each of them imports.
        with formatter.section("Commands"):
            formatter.write_dl([(verb, line) for verb, (_, line) in VERBS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        verb = args[0]
        if verb not in VERBS and not verb.startswith("-"):
            near = get_close_matches(verb, VERBS, n=1)
            hint = f"did you mean `pol {near[0]}`?" if near else "`pol --help` lists them."
            raise click.UsageError(f"there is no verb {verb}: {hint}")
        return super().resolve_command(ctx, args)


@click.group(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "POL"})
@click.version_option(__version__, prog_name="pol")
def commands() -> None:
    """Proof of learning: pay strangers to train a neural network and know that the training was done."""
