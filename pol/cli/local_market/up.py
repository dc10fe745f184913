"""``pol up``: a whole market on this machine, until ^C; the same command goes on with it later."""

from __future__ import annotations

import json
import signal
import time
import webbrowser
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape

from pol.cli.examples import defaulted, example
from pol.errors import OperationalError
from pol.local_market.market_processes import MarketProcesses

if TYPE_CHECKING:
    from pol.chain.node.connection import Connection
    from pol.local_market.market_run import MarketRun


FOLDER = Path("pol-market")
READY_SECONDS = 120.0
LIARS = {"solver": "solver", "verifier": "verifier-1"}
"""The party that lies, by role."""


@click.command(epilog=example("pol up", "pol up --cheat solver"))
@defaulted("--folder", type=click.Path(path_type=Path), default=FOLDER, metavar="DIR")
@click.option("--cheat", type=click.Choice(sorted(LIARS)), help="Let one of these lie, and see it caught.")
@defaulted("--port", type=click.IntRange(1, 65535), default=8545, help="Of the node, if free.")
@click.option("--embedded", is_flag=True, help="Use the embedded chain, also if there is anvil.")
@click.option("--no-browser", is_flag=True, help="Don't open the page of the market.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
def up(folder: Path, cheat: str | None, port: int, embedded: bool, no_browser: bool, as_json: bool) -> None:
    """Run a whole market on this machine: a node, the contracts, a solver, two verifiers, a whistleblower, a page.

    Submit a task to it from another terminal: pol submit train.py:make_task --price 1. ^C ends all that was started
    here; the same command goes on where it ended.

    The chain's clock runs twelve times as fast as this machine's: a block a second, twelve seconds apart.
    """
    from pol.local_market.local_node import start_node
    from pol.local_market.market_folder import MarketFolder
    from pol.local_market.market_run import MarketRun
    from pol.local_market.market_setup import MEMBERS, favor, set_up

    began = time.monotonic()
    show = _Lines(as_json)
    market = MarketFolder(folder)
    signal.signal(signal.SIGHUP, _hang_up)
    with market.locked():
        processes = MarketProcesses(market.processes)
        if orphans := processes.end_orphans():
            show.said(f"ended {orphans} processes that a killed `pol up` had left")
        try:
            connection = start_node(market, processes, market.port or port, embedded)
            show.said(f"the chain {connection.chain_id} is at {connection.name} ({connection.web3.client_version})")
            if market.is_ready:
                show.said(f"goes on with the market in {market.path}, at block {connection.block_number()}")
            else:
                set_up(connection, market, show.said)
            market.write_place(connection.name)
            liar = None if cheat is None else LIARS[cheat]
            if liar is not None and MEMBERS[liar].tickets:
                favor(connection, market, liar)
            run = MarketRun(market, processes, liar)
            run.start(connection)
            _wait_for_all(run, show)
            show.ready(run, connection, time.monotonic() - began)
            if not no_browser:
                webbrowser.open(run.page)
            while True:
                time.sleep(0.3)
                for name, told in run.decisions():
                    show.decision(name, told)
                for sentence in run.revive():
                    show.said(sentence)
        except KeyboardInterrupt:
            for number in (signal.SIGINT, signal.SIGTERM):
                # Whoever asks again while processes end changes nothing.
                signal.signal(number, signal.SIG_IGN)
            processes.end()
            if not market.is_ready:
                raise
            show.said(f"ended; `pol up --folder {folder}` goes on from here")
        finally:
            processes.end()


def _hang_up(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _wait_for_all(run: MarketRun, show: _Lines) -> None:
    """Return when all parties run, and the explorer. Raises OperationalError: one doesn't."""
    from pol.local_market.market_run import EXPLORER
    from pol.local_market.market_setup import MEMBERS

    deadline, known = time.monotonic() + READY_SECONDS, set[str]()
    awaited = {EXPLORER, *MEMBERS}
    while known < awaited:
        time.sleep(0.1)
        for name in sorted(run.started() - known):
            known.add(name)
            liar = ", which lies" if name == run.liar else ""
            show.said(f"the {name}{liar} runs as process {run.processes.pids()[name]}")
        for sentence in run.revive():
            show.said(sentence)
        if time.monotonic() > deadline:
            missing = ", ".join(sorted(awaited - known))
            raise OperationalError(f"no sign of life of {missing}: see the files in {run.folder.logs}")


class _Lines:
    """The output for people or programs."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._console = Console(highlight=False, soft_wrap=True)

    def said(self, sentence: str) -> None:
        """A step of the start or of the end."""
        if self._as_json:
            _print({"event": "progress", "message": sentence})
        else:
            self._console.print(escape(sentence), style="dim")

    def ready(self, run: MarketRun, connection: Connection, seconds: float) -> None:
        """All parties run."""
        from pol.local_market.local_node import BLOCK_SECONDS

        pids, place = run.processes.pids(), {"rpc": connection.name, "page": run.page, "folder": str(run.folder.path)}
        if self._as_json:
            _print({"event": "ready", **place, "seconds": round(seconds, 1), "processes": pids})
            return
        self._console.print(f"[bold]The market runs[/bold]: {len(pids)} processes, after {seconds:.0f} s.")
        self._console.print(f"page      {run.page}")
        self._console.print(f"clock     a block every second, which counts as {BLOCK_SECONDS} s")
        where = "" if run.folder.path == FOLDER.resolve() else f" --market {run.folder.path}"
        self._console.print(f"submit    pol submit train.py:make_task --price 1{where}", end="")
        self._console.print("     (in another terminal, here)" if not where else "")
        self._console.print("end       ^C")

    def decision(self, name: str, told: dict[str, Any]) -> None:
        """What a party has done, and faults of pol."""
        if self._as_json:
            _print({"party": name, **told})
        elif told.get("event") == "decision" and told.get("result") in {"done", "broken"}:
            # Lost races for calls that anybody may make, and waits, are in the files of the parties.
            when = datetime.fromtimestamp(told["time"], UTC).strftime("%H:%M:%S")
            text = f"{when}  {name:<14} {told['task'][:8]}  {told['verb']}: {told['why']}"
            if told["result"] == "broken":
                text += f" ({told['detail']})"
            self._console.print(escape(text), style="green" if told["result"] == "done" else "red")


def _print(told: dict[str, Any]) -> None:
    print(json.dumps(told), flush=True)
