"""Elements of HTML and SVG. Text is escaped when it is put into one, so nothing that strangers wrote is ever markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

# Even if markup of a stranger came through, it could load and run nothing.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_EMPTY = frozenset({"meta"})


class Markup(str):
    """What is markup already; only this module and pictures make it."""

    __slots__ = ()


def element(name: str, /, *children: str | Markup, **attributes: str | float) -> Markup:
    """An element; children that aren't `Markup` are text. Attributes are written with ``-`` for ``_``."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_number(value), quote=True)}"'
        for key, value in attributes.items()
    )
    if name in _EMPTY:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(children)}</{name}>")


def join(parts: Iterable[str | Markup]) -> Markup:
    """Parts one after the other."""
    return Markup("".join(part if isinstance(part, Markup) else escape(printable(part), quote=True) for part in parts))


def document(title: str, style: str, *content: str | Markup, policy: str = POLICY) -> str:
    """A page that opens from disk and, by its ``policy``, asks nobody for anything."""
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
    """Text in which a control character, or one that turns the direction of reading, shows as its escape."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def table(head: Sequence[str], rows: Iterable[Sequence[str | Markup]]) -> Markup:
    """A table; cells that aren't `Markup` are text."""
    titles = element("thead", element("tr", *(element("th", title) for title in head)))
    body = (element("tr", *(element("td", cell) for cell in row)) for row in rows)
    return element("div", element("table", titles, element("tbody", *body)), class_="wide")


def _number(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
