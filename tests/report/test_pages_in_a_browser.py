"""All pages in a real Chromium, where there is one: no complaint, no request, nothing to scroll sideways on a phone."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import small_task
from cli_runner import pol
from lab.page_browser import PHONE, SCREEN, NoBrowser, browser, look_at
from lab.rounds.claim_dispute import walked
from lab.rounds.tiny_training import lying_run
from pol import Store
from pol.rounds import audit

pytestmark = pytest.mark.long

PAGES = ("accepted", "rejected", "inconclusive", "training", "rounds")


@pytest.fixture(scope="module")
def opened() -> Iterator[Any]:
    try:
        with browser() as found:
            yield found
    except NoBrowser as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory, opened: Any) -> Mapping[str, Path]:
    """Pages as the commands write them; the browser is asked for first, so that nothing is made in vain."""
    folder = tmp_path_factory.mktemp("pages")
    files = {name: folder / f"{name}.html" for name in PAGES}
    case = small_task.examined(folder / "store")
    for name, proof in (("accepted", case.honest), ("rejected", case.skipping)):
        pol("verify", folder / "store", proof, "--profile", case.profile, "--all", "--report", files[name])
    pol("verify", folder / "store", "00" * 32, "--report", files["inconclusive"])
    pol("report", folder / "store", case.skipping, "--profile", case.profile, "--out", files["training"])
    found = audit(Store(f"file://{lying_run(folder / 'run')}/store"))
    record = walked(found.rounds, found.rounds.claims[found.lies[0].claim]).record
    (folder / "run" / "dispute.json").write_text(json.dumps(record.to_dict() | {"ended_by": "resignation"}))
    pol("audit", folder / "run", "--report", files["rounds"])
    assert all(file.exists() for file in files.values())
    return files


@pytest.mark.parametrize("name", PAGES)
def test_on_a_phone_and_on_a_screen(opened: Any, pages: Mapping[str, Path], name: str) -> None:
    for size in (PHONE, SCREEN):
        for scheme in ("light", "dark"):
            found = look_at(opened, pages[name].as_uri(), size, scheme)
            for summary in found.page.locator("summary").all():
                summary.click()
            assert (found.troubles, found.scrolling) == ([], []), (name, size, scheme)
            found.page.context.close()


def test_what_is_too_wide_is_seen(opened: Any, tmp_path: Path) -> None:
    """The check itself: a table that doesn't fit, a complaint, a picture from elsewhere."""
    page = tmp_path / "wide.html"
    page.write_text(
        "<main><pre>" + "x" * 200 + "</pre><script>console.log('oh')</script><img src='http://192.0.2.1/a.png'></main>"
    )
    found = look_at(opened, page.as_uri())
    assert found.scrolling == ["HTML."]
    assert {"oh", "asks for http://192.0.2.1/a.png"} <= {*found.troubles}


@pytest.mark.parametrize("name", ["rejected", "rounds"])
def test_on_paper(opened: Any, pages: Mapping[str, Path], name: str) -> None:
    """Printed, a page has several sheets of A4, and its text is dark on white also for readers of dark screens."""
    found = look_at(opened, pages[name].as_uri(), SCREEN, "dark")
    paper = found.page.pdf(format="A4")
    assert paper.startswith(b"%PDF")
    assert paper.count(b"/Type /Page\n") >= 2
    found.page.emulate_media(media="print", color_scheme="light")
    ink, back = found.page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    assert (ink, back) == ("rgb(28, 33, 39)", "rgb(255, 255, 255)")
