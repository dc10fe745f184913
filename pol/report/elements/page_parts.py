"""Parts that pages share: cards, facts, badges, progress, moments in time, amounts of money."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

from pol.report.elements.card_style import STYLE
from pol.report.elements.html_elements import POLICY, Markup, document, element

ETHER = 10**18


def page_of(title: str, *content: str | Markup, policy: str = POLICY) -> str:
    """A whole page in the style of all pages."""
    return document(title, STYLE, element("main", *content), policy=policy)


def card(title: str, *content: str | Markup) -> Markup:
    """A card, below a heading if there is a title."""
    return box("card", *([element("h2", title)] if title else []), *content)


def box(kind: str, *content: str | Markup) -> Markup:
    """A block of a class of the style."""
    return element("div", *content, class_=kind)


def facts(pairs: Iterable[tuple[str, str | Markup]]) -> Markup:
    """Names with their values, side by side."""
    return element(
        "dl", *(element("div", element("dt", name), element("dd", value)) for name, value in pairs), class_="facts"
    )


def pairs(rows: Mapping[str, str | Markup]) -> Markup:
    """Names with long values, such as digests, one below the other."""
    return tabled((name, element("code", value)) for name, value in rows.items())


def tabled(rows: Iterable[tuple[str, str | Markup]]) -> Markup:
    """A table of two columns without titles."""
    lines = (element("tr", element("td", name, class_="name"), element("td", value)) for name, value in rows)
    return element("table", element("tbody", *lines))


def badge(words: str, kind: str = "") -> Markup:
    """A state in a word; ``kind`` is good, bad, live or nothing."""
    return element("span", words, class_=f"state {kind}".rstrip())


def note(words: str) -> Markup:
    """An explanation in small letters."""
    return element("p", words, class_="note")


def bullets(sentences: Iterable[str]) -> Markup:
    """Sentences, one below the other."""
    return element("ul", *(element("li", sentence) for sentence in sentences))


def folded(summary: str, *content: str | Markup) -> Markup:
    """Content that is shown on demand."""
    return element("details", element("summary", summary), *content)


def bar(share: float, told: str, color: str = "var(--link)", mark: float | None = None) -> Markup:
    """A bar that is full to ``share``, with a mark at another share."""
    parts = [element("i", style=f"width: {min(max(share, 0.0), 1.0):.1%}; background: {color}")]
    if mark is not None:
        parts.append(element("u", style=f"left: {mark:.1%}"))
    return element("div", *parts, class_="bar", title=told, role="img", aria_label=told)


def stages(names: Sequence[str], now: int, kind: str = "now") -> Markup:
    """The stages of a life in their order: those before ``now`` are done, that one is ``kind`` (now, done or lost)."""
    kinds = ["done" if at < now else kind if at == now else "later" for at in range(len(names))]
    items = (element("li", name, class_=kind) for name, kind in zip(names, kinds, strict=True))
    return element("ol", *items, class_="stages")


def moment(seconds: int) -> str:
    """A second of Unix time as people write it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def span(seconds: int) -> str:
    """A duration in its largest unit that leaves at least 2."""
    for unit, size in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def ether(amount: int) -> str:
    """An amount of the smallest unit in ETH (for a token, in its whole units, by the convention of 18 digits)."""
    return (f"{amount / ETHER:,.6f}".rstrip("0").rstrip(".") or "0") + " ETH"


def counted(count: int, one: str, many: str = "") -> str:
    """A number with its unit: ``1 claim``, ``3 claims``."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
