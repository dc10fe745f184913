"""Elements of HTML and SVG. Text is escaped on insertion, so strangers' input never becomes markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

# Second line of defense: injected markup could load and run nothing.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_EMPTY = frozenset({"meta"})
_NUMBER = re.compile(r"-|inf|nan|[-+]?[0-9][0-9,]*(\.[0-9]+)?(e[-+]?[0-9]+)?( ?%| [A-Za-z]{1,4})?")


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
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("title", title),
        element("style", Markup(style)),
    )
    return f"<!DOCTYPE html>\n{element('html', head, element('body', *content), lang='en')}\n"


def printable(text: str) -> str:
    """Text with control and bidirectional characters replaced by their escapes."""
    return "".join(c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text)


def table(head: Sequence[str], rows: Iterable[Sequence[str | Markup]]) -> Markup:
    """A table; cells that aren't `Markup` are escaped. On a phone each row is a block of lines with these titles.

    Columns of numbers are aligned at their right.
    """
    cells = [list(row) for row in rows]
    numeric = {at for at in range(len(head)) if cells and all(_is_number(row[at]) for row in cells)}
    kinds = [{"class_": "n"} if at in numeric else {} for at in range(len(head))]
    titles = (element("th", title, **kind) for title, kind in zip(head, kinds, strict=True))
    body = (
        element(
            "tr",
            *(
                element("td", cell, data_label=title, **kind)
                for cell, title, kind in zip(row, head, kinds, strict=True)
            ),
        )
        for row in cells
    )
    return element("table", element("thead", element("tr", *titles)), element("tbody", *body))


def _is_number(cell: str | Markup) -> bool:
    return not isinstance(cell, Markup) and _NUMBER.fullmatch(cell) is not None


def _number(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")
