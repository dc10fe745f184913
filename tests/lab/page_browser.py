"""Pages in a real browser: what it complains about, what it asks others for, what is wider than the screen.

``python -m lab.page_browser PAGE PICTURE [WIDTH] [HEIGHT] [dark]`` takes a picture for the documentation.
"""

import importlib
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PHONE, SCREEN = (390, 844), (1100, 900)
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
WIDER = """[...document.querySelectorAll("*")].filter((e) => e.scrollWidth > e.clientWidth + 1 &&
  (e === document.documentElement || ["auto", "scroll"].includes(getComputedStyle(e).overflowX)))
  .map((e) => e.tagName + "." + e.className)"""


class NoBrowser(Exception):
    """There is none here; says what is missing."""


@dataclass
class PageLook:
    """An open page, and all that is wrong with it."""

    page: Any
    troubles: list[str] = field(default_factory=list)
    """What the console says, errors, and requests to other machines."""

    @property
    def scrolling(self) -> list[str]:
        """Elements that have to be scrolled sideways."""
        return list(self.page.evaluate(WIDER))


@contextmanager
def browser() -> Iterator[Any]:
    """A Chromium that is installed on this machine.

    Raises:
        NoBrowser: it isn't, or Playwright isn't.
    """
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        raise NoBrowser("no Chromium is installed here: apt-get install chromium, or .ci/setup --slow")
    try:
        playwright = importlib.import_module("playwright.sync_api")
    except ImportError as error:
        raise NoBrowser("Playwright isn't installed here: .ci/setup --slow") from error
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            yield opened
        finally:
            opened.close()


def look_at(opened: Any, url: str, size: tuple[int, int] = PHONE, scheme: str = "light") -> PageLook:
    """Open a page; an address of another machine counts as trouble."""
    context = opened.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
    found = PageLook(context.new_page())
    found.page.on("console", lambda message: found.troubles.append(message.text))
    found.page.on("pageerror", lambda error: found.troubles.append(str(error)))
    found.page.on("request", lambda request: found.troubles.extend(_remote(request.url)))
    found.page.goto(url)
    found.page.wait_for_selector("main")
    return found


def _remote(url: str) -> list[str]:
    return [] if url.startswith(("file://", "http://127.0.0.1:", "data:")) else [f"asks for {url}"]


def main(page: str, picture: str, width: str = "1100", height: str = "1400", scheme: str = "light") -> None:
    """Take a picture of the top of a page."""
    with browser() as opened:
        url = page if "://" in page else Path(page).resolve().as_uri()
        look_at(opened, url, (int(width), int(height)), scheme).page.screenshot(path=picture)


if __name__ == "__main__":
    main(*sys.argv[1:])
