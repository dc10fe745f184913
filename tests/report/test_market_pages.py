"""Pages about a market: what they show of a dispute under way, live in a browser, and as one file."""

import contextlib
import http.client
import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from anvil_node import anvil_node
from cli_runner import Said, pol
from lab.benchmarks.market_processes import AT_ANY_PRICE, Arena
from lab.benchmarks.role_drills import OFFER, small
from lab.page_browser import PHONE, SCREEN, NoBrowser, browser, look_at
from pol.chain.node.connection import Connection
from pol.demo.cheating_parties import LyingVerifier
from pol.dispute.position import Side
from pol.report.market_page import dispute_page, whole
from pol.roles.monitor.market_reader import MarketReader
from pol.roles.monitor.market_view import DisputeView, MarketView
from pol.roles.process.party_process import Process
from pol.roles.verifier.verifier_decisions import next_of_verifier
from pol.roles.whistleblower.whistleblower import Whistleblower
from pol.roles.whistleblower.whistleblower_decisions import next_of_whistleblower

pytestmark = pytest.mark.long


@dataclass
class Scene:
    """A lying verdict in dispute, and both players."""

    place: Arena
    document: Path
    liar: Process[Any]
    seen: Process[Any]

    def surveyor(self) -> MarketReader:
        return MarketReader(self.place.connection, self.place.deployment, self.place.store_url)

    def view(self) -> MarketView:
        return self.surveyor().view()

    def dispute(self) -> DisputeView:
        return self.view().tasks[0].disputes[-1]

    def options(self) -> tuple[str, ...]:
        return (
            "--deployment",
            str(self.document),
            "--rpc",
            self.place.connection.name,
            "--store",
            self.place.store_url,
        )

    def move(self) -> None:
        """One side moves."""
        before = self.dispute()
        for _ in range(20):
            for party in (self.seen, self.liar):
                party.turn()
                if (self.dispute().until, self.dispute().winner) != (before.until, before.winner):
                    return
        raise AssertionError("nobody moves")


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("scene")
    with anvil_node() as url:
        place = Arena(Connection.to(url), folder / "store")
        whistleblower = place.join(Whistleblower, "whistleblower")
        whistleblower.strategy = AT_ANY_PRICE
        liar = place.join(LyingVerifier, "liar", 7)
        task_id = place.challengeable(small(), OFFER, liar)
        document = folder / "deployment.json"
        document.write_text(place.deployment.to_json())
        seen = Process(whistleblower, next_of_whistleblower)
        for _ in range(20):
            if whistleblower.market.challenges.disputes(task_id):
                break
            seen.turn()
        yield Scene(place, document, Process(liar, next_of_verifier), seen)


def text(page: str) -> str:
    return " ".join(page.split())


def test_without_a_store_the_clock_is_shown_and_the_moves_are_not(scene: Scene) -> None:
    view = MarketReader(scene.place.connection, scene.place.deployment, "memory://").view()
    (dispute,) = view.tasks[0].disputes
    assert dispute.record is None
    page = dispute_page(view.tasks[0], dispute, view.time, lambda kind, key: key)
    assert "can&#x27;t be shown" in page
    assert "side on turn moves until" in page, page


def test_a_replay_says_who_is_right(scene: Scene) -> None:
    place = scene.place
    view = MarketReader(place.connection, place.deployment, place.store_url, replay=True).view()
    (dispute,) = view.tasks[0].disputes
    assert dispute.right is Side.CHALLENGER
    page = dispute_page(view.tasks[0], dispute, view.time, lambda kind, key: key)
    assert "A replay here says that the challenger is right" in page
    shown = dispute_page(view.tasks[0], scene.dispute(), view.time, lambda kind, key: key)
    assert "A replay here" not in shown
    role: Any = scene.seen.role
    claim, _ = role.disputed(view.tasks[0].task_id, 1)
    name = role.proof(view.tasks[0].task_id).checkpoints[claim.segment + 1].object
    (hidden,) = scene.document.parent.glob(f"store/*/{name}")
    hidden.rename(hidden.with_suffix(".hidden"))  # who can't see it says nothing
    (dispute,) = MarketReader(place.connection, place.deployment, place.store_url, replay=True).view().tasks[0].disputes
    hidden.with_suffix(".hidden").rename(hidden)
    assert dispute.right is Side.NONE


def test_a_dispute_under_way(scene: Scene) -> None:
    view = scene.view()
    (task,) = view.tasks
    (dispute,) = task.disputes
    assert dispute.winner is Side.NONE
    assert dispute.record is not None
    page = dispute_page(task, dispute, view.time, lambda kind, key: f"/{kind}/{key}")
    assert "or loses in" in page
    assert "Next: the other side answers" in page
    assert "replay in claim 0" in page
    assert f"/task/{task.task_id.hex()}" in page
    assert [verdict.outcome.name for verdict in task.verdicts]
    told = [happening.what for happening in task.happenings]
    assert told[0].startswith("submitted")
    assert told[-1] == "challenged the verdict"
    assert [h.time for h in task.happenings] == sorted(h.time for h in task.happenings)
    before = page.count("<rect")
    scene.move()
    page = dispute_page(task, scene.dispute(), scene.view().time, lambda kind, key: f"/{kind}/{key}")
    assert page.count("<rect") > before


def test_what_strangers_wrote_is_text(scene: Scene) -> None:
    view = scene.view()
    (dispute,) = view.tasks[0].disputes
    assert dispute.names is not None
    evil = "<script>alert(1)</script>"
    nodes = tuple(replace(node, name=evil, source=evil) for node in dispute.names.nodes)
    bent = replace(dispute, names=replace(dispute.names, nodes=nodes), about=evil, missing=evil)
    page = whole(replace(view, tasks=(replace(view.tasks[0], disputes=(bent,), waits=evil),)))
    assert "<script" not in page.lower()
    assert "&lt;script&gt;" in page


def test_one_file(scene: Scene, tmp_path: Path) -> None:
    out = tmp_path / "market.html"
    assert pol("report", *scene.options(), "--out", out) == Said(0, match="1 tasks and 1 disputes")
    page = out.read_text()
    (task,) = scene.view().tasks
    for name in ("task-" + task.task_id.hex(), f"dispute-{task.disputes[0].key}"):
        assert f'id="{name}"' in page
        assert f'href="#{name}"' in page
    assert "default-src &#x27;none&#x27;" in page
    assert "Anybody may object to any segment" not in page  # nobody has
    count = f"{task.terms.steps:,} of {task.terms.steps:,} steps"
    for words in ("Next: what nobody refutes is settled", count, "ETH"):
        assert words in text(page), words
    assert pol("report", *scene.options(), "--out", tmp_path / "none" / "x.html") == Said(3, match="can't write")


@pytest.fixture(scope="module")
def site(scene: Scene) -> Iterator[str]:
    command = [sys.executable, "-m", "pol.cli.main", "explore", *scene.options(), "--port", "0", "--poll", "0.2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.terminate()
        assert process.wait() == 130


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_the_site(scene: Scene, site: str) -> None:
    (task,) = scene.view().tasks
    code, page = get(site)
    assert code == 200
    assert f'href="/task/{task.task_id.hex()}"' in page
    for path in (f"task/{task.task_id.hex()}", f"dispute/{task.disputes[0].key}", "live.js"):
        assert get(site + path)[0] == 200, path
    for path in (f"task/{'0' * 64}", "dispute/99", "dispute/profile-1"):
        assert get(site + path)[0] == 404, path
    for path in ("etc/passwd", "task/../..", "task/XYZ"):
        assert get(site + path)[0] == 404, path
    scene.move()
    while not (shown := json.loads(get(site + "data.json")[1]))["tasks"][0]["disputes"][0]["record"]["moves"]:
        time.sleep(0.2)
    assert shown["tasks"][0]["task"] == task.task_id.hex()


def test_a_page_of_a_stranger_cannot_read_through_the_browser(site: str) -> None:
    """Its name may resolve to this machine; the browser says which name it asked for."""
    host, _, port = site.removeprefix("http://").strip("/").partition(":")
    connection = http.client.HTTPConnection(host, int(port))
    for name, code in ((f"evil.example:{port}", 403), ("evil.example", 403), ("127.0.0.1", 200), ("[::1]:80", 200)):
        connection.request("GET", "/live.js", headers={"Host": name})
        response = connection.getresponse()
        response.read()
        assert response.status == code, name
    connection.close()


def test_a_port_that_is_taken(scene: Scene, site: str) -> None:
    port = site.rstrip("/").rpartition(":")[2]
    assert pol("explore", *scene.options(), "--port", port) == Said(3, match="choose another port")


@pytest.mark.timeout(900)
def test_in_a_browser(scene: Scene, site: str, tmp_path: Path) -> None:
    """Chromium: nothing complains, nothing scrolls sideways on a phone, and a move shows without a reload."""
    with contextlib.ExitStack() as stack:
        try:
            opened = stack.enter_context(browser())
        except NoBrowser as error:
            pytest.skip(str(error))
        (task,) = scene.view().tasks
        paths = ("", f"task/{task.task_id.hex()}", f"dispute/{task.disputes[0].key}")
        for name, size in (("phone", PHONE), ("screen", SCREEN)):
            for scheme in ("light", "dark"):
                for number, path in enumerate(paths):
                    found = look_at(opened, site + path, size, scheme)
                    assert (found.troubles, found.scrolling) == ([], []), path
                    found.page.screenshot(path=tmp_path / f"{name}-{scheme}-{number}.png", full_page=True)
                    found.page.context.close()
        page = look_at(opened, site + paths[2]).page
        page.locator("summary").click()
        page.evaluate("window.stillTheSamePage = true")
        before = page.locator("svg rect").count()
        for _ in range(20):
            scene.move()
            if scene.dispute().winner is not Side.NONE:
                break
            # Not by a function in the page: its policy lets nobody evaluate anything.
            while (now := page.locator("svg rect").count()) == before:
                time.sleep(0.1)
            assert now > before
            before = now
            assert page.locator("details").get_attribute("open") is not None
        page.get_by_text("has won").wait_for(timeout=60_000)
        assert page.evaluate("window.stillTheSamePage")
        page.screenshot(path=tmp_path / "won.png", full_page=True)
