"""The page says what came out, stands alone, and shows what strangers wrote as the text that it is."""

import math
from dataclasses import replace
from html.parser import HTMLParser
from types import SimpleNamespace
from typing import Any

import pytest

from pol.claims.segment_claim import SegmentClaim
from pol.report import charts
from pol.report.html_elements import Markup, element, table
from pol.report.verification_page import page
from pol.verification.engines.engine import ExaminedSegment
from pol.verification.examination.proof_examination import SegmentDraw, conclude
from pol.verification.examination.screening import Suspicion
from pol.verification.examination.verification_report import VerificationReport
from pol.verification.verdict.verdict import Outcome, Reason, Verdict, decide

HOSTILE = (
    "</code></title></style><script src=//evil.example/x.js>alert(1)</script><img src=x onerror='a()'>\"'&\x1b[2J\u202e"
)
LIMITS = (1 << 40, 1 << 40, 1 << 40)


class Page(HTMLParser):
    """Elements with their attributes, and all text."""

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == [], "an element that isn't closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def verdict(segment: int, distance: int) -> Verdict:
    roots = (b"\1" * 32, b"\2" * 32, b"\3" * 32)
    return decide(SegmentClaim(segment, *roots, (distance, 0, 0), (1 << 80, 0, 1)), LIMITS)


def found(text: str = "model") -> VerificationReport:
    """A verification in which every text is a stranger's."""
    document = SimpleNamespace(steps=12, segments=6, interval=2, model=text, optimizer=text)
    proof = SimpleNamespace(log_root=bytes(32), environment={text: text})
    subject: Any = SimpleNamespace(task=SimpleNamespace(digest="ab" * 32, document=document), proof=proof)
    lost = Verdict(5, Outcome.INCONCLUSIVE, (Reason.NOT_AVAILABLE,), text)
    examined = [
        ExaminedSegment(verdict(1, 0), {text: (0.75, 0.5)}),
        ExaminedSegment(verdict(3, 1 << 79), {text: (math.nan, 0.25)}),
        ExaminedSegment(verdict(4, 1 << 200)),
        ExaminedSegment(lost),
    ]
    return VerificationReport(
        store=text,
        proof=text,
        profile=text,
        engine="local",
        verdict=conclude(examined),
        thresholds=LIMITS,
        subject=subject,
        draw=SegmentDraw(6, bytes(32), (3, 1, 4), 1, (5,)),
        suspicions=(Suspicion(3, 9.0, 8.0), Suspicion(5, math.nan, math.inf), Suspicion(0, 1.0, 1.5)),
    )


def test_the_page_says_what_came_out() -> None:
    text = Page(page(found())).text
    for part in (
        "REJECTED",
        "2 of 4 replayed segments rejected",
        "distance-above-threshold, distance-infinite",
        "probability 0.5",
        "00" * 32,
        "drawn: 3, 1, 4",
        "neighbors: 3, 5",
        "What to do next",
        "not-available",
    ):
        assert part in text, part


def test_the_page_stands_alone() -> None:
    text = page(found(HOSTILE))
    for name, attributes in Page(text).elements:
        assert name not in {"script", "img", "link", "iframe", "object", "base", "form"}
        assert not [key for key in attributes if key.startswith("on") or key in {"src", "href", "action"}]
        assert "url(" not in (attributes.get("style") or "")
    policies = [a["content"] for _, a in Page(text).elements if a.get("http-equiv") == "Content-Security-Policy"]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]


def test_what_strangers_wrote_is_text() -> None:
    plain, hostile = page(found()), page(found(HOSTILE))
    assert [name for name, _ in Page(hostile).elements] == [name for name, _ in Page(plain).elements]
    assert "<script src=//evil.example/x.js>" in Page(hostile).text
    assert "\x1b" not in hostile
    assert "\u202e" not in hostile


def test_elements_escape_text_and_attributes() -> None:
    assert element("p", "<b>", title='"><i>') == '<p title="&quot;&gt;&lt;i&gt;">&lt;b&gt;</p>'
    assert element("p", Markup("<b></b>")) == "<p><b></b></p>"
    assert element("rect", stroke_width=0.5, class_="a") == '<rect stroke-width="0.5" class="a"></rect>'
    assert "<td>&lt;i&gt;</td>" in table(["<a>"], [["<i>"]])


def test_a_page_without_a_subject_or_a_draw() -> None:
    failed = replace(found(), subject=None, draw=None, verdict=conclude([]), suspicions=())
    assert "INCONCLUSIVE" in Page(page(failed)).text


@pytest.mark.parametrize("limit", [1.0, None])
def test_charts_take_any_number(limit: float | None) -> None:
    points = [(i, y) for i, y in enumerate([0.0, 1e-300, 1.0, 1e300, math.inf, math.nan])]
    for chart in (
        charts.marks({"a": points}, limit, "t", "x"),
        charts.marks({"a": []}, limit, "t", "x"),
        charts.lines({"a": [points[:4], [(9, math.inf)]]}, "t", "x"),
        charts.lines({"a": [[(0, 1.0)]]}, "t", "x"),
        charts.lines({}, "t", "x"),
        charts.strip(1, {}, {}, "t"),
    ):
        for _, attributes in Page(chart).elements:
            for key in ("x", "y", "cx", "cy", "width"):
                assert key not in attributes or math.isfinite(float(attributes[key] or "nan"))


def test_places_of_marks() -> None:
    """The limit is a line, and marks stand above it if they are beyond it."""
    elements = Page(charts.marks({"a": [(0, 0.1), (1, 10.0)]}, 1.0, "t", "x")).elements
    below, above = (float(a["cy"] or "nan") for name, a in elements if name == "circle" and a["r"] == "3.2")
    (line,) = (a["points"] or "" for name, a in elements if name == "polyline" and a.get("stroke-dasharray") == "5 4")
    assert above < float(line.split(",")[1].split()[0]) < below
