"""``pol run ROLE``: one party as a long-running process."""

from __future__ import annotations

import importlib
import json
import re
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click
from rich.console import Console
from rich.markup import escape

from pol.chain.account.gas_fees import GWEI, FeePolicy
from pol.chain.node.networks import outage_of
from pol.cli.examples import defaulted, example
from pol.cli.finite_range import FiniteRange
from pol.cli.market.party_options import MarketAccess, market_options, plan_of, signer_of, signer_options
from pol.cli.verification.verification_options import device_option, party_executors
from pol.cli.zk.zk_keys import CACHE
from pol.errors import ProtocolError
from pol.roles.party.decisions import Mode
from pol.roles.party.policy import PUBLIC_CHAIN, TEST_NETWORK

if TYPE_CHECKING:
    from pol.chain.account.signers import Signer
    from pol.roles.party.party import Party
    from pol.roles.party.policy import TrustedKey
    from pol.roles.process.party_process import LoggedDecision, PartyProcess


KINDS = {
    kind: (f"pol.roles.{kind}.{kind}:{kind.capitalize()}", f"pol.roles.{kind}.{kind}_decisions:next_of_{kind}")
    for kind in ("submitter", "solver", "verifier", "whistleblower")
}
"""The party and its decisions, imported when run: only a solver needs torch."""
ROUNDS = ("keeper", "worker")
"""Parties of trainings in rounds, whose deployment is that of `pol deploy --rounds`."""
STYLES = {"done": "green", "waited": "dim", "withheld": "yellow", "refused": "red", "failed": "red", "broken": "red"}
"""By `DecisionResult`."""
GIB = 1 << 30


@click.command(epilog=example("pol run whistleblower --mode watch"))
@click.argument("kind", type=click.Choice(sorted([*KINDS, *ROUNDS])), metavar="ROLE")
@market_options
@signer_options
@defaulted("--mode", type=click.Choice([m.name.lower() for m in Mode]), default="propose")
@click.option("--data", type=click.Path(path_type=Path), metavar="DIR", help="For its database and its evidence.")
@click.option("--relay", "relays", multiple=True, metavar="URL", help="A relay of drand rounds.")
@defaulted("--poll", type=FiniteRange(0.01), default=12.0, help="Seconds between two looks.")
@click.option("--turns", type=click.IntRange(1), metavar="N", help="End after so many; without it, run on.")
@click.option("--test-terms", is_flag=True, help="Accept the short windows of test networks.")
@click.option(
    "--trust-verifier",
    "trusted",
    multiple=True,
    metavar="ADDRESS=CIRCUIT:KEY",
    help="A trusted verifier of exact step proofs: its circuit, and the digest of its key (`pol zk exact verify`).",
)
@click.option(
    "--proving-keys",
    type=click.Path(path_type=Path),
    default=CACHE,
    metavar="DIR",
    help="A solver's keys of exact circuits (`pol zk exact prove --keys`), for tasks that ask for proofs.",
)
@defaulted(
    "--step-memory",
    type=FiniteRange(0, min_open=True),
    default=PUBLIC_CHAIN.max_step_bytes / GIB,
    help="GiB of a step's outputs that a dispute may have to hash; tasks with more are left alone.",
)
@click.option(
    "--outage",
    type=click.IntRange(0),
    metavar="SECONDS",
    help="Halt of the chain that terms have to survive; 6 hours on rollups, else 0.",
)
@defaulted("--least-pay", type=int, default=0, help="Least profit of a whistleblower, wei.")
@defaulted("--wrong-share", type=FiniteRange(0, 1), default=1 / 64)
@defaulted("--work-cost", type=FiniteRange(0), default=0.0, help="Wei per work unit.")
@click.option("--plan", metavar="ID", help="A worker's or keeper's plan, 64 digits; else that of the store's log.")
@click.option("--leave", is_flag=True, help="A worker or keeper takes its stake back as soon as nothing is open.")
@defaulted("--fee-cap", type=click.IntRange(1), default=500, help="Gwei per unit of gas.")
@click.option("--metrics", metavar="HOST:PORT", help="Serve /metrics and /health there.")
@device_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
def run(
    kind: str,
    market: MarketAccess,
    mode: str,
    data: Path | None,
    poll: float,
    turns: int | None,
    fee_cap: int,
    metrics: str | None,
    device: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Run a submitter, solver, verifier or whistleblower: it looks at every task and does what is due.

    A worker or keeper answers for one training in rounds, beside the processes that train: demands, disputes, lines,
    pay. It starts only if it has all that it may have to answer with, and copies it to its own folder.

    Its state is on the chain and in the store, so it may be killed at any time and restarted anywhere with the same
    key. Each decision is printed and kept with its reason: `pol explain`.

    Modes: watch sends nothing; defend also protects its money at stake; resolve also makes public calls; propose also
    puts up new stakes.
    """
    from pol.chain.account.outbox_journal import OutboxJournal
    from pol.cli.market.health_server import HealthMetrics, serve_health
    from pol.cli.market.party_gauges import PartyGauges
    from pol.roles.process.decision_log import DecisionLog
    from pol.roles.process.process_loop import ProcessLoop

    signs = signer_of(options, market.connection.chain_id)
    folder = data or Path(click.get_app_dir("pol")) / f"{market.connection.chain_id}-{signs.address.lower()}"
    party = _party_of_rounds if kind in ROUNDS else _party_of_market
    role, started = party(kind, market, signs, folder, FeePolicy(cap=fee_cap * GWEI), party_executors(device), options)
    if kind == "solver":
        role.proving_keys, role.device = options["proving_keys"], device
    show = _Lines(as_json)
    database = role.store.database
    log = DecisionLog(database, show.trouble)
    gauges = PartyGauges(HealthMetrics(kind, market.connection), role)
    role.wallet.keep(
        OutboxJournal.of(market.connection, role.wallet.address, database, show.trouble), gauges.heard(show.trouble)
    )

    def note(taken: LoggedDecision) -> None:
        if log.note(taken):
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

    running = ProcessLoop(started(Mode[mode.upper()], note, poll), poll, trouble, sleep)
    try:
        with closing(role.wallet.journal), serve_health(gauges.vitals, metrics) as url:
            show.start(kind, role, mode, folder, url)
            running.run()
    except KeyboardInterrupt:
        show.trouble("stopped: start it again with the same key, and it goes on where the chain stands")


Started: TypeAlias = "tuple[Any, Callable[..., PartyProcess[Any]]]"
"""A party, and its process, which is still to be told how to run."""
Options: TypeAlias = dict[str, Any]


def _party_of_rounds(
    kind: str, market: MarketAccess, signs: Signer, folder: Path, fees: FeePolicy, executors: Any, options: Options
) -> Started:
    from pol.roles.rounds.round_decisions import next_of_rounds
    from pol.roles.rounds.round_party import PlanProcess, RoundParty

    contracts, plan_id = market.round_contracts, plan_of(options["plan"], market.store_url)
    about = market.connection, contracts, signs, market.store_url, plan_id, folder
    role = RoundParty(*about, kind == "keeper", options["leave"], fees, executors)
    return role, partial(PlanProcess, role, next_of_rounds)


def _party_of_market(
    kind: str, market: MarketAccess, signs: Signer, folder: Path, fees: FeePolicy, executors: Any, options: Options
) -> Started:
    from pol.roles.process.party_process import Process
    from pol.roles.whistleblower.join_strategy import JoinStrategy

    role_type, decide = (_imported(name) for name in KINDS[kind])
    halt = outage_of(market.connection.chain_id) if options["outage"] is None else options["outage"]
    policy = replace(
        TEST_NETWORK if options["test_terms"] else PUBLIC_CHAIN,
        trusted_verifiers=_verifiers(options["trusted"]),
        max_step_bytes=int(options["step_memory"] * GIB),
        outage=halt,
    )
    about = signs, market.store_url, policy, market.rounds(options["relays"]), fees, folder
    role = role_type(market.connection, market.deployment, *about, executors=executors)
    role.store.forget()
    if kind == "whistleblower":
        work = options["work_cost"]
        role.strategy = JoinStrategy(least=options["least_pay"], wrong=options["wrong_share"], work_cost=work)
    return role, partial(Process, role, decide)


def _verifiers(given: Sequence[str]) -> dict[str, TrustedKey]:
    from web3 import Web3

    from pol.roles.party.policy import TrustedKey

    found = dict[str, TrustedKey]()
    for text in given:
        address, _, named = text.partition("=")
        circuit, _, digest = named.rpartition(":")
        key = digest.removeprefix("0x")
        if not Web3.is_address(address):
            raise ProtocolError(f"{address} is no address of a verifier: 40 hex digits")
        if not circuit or not re.fullmatch("[0-9a-fA-F]{64}", key):
            raise ProtocolError(
                f"{text} names no circuit and key: ADDRESS=CIRCUIT:KEY takes a circuit (`pol zk circuits`) and the "
                "digest of the verifying key, 64 hex digits (`pol zk exact verify`)"
            )
        found[Web3.to_checksum_address(address)] = TrustedKey(circuit, bytes.fromhex(key))
    return found


def _imported(name: str) -> Any:
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


class _Lines:
    """Output of a process for people or programs."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._console = Console(highlight=False, soft_wrap=True)

    def start(self, kind: str, role: Party, mode: str, folder: Path, metrics: str | None) -> None:
        """The party and its balances at the start."""
        address, free, tickets = role.wallet.address, role.vault.free(role.wallet.address), role.tickets()
        if self._as_json:
            told = {"role": kind, "address": address, "mode": mode, "chain": role.connection.chain_id, **role.state()}
            _print(
                {"event": "start", **told, "free": free, "tickets": tickets, "data": str(folder), "metrics": metrics}
            )
            return
        self._console.print(f"[bold]{kind} {address}[/bold], mode {mode}, on chain {role.connection.chain_id}")
        self._console.print(f"free in the vault: {free} wei; tickets: {tickets}; data: {escape(str(folder))}")
        if metrics:
            self._console.print(f"metrics: {metrics}/metrics  health: {metrics}/health")
        for name, value in role.state().items():
            self._console.print(f"{name}: {escape(str(value))}")
        if not free and kind not in ROUNDS:
            self._console.print("It can't stake yet: pol stake deposit", style="yellow")
        if kind in {"verifier", "whistleblower"} and not tickets:
            self._console.print("It can't be drawn for a seat or a watch yet: pol stake enrol", style="yellow")

    def decision(self, taken: LoggedDecision) -> None:
        """A new decision about a task."""
        if self._as_json:
            told = {"event": "decision", "time": taken.at, "task": taken.task_id.hex(), "verb": taken.verb}
            told |= {"mend": taken.mend} if taken.mend else {}
            _print({**told, "why": taken.why, "result": taken.result, "detail": taken.detail, "until": taken.until})
            return
        when = datetime.fromtimestamp(taken.at, UTC).isoformat(" ", "seconds").removesuffix("+00:00")
        text = f"{when}  {taken.task_id.hex()[:8]}  {taken.result:<8}  {taken.verb}: {taken.why}"
        if taken.detail:
            text += f" ({taken.detail})"
        self._console.print(escape(text), style=STYLES[taken.result])

    def trouble(self, message: str) -> None:
        """A failure."""
        if self._as_json:
            _print({"event": "trouble", "message": message})
        else:
            print(f"pol: {message}", file=sys.stderr, flush=True)


def _print(told: dict[str, Any]) -> None:
    print(json.dumps(told), flush=True)
