"""The page says what came out, stands alone, and shows what strangers wrote as the text that it is."""

import json
import math
import re
import shlex
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from parsed_page import ParsedPage, require_alone

import small_task
from cli_runner import pol
from pol import Sampling, Store, verify
from pol.claims.segment_claim import SegmentClaim
from pol.report.elements import charts
from pol.report.elements.html_elements import Markup, element, table
from pol.report.verification_page import page as page_of
from pol.report.verification_scope import Occasion, repeat_command
from pol.training.task.published_task import load, publish
from pol.verification.engines.engine import ExaminedSegment
from pol.verification.examination.proof_examination import SegmentDraw, conclude
from pol.verification.examination.screening import Suspicion
from pol.verification.examination.verification_report import VerificationReport
from pol.verification.verdict.verdict import Outcome, Reason, Verdict, decide

HOSTILE = (
    "</code></title></style><script src=//evil.example/x.js>alert(1)</script><img src=x onerror='a()'>\"'&\x1b[2J\u202e"
)
LIMITS = (1 << 40, 1 << 40, 1 << 40)


def page(report: VerificationReport) -> str:
    return page_of(report, Occasion(1_700_000_000, "Ada & Co", repeat_command(report, ("--looks", "4"))))


def verdict(segment: int, distance: int) -> Verdict:
    roots = (b"\1" * 32, b"\2" * 32, b"\3" * 32)
    return decide(SegmentClaim(segment, *roots, (distance, 0, 0), (1 << 80, 0, 1)), LIMITS)


def found(text: str = "model") -> VerificationReport:
    """A verification in which every text is a stranger's."""
    roots = dict.fromkeys(("program_hash", "constants_root", "initial_state_root"), bytes(32))
    document = SimpleNamespace(steps=12, segments=6, interval=2, model=text, optimizer=text, **roots)
    last = SimpleNamespace(state_root=b"\7" * 32)
    proof = SimpleNamespace(log_root=bytes(32), order_root=bytes(32), environment={text: text}, checkpoints=[last])
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
    text = ParsedPage(page(found())).text
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
        "2023-11-14 22:13:20 UTC",
        "Ada & Co",
        "at least one replay contradicts",
        "2 of 6 segments weren't replayed",  # three drawn, one suspicious
        "no root of their log came from outside",
        "--draws 3 --seed " + "00" * 32 + " --suspicious 1 --looks 4",
        "07" * 32,
    ):
        assert part in text, part


def test_the_page_stands_alone() -> None:
    require_alone(ParsedPage(page(found(HOSTILE))))


def test_what_strangers_wrote_is_text() -> None:
    plain, hostile = page(found()), page(found(HOSTILE))
    assert [name for name, _ in ParsedPage(hostile).elements] == [name for name, _ in ParsedPage(plain).elements]
    assert "<script src=//evil.example/x.js>" in ParsedPage(hostile).text
    assert "\x1b" not in hostile
    assert "\u202e" not in hostile


def test_elements_escape_text_and_attributes() -> None:
    assert element("p", "<b>", title='"><i>') == '<p title="&quot;&gt;&lt;i&gt;">&lt;b&gt;</p>'
    assert element("p", Markup("<b></b>")) == "<p><b></b></p>"
    assert element("rect", stroke_width=0.5, class_="a") == '<rect stroke-width="0.5" class="a"></rect>'
    assert '<td data-label="&lt;a&gt;">&lt;i&gt;</td>' in table(["<a>"], [["<i>"]])
    assert '<td data-label="n" class="n">1,024</td>' in table(["n"], [["1,024"], ["3 ETH"]])


def test_a_page_without_a_subject_or_a_draw() -> None:
    failed = replace(found(), subject=None, draw=None, verdict=conclude([]), suspicions=())
    assert "INCONCLUSIVE" in ParsedPage(page(failed)).text


@pytest.mark.parametrize("limit", [1.0, None])
def test_charts_take_any_number(limit: float | None) -> None:
    points = [(i, y) for i, y in enumerate([0.0, 1e-300, 1.0, 1e300, math.inf, math.nan])]
    for chart in (
        charts.marks({"a": points}, limit, "t", "x"),
        charts.marks({"a": []}, limit, "t", "x"),
        charts.lines({"a": [points[:4], [(9, math.inf)]]}, "t", "x"),
        charts.lines({"a": [[(0, 5.0), (1, 5.0)]], "b": [[]]}, "t", "x"),
        charts.lines({"a": [[(0, 1.0)]]}, "t", "x"),
        charts.lines({}, "t", "x"),
        charts.strip(1, {}, {}, "t"),
    ):
        for _, attributes in ParsedPage(chart).elements:
            for key in ("x", "y", "x1", "x2", "y1", "y2", "width"):
                assert key not in attributes or math.isfinite(float(attributes[key] or "nan"))
            for words in re.findall(r"(?:left|bottom): ([^%;]+)%", attributes.get("style") or ""):
                assert math.isfinite(float(words))
            for place in (attributes.get("points") or "").replace(",", " ").split():
                assert -1 <= float(place) <= charts.SIZE + 1


def test_places_of_marks() -> None:
    """The limit is a line, and marks stand above it if they are beyond it."""
    elements = ParsedPage(charts.marks({"a": [(0, 0.1), (1, 10.0)]}, 1.0, "t", "x")).elements
    below, above = (float(a["y1"] or "nan") for _, a in elements if a.get("class") == "dot")
    (line,) = (a["points"] or "" for _, a in elements if a.get("class") == "limit")
    assert above < float(line.split(",")[1].split()[0]) < below


def test_runs_are_joined_and_gaps_are_not() -> None:
    """Between runs nothing was observed: dots lead over; a number that isn't finite breaks the line."""
    runs = [[(0, 1.0), (1, 0.8)], [(4, 0.5), (5, math.nan), (6, 0.4), (7, 0.3)]]
    kinds = [a.get("class") for _, a in ParsedPage(charts.lines({"loss": runs}, "t", "x")).elements]
    assert (kinds.count("curve"), kinds.count("gap"), kinds.count("dot")) == (2, 1, 1)


def test_round_numbers_at_the_side() -> None:
    chart = charts.lines({"a": [[(0, 0.13), (1100, 0.87)]]}, "t", "step")
    assert re.findall(r"<span style=\"bottom: [0-9.]+%\">([^<]+)", chart) == ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    assert re.findall(r"<span style=\"left: [0-9.]+%\">([^<]+)", chart) == ["0", "200", "400", "600", "800", "1000"]


def test_a_task_without_names_is_described(tmp_path: Path) -> None:
    """Its author has named neither model nor optimizer: the page says what they hold."""
    digest, _ = publish(store := Store(f"file://{tmp_path}"), small_task.captured(), steps=60, interval=3)
    proof = small_task.solve_with(store, task := load(store, digest), small_task.Canonical(task))
    report = verify(store, proof, exact=True, sampling=Sampling(draws=2, seed=bytes(32)))
    text = ParsedPage(page(report)).text
    assert "74 numbers in 4 tensors: 0.weight, 0.bias, 2.weight, 2.bias" in text
    assert "momentum_buffer" in text
    assert "Zero in each of 2 replayed segments" in text
    assert f"pol verify {store.url} {proof} --exact --draws 2 --seed {bytes(32).hex()}" in text


def test_the_command_of_a_report_repeats_its_verdict(tmp_path: Path) -> None:
    case = small_task.examined(tmp_path)
    proof, profile = case.skipping, case.profile
    first = pol("verify", tmp_path, proof, "--profile", profile, "--draws", 6, "--suspicious", 1, "--json")
    out = tmp_path / "page.html"
    seed = json.loads(first.out)["draw"]["seed"]
    arguments = ("--profile", profile, "--draws", 6, "--suspicious", 1, "--seed", seed, "--by", "An auditor")
    assert pol("verify", tmp_path, proof, *arguments, "--report", out).code == first.code
    told = ParsedPage(out.read_text()).text
    assert "An auditor" in told
    command = re.search(r"pol (verify .*?)Same store", told)
    assert command is not None
    again = json.loads(pol(*shlex.split(command[1]), "--json").out)
    before = json.loads(first.out)
    assert [again[name] for name in ("outcome", "draw", "segments")] == [
        before["outcome"],
        before["draw"] | {"seed_from": "outside"},
        before["segments"],
    ]
