"""``pol run ROLE``: one party at work, for as long as it is left to run."""

from __future__ import annotations

import importlib
import json
import re
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from web3 import Web3

from pol.chain.account.gas_fees import GWEI, FeePolicy
from pol.chain.account.outbox_journal import kept_journal
from pol.cli.market.health_server import Vitals, serving
from pol.cli.market.party_gauges import PartyGauges
from pol.cli.market.party_options import Place, place_options, signer_of, signer_options
from pol.errors import ProtocolError
from pol.roles.party.decisions import Mode
from pol.roles.party.policy import PUBLIC_CHAIN, TEST_NETWORK, TrustedKey
from pol.roles.party.role import Role
from pol.roles.process.decision_log import Diary
from pol.roles.process.join_strategy import Strategy
from pol.roles.process.party_process import Process, Result, Taken
from pol.roles.process.process_loop import Running
from pol.roles.whistleblower.whistleblower import Whistleblower
from pol.training.storage.kept_store import KeptStore

KINDS = {
    "submitter": ("submitter.submitter:Submitter", "submitter.submitter_decisions:next_of_submitter"),
    "solver": ("solver.solver:Solver", "solver.solver_decisions:next_of_solver"),
    "verifier": ("verifier.verifier:Verifier", "verifier.verifier_decisions:next_of_verifier"),
    "whistleblower": (
        "whistleblower.whistleblower:Whistleblower",
        "whistleblower.watch_decisions:next_of_whistleblower",
    ),
}
"""The party and how it decides, imported when they are run: only a solver needs torch."""
STYLES = {
    Result.DONE: "green",
    Result.WAITED: "dim",
    Result.WITHHELD: "yellow",
    Result.REFUSED: "red",
    Result.FAILED: "red",
    Result.BROKEN: "red",
}


@click.command()
@click.argument("kind", type=click.Choice(sorted(KINDS)), metavar="ROLE")
@place_options
@signer_options
@click.option("--mode", type=click.Choice([m.name.lower() for m in Mode]), default="propose", show_default=True)
@click.option("--data", type=click.Path(path_type=Path), metavar="DIR", help="Its journal, diary and evidence.")
@click.option("--relay", "relays", multiple=True, metavar="URL", help="Where rounds of drand come from.")
@click.option("--poll", type=click.FloatRange(0.01), default=12.0, show_default=True, help="Seconds between two looks.")
@click.option("--turns", type=click.IntRange(1), metavar="N", help="End after so many; without it, run on.")
@click.option("--test-terms", is_flag=True, help="Accept the short windows of test networks.")
@click.option(
    "--trust-verifier",
    "trusted",
    multiple=True,
    metavar="ADDRESS=CIRCUIT:KEY",
    help="Of exact proofs of steps: what they prove, and the digest of the key (`pol zk exact verify`).",
)
@click.option("--least-pay", type=int, default=0, show_default=True, help="Wei that a whistleblower wants to expect.")
@click.option("--wrong-share", type=click.FloatRange(0, 1), default=Strategy.wrong, show_default=True)
@click.option("--work-cost", type=click.FloatRange(0), default=0.0, show_default=True, help="Wei for a unit of work.")
@click.option("--fee-cap", type=click.IntRange(1), default=500, show_default=True, help="Gwei for a unit of gas.")
@click.option("--metrics", metavar="HOST:PORT", help="Serve /metrics and /health there.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
def run(
    kind: str,
    deployment: Path,
    rpc: tuple[str, ...],
    quorum: int,
    store: str,
    mode: str,
    data: Path | None,
    relays: tuple[str, ...],
    poll: float,
    turns: int | None,
    test_terms: bool,
    trusted: tuple[str, ...],
    least_pay: int,
    wrong_share: float,
    work_cost: float,
    fee_cap: int,
    metrics: str | None,
    as_json: bool,
    **signer: Any,
) -> None:
    """Run a submitter, solver, verifier or whistleblower: it looks at every task and does what is due.

    All that it has to know is on the chain and in the store, so it may be killed at any time and started anywhere
    else with the same key. What it does and leaves alone, and why, is printed and kept: `pol explain`.

    Modes: watch sends nothing; defend also does what its money at stake asks for; resolve also makes the calls that
    anybody may make; propose also puts up new stakes.
    """
    place = Place.of(deployment, rpc, quorum, store)
    role_type, decide = (_imported(name) for name in KINDS[kind])
    policy = replace(TEST_NETWORK if test_terms else PUBLIC_CHAIN, trusted_verifiers=_verifiers(trusted))
    signs = signer_of(signer, place.connection.chain_id)
    fees = FeePolicy(cap=fee_cap * GWEI)
    contracts, rounds = place.deployment, place.rounds(relays)
    folder = data or Path(click.get_app_dir("pol")) / f"{place.deployment.chain_id}-{signs.address.lower()}"
    evidence = folder / "evidence"
    role: Role = role_type(place.connection, contracts, signs, place.store_url, policy, rounds, fees, evidence)
    if isinstance(role.store, KeptStore):
        role.store.forget()
    if isinstance(role, Whistleblower):
        role.strategy = Strategy(least=least_pay, wrong=wrong_share, work_cost=work_cost)
    show = _Lines(as_json)
    diary = Diary(folder / "diary.sqlite", show.trouble)
    role.wallet.keep(kept_journal(place.connection, role.wallet.address, folder, show.trouble), show.trouble)

    gauges = PartyGauges(Vitals(kind, place.connection), role)

    def note(taken: Taken) -> None:
        if diary.note(taken):
            gauges.decided(taken)
            show.decision(taken)

    enough = threading.Event()
    left = iter(range(turns - 1)) if turns is not None else None

    def sleep(seconds: float) -> bool:
        gauges.show(running.failures)
        if left is not None and next(left, None) is None:
            return True
        return enough.wait(seconds)

    def trouble(message: str) -> None:
        gauges.vitals.failing(running.failures + 1, message)
        show.trouble(message)

    running = Running(Process(role, decide, Mode[mode.upper()], note, poll), poll, trouble, sleep)
    try:
        with serving(gauges.vitals, metrics) as url:
            show.start(kind, role, mode, folder, url)
            running.run()
    except KeyboardInterrupt:
        show.trouble("told to stop: start it again with the same key, and it goes on where the chain stands")
    finally:
        diary.close()


def _verifiers(given: Sequence[str]) -> dict[str, TrustedKey]:
    found = dict[str, TrustedKey]()
    for text in given:
        address, _, named = text.partition("=")
        circuit, _, digest = named.rpartition(":")
        key = digest.removeprefix("0x")
        if not Web3.is_address(address):
            raise ProtocolError(f"{address} is no address of a verifier: 40 hex digits")
        if not circuit or not re.fullmatch("[0-9a-fA-F]{64}", key):
            raise ProtocolError(
                f"{text} doesn't say what is proved: ADDRESS=CIRCUIT:KEY names a circuit (`pol zk circuits`) and the "
                "digest of the verifying key, 64 hex digits (`pol zk exact verify`)"
            )
        found[Web3.to_checksum_address(address)] = TrustedKey(circuit, bytes.fromhex(key))
    return found


def _imported(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(f"pol.roles.{module}"), attribute)


class _Lines:
    """What a person, or a program, reads of a process."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._console = Console(highlight=False, soft_wrap=True)

    def start(self, kind: str, role: Role, mode: str, folder: Path, metrics: str | None) -> None:
        """Who begins, with what."""
        address, free = role.wallet.address, role.market.vault.free(role.wallet.address)
        tickets = role.market.sortition.tickets_now(address)
        if self._as_json:
            told = {"role": kind, "address": address, "mode": mode, "chain": role.connection.chain_id}
            _print(
                {"event": "start", **told, "free": free, "tickets": tickets, "data": str(folder), "metrics": metrics}
            )
            return
        self._console.print(f"[bold]{kind} {address}[/bold], mode {mode}, on chain {role.connection.chain_id}")
        self._console.print(f"free in the vault: {free} wei; tickets: {tickets}; diary: {escape(str(folder))}")
        if metrics:
            self._console.print(f"metrics: {metrics}/metrics  health: {metrics}/health")
        if not free:
            self._console.print("It can stake nothing yet: pol stake deposit", style="yellow")
        if kind in {"verifier", "whistleblower"} and not tickets:
            self._console.print("It can't be drawn for a seat or a watch yet: pol stake enrol", style="yellow")

    def decision(self, taken: Taken) -> None:
        """Something new about a task."""
        if self._as_json:
            told = {"event": "decision", "time": taken.at, "task": taken.task_id.hex(), "verb": taken.verb}
            _print({**told, "why": taken.why, "result": taken.result, "detail": taken.detail, "until": taken.until})
            return
        when = datetime.fromtimestamp(taken.at, UTC).isoformat(" ", "seconds").removesuffix("+00:00")
        text = f"{when}  {taken.task_id.hex()[:8]}  {taken.result:<8}  {taken.verb}: {taken.why}"
        if taken.detail:
            text += f" ({taken.detail})"
        self._console.print(escape(text), style=STYLES[taken.result])

    def trouble(self, message: str) -> None:
        """What goes wrong."""
        if self._as_json:
            _print({"event": "trouble", "message": message})
        else:
            print(f"pol: {message}", file=sys.stderr, flush=True)


def _print(told: dict[str, Any]) -> None:
    print(json.dumps(told), flush=True)
