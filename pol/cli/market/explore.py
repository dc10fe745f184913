"""``pol explore``: a live market and trainings in the browser. ``pol report`` writes the same pages as one file."""

from __future__ import annotations

import asyncio
import errno
import json
import re
import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click
from aiohttp import web

from pol.cli.examples import defaulted, example
from pol.cli.file_output import json_option
from pol.cli.finite_range import FiniteRange
from pol.cli.market.network_options import store_option
from pol.cli.market.party_options import MarketAccess, optional_chain_options
from pol.errors import OperationalError, ProtocolError, reason_of
from pol.report.elements.card_style import STYLE
from pol.report.elements.html_elements import Markup, document, element

if TYPE_CHECKING:
    from pol.cli.market.watched_training import WatchedTraining
    from pol.roles.monitor.market_reader import MarketReader
    from pol.roles.monitor.market_view import MarketView


FIRST_PORT = 8600
PORT = re.compile(r":\d+$")
POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self'"
LIVE = """
// Fetches the page again and replaces what changed; details that the reader has opened stay open.
setInterval(async () => {
  let text;
  try { text = await (await fetch(location.href)).text(); }
  catch { document.title = "(gone) " + document.title.replace("(gone) ", ""); return; }
  const next = new DOMParser().parseFromString(text, "text/html"), main = document.querySelector("main");
  const open = [...main.querySelectorAll("details")].map((d) => d.open);
  if (main.innerHTML === next.querySelector("main").innerHTML) return;
  next.querySelectorAll("details").forEach((d, i) => { d.open = open[i] ?? false; });
  main.replaceWith(next.querySelector("main"));
  document.title = next.title;
}, 2000);
"""


class Explorer:
    """Answers a browser's requests; the chain is read at most once every ``poll`` seconds."""

    def __init__(
        self, reader: MarketReader | None, poll: float, hosts: frozenset[str], trainings: Sequence[WatchedTraining] = ()
    ) -> None:
        self._reader, self._poll, self._hosts, self._trainings = reader, poll, hosts, trainings
        self._lock = asyncio.Lock()
        self._reading = asyncio.Lock()
        self._view: MarketView | None = None
        self._looked = 0.0

    def application(self) -> web.Application:
        """The aiohttp application."""
        from pol.chain.desks.market import Matter

        application = web.Application(client_max_size=1, middlewares=[self._guarded])
        application.add_routes(
            [
                web.get("/", self._overview),
                web.get("/task/{task:[0-9a-f]{64}}", self._task),
                web.get(f"/dispute/{{key:(?:(?:{'|'.join(Matter)})-)?[0-9]{{1,9}}}}", self._dispute),
                web.get("/training/{number:[0-9]{1,4}}", self._training),
                web.get("/data.json", self._data),
                web.get("/live.js", self._script),
            ]
        )
        return application

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Any) -> web.StreamResponse:
        """Answer only requests to this machine's names, so that no other site reads through the visitor's browser."""
        if PORT.sub("", request.host) not in self._hosts:
            return web.Response(status=403, text="this address isn't the explorer's")
        try:
            response: web.StreamResponse = await handler(request)
        except (OperationalError, ProtocolError) as error:
            told = element("p", f"It can't be read: {error}. This page tries again.", class_="lead")
            response = _page("pol: trouble", element("h1", "Trouble"), told)
            response.set_status(503)
        response.headers["Content-Security-Policy"] = POLICY
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Cache-Control"] = "no-store"
        return response

    async def _seen(self) -> MarketView:
        if self._reader is None:
            raise OperationalError("no market is shown here: start pol explore with --deployment and --rpc")
        async with self._lock:
            if self._view is None or time.monotonic() - self._looked >= self._poll:
                self._view = await asyncio.to_thread(self._reader.view)
                self._looked = time.monotonic()
            return self._view

    async def _overview(self, request: web.Request) -> web.StreamResponse:
        from pol.cli.market.watched_training import trainings_card
        from pol.report.market_page import overview

        async with self._reading:
            cards = await asyncio.to_thread(trainings_card, self._trainings)
        if self._reader is None:
            return _page("pol: trainings", element("h1", "Trainings"), *cards)
        view = await self._seen()
        return _page(f"pol: {len(view.tasks)} tasks", overview(view, _link, cards))

    async def _training(self, request: web.Request) -> web.StreamResponse:
        number = int(request.match_info["number"])
        if number >= len(self._trainings):
            return _missing("There is no such training here.")
        async with self._reading:
            content = await asyncio.to_thread(self._trainings[number].page)
        return _page("pol: a training", _home(), content)

    async def _task(self, request: web.Request) -> web.StreamResponse:
        from pol.report.market_page import task_page

        view, wanted = await self._seen(), request.match_info["task"]
        for task in view.tasks:
            if task.task_id.hex() == wanted:
                return _page(f"task {wanted[:8]}", _home(), task_page(task, view.time, _link))
        return _missing("There is no such task on this market.")

    async def _dispute(self, request: web.Request) -> web.StreamResponse:
        from pol.report.market_page import dispute_page

        view, wanted = await self._seen(), request.match_info["key"]
        for task in view.tasks:
            for dispute in task.disputes:
                if dispute.key == wanted:
                    return _page(f"dispute {wanted}", _home(), dispute_page(task, dispute, view.time, _link))
        return _missing("There is no such dispute on this market.")

    async def _data(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text=data(await self._seen()), content_type="application/json")

    async def _script(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text=LIVE, content_type="text/javascript")


def data(view: MarketView) -> str:
    """The content of the pages as JSON; moves of disputes are in the form of a record."""
    found = []
    for task in view.tasks:
        shown = {
            "task": task.task_id.hex(),
            "status": task.task.status.name.lower(),
            "waits": task.waits,
            "checkpoints": task.checkpoints,
            "drawn": list(task.drawn),
            "objections": asdict(task.objections),
        }
        disputes = [
            {
                "number": d.number,
                "matter": d.matter,
                "about": d.about,
                "asserter": d.asserter,
                "challenger": d.challenger,
                "winner": d.winner.name.lower(),
                "reason": d.reason.name.lower(),
                "until": d.until,
                "executed": asdict(d.executed) if d.executed is not None else None,
                "record": d.record.to_dict() if d.record is not None else None,
            }
            for d in task.disputes
        ]
        claims = [{"segment": v.segment, "outcome": v.outcome.name.lower(), "detail": v.detail} for v in task.verdicts]
        events = [asdict(happening) for happening in task.happenings]
        found.append({**shown, "until": task.until, "claims": claims, "events": events, "disputes": disputes})
    return json.dumps({"chain": view.chain_id, "block": view.block, "time": view.time, "tasks": found})


def _link(kind: str, key: str) -> str:
    return f"/{kind}/{key}"


def _home() -> Markup:
    return element("p", element("a", "All that is shown here", href="/"), class_="crumb")


def _page(title: str, *content: Markup) -> web.Response:
    script = element("script", src="/live.js")
    return web.Response(
        text=document(title, STYLE, element("main", *content), script, policy=POLICY), content_type="text/html"
    )


def _missing(told: str) -> web.Response:
    response = _page("pol: nothing here", _home(), element("p", told))
    response.set_status(404)
    return response


@click.command(epilog=example("pol explore --port 8600"))
@optional_chain_options
@store_option(required=False, default="memory://", what="Store of the tasks; without it, no lines of code.")
@click.option("--training", "urls", multiple=True, metavar="URL", help="A training in rounds; may be repeated.")
@defaulted("--host", default="127.0.0.1", help="Where to listen.")
@click.option("--port", type=click.IntRange(0, 65535), help="Without it 8600, or another one if that is in use.")
@defaulted("--poll", type=FiniteRange(0), default=2.0, help="Seconds between two looks.")
@click.option("--replay", is_flag=True, help="Replay disputed segments here: which side is right; the loss of proofs.")
@click.option("--test-terms", is_flag=True, help="Also show tasks with the terms of test networks.")
@json_option
def explore(
    market: MarketAccess | None,
    urls: tuple[str, ...],
    host: str,
    port: int | None,
    poll: float,
    replay: bool,
    test_terms: bool,
    as_json: bool,
) -> None:
    """Show a market and trainings in the browser: tasks, rounds, verdicts, disputes as they narrow. Holds no key."""
    from pol.cli.market.watched_training import WatchedTraining

    if market is None and not urls:
        raise click.UsageError("name what to show: a market (--deployment FILE and --rpc URL), or --training URL")
    reader = None if market is None else market_reader(market, test_terms, replay)
    trainings = [WatchedTraining(url) for url in urls]
    for watched in trainings:
        watched.look()
    explorer = Explorer(reader, poll, frozenset({host, "127.0.0.1", "localhost", "[::1]"}), trainings)
    try:
        asyncio.run(_serve(explorer, host, port, as_json))
    except OSError as error:
        place = host if port is None else f"{host}:{port}"
        raise OperationalError(f"can't listen at {place}: {reason_of(error)}") from error


def market_reader(market: MarketAccess, test_terms: bool, replay: bool = False) -> MarketReader:
    """The reader of a market."""
    from pol.roles.monitor.market_reader import MarketReader
    from pol.roles.party.policy import PUBLIC_CHAIN, TEST_NETWORK

    policy = TEST_NETWORK if test_terms else PUBLIC_CHAIN
    return MarketReader(market.connection, market.deployment, market.store_url, policy, replay)


async def _serve(explorer: Explorer, host: str, port: int | None, as_json: bool) -> None:
    runner = web.AppRunner(explorer.application(), access_log=None)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, FIRST_PORT if port is None else port).start()
        except OSError as error:
            if port is not None or error.errno != errno.EADDRINUSE:
                raise
            await web.TCPSite(runner, host, 0).start()
        url = f"http://{host}:{runner.addresses[0][1]}/"
        print(json.dumps({"url": url}) if as_json else url, flush=True)
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()
