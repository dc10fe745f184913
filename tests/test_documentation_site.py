"""The documentation as a site: it builds without a warning and without torch, and nothing is loaded from elsewhere."""

import json
import os
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from ended_process import ran
from lab.figures.committed_data import attacks, benchmarks, demo_moves
from lab.figures.drawn import FIGURES, drawn
from lab.page_browser import PHONE, SCREEN, look_at
from lab.public_api import PACKAGES, public_names
from report.test_pages_in_a_browser import opened  # noqa: F401 (a fixture)

pytestmark = pytest.mark.long

ROOT = Path(__file__).parent.parent
# `None` among the modules: an import of it fails.
BUILD = "import sys; sys.modules['torch'] = None; from mkdocs.__main__ import cli; cli()"


class Page(HTMLParser):
    """Links, names of places, and what a browser would load."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.places |= {value for key in ("id", "name") if (value := values.get(key))}
        target = values.get("href") or values.get("src")
        if tag == "a" and target:
            self.links.append(target)
        elif target and values.get("rel") != "canonical":
            self.loaded.append(target)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-c",
        BUILD,
        "build",
        "--strict",
        "-f",
        ROOT / ".ci" / "site" / "mkdocs.yml",
        "-d",
        folder,
    ]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    ran(command, cwd=ROOT, env=environment)
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    return {path: Page(path.read_text()) for path in site.rglob("*.html") if path.name != "404.html"}


def test_all_pages_are_there(site: Path, pages: dict[Path, Page]) -> None:
    documents = [path for path in (ROOT / "docs").rglob("*.md") if path.name != "README.md"]
    assert len(documents) > 100
    wanted = [site / path.relative_to(ROOT / "docs").with_suffix(".html") for path in documents]
    assert [path for path in [site / "index.html", site / "adr" / "index.html", *wanted] if path not in pages] == []


def test_the_home_page_is_the_readme(site: Path) -> None:
    home = (site / "index.html").read_text()
    for title in re.findall(r"^## (.+)$", (ROOT / "README.md").read_text(), re.M):
        assert title.replace("'", "&#39;") in home or title in home


@pytest.mark.parametrize("package", PACKAGES)
def test_all_public_names_are_explained(pages: dict[Path, Page], site: Path, package: str) -> None:
    page = pages[site / "python" / f"{package}.html"]
    assert {f"{package}.{name}" for name in public_names(package) if not name.startswith("_")} <= page.places


def test_nothing_is_loaded_from_elsewhere(pages: dict[Path, Page], site: Path) -> None:
    loaded = {target for page in pages.values() for target in page.loaded}
    assert len(loaded) > 10
    assert [target for target in loaded if re.match(r"(\w+:)?//", target)] == []
    assert [path for path in site.rglob("*.css") if re.search(r"url\([\"']?https?:|@import", path.read_text())] == []


def test_links_lead_to_pages_and_places(pages: dict[Path, Page], site: Path) -> None:
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            place = unquote(parts.fragment)
            if not target.exists() or (place and target in pages and place not in pages[target].places):
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []


def test_lists_and_tables_are_rendered(pages: dict[Path, Page]) -> None:
    """What GitHub shows as a list or a table may be a paragraph here: a blank line or an indentation is missing."""
    flat = re.compile(r"<p>(?:- |\* |\| |\d+\. )|^(?:- |\| ).*$", re.M)
    for path in pages:
        body = re.sub(r"<pre.*?</pre>|<script.*?</script>", "", path.read_text(), flags=re.S)
        assert flat.findall(body) == [], path.name


def test_nested_lists_have_four_spaces() -> None:
    """With fewer, Python-Markdown makes one list of two, and ends it before a paragraph or a table of an item."""
    for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        text = re.sub(r"^ *```.*?^ *```$", "", path.read_text(), flags=re.M | re.S)
        assert re.findall(r"^ {1,3}(?:[-*]|\d+\.) .*$|(?<=\n\n) {1,3}\S.*$", text, re.M) == [], path


def test_the_search_index_has_all_parts(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text())
    places = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert {"index.html", "spec/dispute.html", "adr/0019-drand.html", "python/pol.html", "comparison.html"} <= places
    assert (site / "search" / "search_index.js").exists(), "without it a browser can't search from disk"


def test_pictures_are_those_of_the_data() -> None:
    kept = {path.name: path.read_text() for path in FIGURES.glob("*.svg")}
    assert kept == drawn(), "run: PYTHONPATH=tests python -m lab.figures.drawn"


def test_pictures_count_what_the_tables_count() -> None:
    measured = benchmarks()
    assert sum(attack.passes for attack in attacks()) == measured["survive_tolerance"].value
    assert [move.gas is None for move in demo_moves()].count(True) == 1
    assert demo_moves()[-1].remains == "nothing: decided"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, SCREEN], ids=["phone", "screen"])
def test_in_a_browser(site: Path, opened: Any, size: tuple[int, int], scheme: str) -> None:  # noqa: F811
    """From disk: no page is wider than the screen, nothing complains, and the search finds."""
    for name in ("benchmarks", "attacks", "figures", "comparison", "python/pol", "spec/dispute", "adr/index", "index"):
        look = look_at(opened, (site / f"{name}.html").as_uri(), size, scheme)
        assert look.page.evaluate("document.documentElement.scrollWidth") <= size[0], name
        assert look.troubles == [], name
        if name != "index":
            look.page.context.close()
    if size == PHONE:
        look.page.locator("label[for=__search]").first.click()
    look.page.locator(".md-search__input").press_sequentially("whistleblower")
    look.page.wait_for_selector(".md-search-result__item", timeout=60_000)
    assert look.troubles == []
    look.page.context.close()
