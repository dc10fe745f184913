"""Elements of HTML and SVG. Text is escaped on insertion, so strangers' input never becomes markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

# Second line of defense: injected markup could load and run nothing.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
PLAIN_STYLE = """
body { font: 15px/1.5 sans-serif; color: #212529; background: #fff; max-width: 900px; margin: 2em auto;
  padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2em; } svg { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: 13px; } th, td { text-align: left; padding: 3px 12px 3px 0; }
td { border-top: 1px solid #dee2e6; vertical-align: top; }
"""
_EMPTY = frozenset({"meta"})


class Markup(str):
    """A string that is markup already; only this module and pictures make it."""

    __slots__ = ()


def element(name: str, /, *children: str | Markup, **attributes: str | float) -> Markup:
    """An element; children that aren't `Markup` are escaped. ``_`` in attribute names becomes ``-``."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_number(value), quote=True)}"'
        for key, value in attributes.items()
    )
    if name in _EMPTY:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(children)}</{name}>")


def join(parts: Iterable[str | Markup]) -> Markup:
    """Concatenated parts; those that aren't `Markup` are escaped."""
    return Markup("".join(part if isinstance(part, Markup) else escape(printable(part), quote=True) for part in parts))


def document(title: str, style: str, *content: str | Markup, policy: str = POLICY) -> str:
    """A self-contained page; its ``policy`` forbids loading anything else."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width"),
        element("title", title),
        element("style", Markup(style)),
    )
    return f"<!DOCTYPE html>\n{element('html', head, element('body', *content), lang='en')}\n"


def printable(text: str) -> str:
    """Text with control and bidirectional characters replaced by their escapes."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def table(head: Sequence[str], rows: Iterable[Sequence[str | Markup]]) -> Markup:
    """A table; cells that aren't `Markup` are escaped."""
    titles = element("thead", element("tr", *(element("th", title) for title in head)))
    body = (element("tr", *(element("td", cell) for cell in row)) for row in rows)
    return element("div", element("table", titles, element("tbody", *body)), class_="wide")


def _number(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
