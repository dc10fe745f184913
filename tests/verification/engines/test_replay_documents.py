"""Jobs and results as documents: nothing is lost, nothing else is taken; and what redundancy makes of results."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, product
from math import floor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exact_case import FALSE, ExactCase, exact_case

from pol.claims.sample_size import detection_probability
from pol.commitments import canonical_json
from pol.errors import ProtocolError
from pol.verification.engines.engine import ExaminedSegment, LocalEngine, ReplayJob
from pol.verification.engines.redundancy import Redundancy, detection_rate, escape_probability, liars, needs_referee
from pol.verification.engines.replay_job_document import PostedJob
from pol.verification.engines.replay_result_document import are_equal, are_same_replay, decode_result, encode_result
from pol.verification.verdict.verdict import Outcome, Reason

pytestmark = pytest.mark.rules

NONCE = b"n" * 32
LIMITS = (1 << 40, 1 << 40, 1 << 40)
TIGHT = (1, 1, 1)


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> ExactCase:
    return exact_case(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def jobs(case: ExactCase) -> list[ReplayJob]:
    """Exact and by thresholds, with a second look, a sketch, a pair, and evidence that is missing."""
    job, false = case.jobs(case.dishonest, 2, FALSE)
    pair = replace(case.jobs(case.dishonest, 6)[0], end=false.end, thresholds=LIMITS, is_pair=True)
    return [
        job,
        false,
        replace(false, thresholds=TIGHT, sketched=b"s" * 32, memory=1 << 60),
        replace(false, thresholds=TIGHT, looks=2),
        pair,
        replace(job, task="ab" * 32),
    ]


@pytest.fixture(scope="module")
def results(jobs: list[ReplayJob]) -> list[ExaminedSegment]:
    return list(LocalEngine(threads=1).run(jobs))


def test_documents_keep_everything(jobs: list[ReplayJob], results: list[ExaminedSegment]) -> None:
    assert {result.verdict.outcome for result in results} == set(Outcome)
    assert any(result.direction is not None for result in results)
    for job, result in zip(jobs, results, strict=True):
        posted = PostedJob(job, NONCE, b"k" * 32)
        assert PostedJob.decode(posted.encode(), job.store) == posted
        assert PostedJob.decode(posted.encode(), "elsewhere").job == replace(job, store="elsewhere")
        again = decode_result(encode_result(posted.digest, result), posted.digest, job)
        assert (again.verdict, again.observed) == (result.verdict, result.observed)
        assert are_equal(again, result)
        assert encode_result(posted.digest, again) == encode_result(posted.digest, result)


def change(data: bytes, edit: Callable[[dict[str, Any]], object]) -> bytes:
    document = canonical_json.decode(data, "it")
    edit(document)
    return canonical_json.encode(document)


@pytest.mark.parametrize(
    "edit",
    [
        lambda d: d.update(kind="pol/other"), lambda d: d.update(version=2), lambda d: d.update(more=1),
        lambda d: d.update(segments=2), lambda d: d.update(segments=0),
        lambda d: d.update(thresholds=["0", "0"]), lambda d: d.update(thresholds=["0", "0", str(1 << 64)]),
        lambda d: d.update(looks=65), lambda d: d.update(sketched="00"), lambda d: d.update(nonce="00"),
        lambda d: d.update(recipient="00"), lambda d: d["end"].update(index=d["start"]["index"]),
        lambda d: d["end"].update(step=0), lambda d: d["start"].update(object="../../etc"),
    ],
)  # fmt: skip
def test_a_job_that_is_none(jobs: list[ReplayJob], edit: Callable[[dict[str, Any]], object]) -> None:
    with pytest.raises(ProtocolError):
        PostedJob.decode(change(PostedJob(jobs[0], NONCE).encode(), edit), jobs[0].store)


@pytest.mark.parametrize(
    ("place", "edit", "match"),
    [
        (0, lambda d: d.update(job="00" * 32), "not of"),
        (0, lambda d: d.update(segment=3), "not of"),
        (0, lambda d: d.update(outcome="fine"), "no outcome"),
        (0, lambda d: d.update(outcome="rejected"), "doesn't follow"),
        (0, lambda d: d.update(claim=None), "doesn't follow"),
        (0, lambda d: d["claim"].update(replay="11" * 32), "doesn't follow"),
        (0, lambda d: d["claim"].update(start="11" * 32), "other checkpoints"),
        (0, lambda d: d["claim"].update(distances=["1", "0", "0"]), "doesn't follow"),
        (0, lambda d: d["claim"].update(distances=[str(1 << 192), "0", "0"]), "at most"),
        (0, lambda d: d.update(reasons=[]), "known ones"),
        (0, lambda d: d.update(reasons=["because"]), "known ones"),
        (0, lambda d: d.update(reasons=["equal-roots"] * 2), "known ones"),
        (0, lambda d: d.update(detail="x" * 5000), "characters"),
        (0, lambda d: d.update(observed={"loss": "00"}), "words"),
        (0, lambda d: d.update(observed={"loss": "zz"}), "hexadecimal"),
        (0, lambda d: d.update(observed={str(i): "" for i in range(9)}), "at most"),
        (1, lambda d: d.update(outcome="accepted"), "doesn't follow"),
        (2, lambda d: d.update(direction=[None]), "expected 3"),
        (2, lambda d: d.update(direction=[np.full(512, 1e9, ">f8").tobytes().hex(), None, None]), "unit vector"),
        (2, lambda d: d.update(direction=[np.full(512, np.nan, ">f8").tobytes().hex(), None, None]), "unit vector"),
        (5, lambda d: d.update(outcome="accepted"), "doesn't follow"),
    ],
)
def test_a_result_that_is_none(
    jobs: list[ReplayJob],
    results: list[ExaminedSegment],
    place: int,
    edit: Callable[[dict[str, Any]], object],
    match: str,
) -> None:
    digest = PostedJob(jobs[place], NONCE).digest
    data = encode_result(digest, results[place])
    decode_result(data, digest, jobs[place])
    with pytest.raises(ProtocolError, match=match):
        decode_result(change(data, edit), digest, jobs[place])


def test_what_a_comparison_shows(results: list[ExaminedSegment]) -> None:
    good, false = results[0], results[1]
    other = replace(good, observed={"loss": (0.5,) * 3})
    marked = replace(good, verdict=replace(good.verdict, reasons=(*good.verdict.reasons, Reason.SLOT)))
    nan = replace(good, observed={"loss": (float("nan"),) * 3})
    worded = replace(good, verdict=replace(good.verdict, detail="in other words"))
    assert are_equal(good, worded)
    assert are_equal(nan, nan)
    assert not are_equal(good, marked)
    assert are_same_replay(good, marked), "near a limit two honest machines may differ in a mark"
    assert not needs_referee({b"a": good, b"b": worded})
    for answers in ({b"a": good, b"b": other}, {b"a": false, b"b": false}, {b"a": marked, b"b": marked}):
        assert needs_referee(answers)
    answers = {b"a": good, b"b": other, b"c": false, b"d": marked}
    assert liars(answers, good) == [b"b", b"c"]
    assert liars(answers, other) == [b"a", b"c", b"d"], "the majority decides nothing"
    assert liars(answers, results[5]) == [], "a replay that couldn't look names nobody"


def test_the_odds_of_a_lie() -> None:
    assert escape_probability(10, 1, Redundancy(1, Fraction(0))) == Fraction(1, 10)
    assert escape_probability(10, 1, Redundancy(2, Fraction(0))) == 0
    assert escape_probability(10, 2, Redundancy(2, Fraction(0))) == Fraction(1, 45)
    assert escape_probability(10, 10, Redundancy(2, Fraction(1, 20))) == Fraction(19, 20)
    for keys, colluding, copies in ((1, 2, 1), (3, -1, 1), (1, 1, 2)):
        with pytest.raises(ProtocolError, match="no such draw"):
            escape_probability(keys, colluding, Redundancy(copies))
    for copies, audited in ((0, Fraction(0)), (17, Fraction(0)), (1, Fraction(2))):
        with pytest.raises(ProtocolError, match="impossible"):
            Redundancy(copies, audited)


def test_the_rate_of_detection_is_that_of_all_draws() -> None:
    """Segments, pairs of keys and audits, counted."""
    for draws, false in product(range(6), repeat=2):
        assert detection_rate(5, false, draws, Fraction(0)) == detection_probability(5, false, draws)
        drawn = list(combinations(range(5), draws))
        missed = sum(Fraction(1, 3) ** sum(segment < false for segment in each) for each in drawn)
        assert detection_rate(5, false, draws, Fraction(1, 3)) == 1 - missed / len(drawn)
    pairs = list(combinations(range(5), 2))
    passed = [all(max(pair) < 3 for pair in both) for both in product(pairs, repeat=2)]
    assert detection_rate(2, 2, 2, escape_probability(5, 3, Redundancy(2, Fraction(0)))) == 1 - Fraction(
        sum(passed), len(passed)
    )
    with pytest.raises(ProtocolError, match="no such draw"):
        detection_rate(2, 3, 1, Fraction(0))


def test_a_share_is_audited() -> None:
    words = [(i << 56).to_bytes(8, "big") for i in range(256)]
    for share in (Fraction(0), Fraction(1, 4), Fraction(1)):
        assert sum(Redundancy(2, share).is_audited(word) for word in words) == 256 * share


def test_documents_have_no_path(case: ExactCase, jobs: list[ReplayJob]) -> None:
    """A job tells neither where its verifier's store lies nor anything to run."""
    assert str(Path(case.store.url.removeprefix("file://"))).encode() not in PostedJob(jobs[0], NONCE).encode()


def test_the_table_of_the_guide() -> None:
    """Ten keys, 1,000 segments; percent, rounded down."""
    guide = Path(__file__).parents[3] / "docs" / "guides" / "engines.md"
    rows = [
        line.strip("| ").split(" | ")
        for line in guide.read_text().splitlines()
        if line.startswith(("| 90 ", "| 1000 "))
    ]
    assert len(rows) == 10
    for drawn, copies, audited, workers, own, *rates in rows:
        share, is_own = Fraction(int(audited), 100), copies == "oneself"
        assert Fraction(workers) == (0 if is_own else Fraction(int(drawn) * int(copies), 1000))
        assert Fraction(own) == Fraction(int(drawn), 1000) * (1 if is_own else share)
        for rate, (colluding, false) in zip(rates, product((1, 2, 10), (1, 50)), strict=True):
            escape = Fraction(0) if is_own else escape_probability(10, colluding, Redundancy(int(copies), share))
            assert Fraction(rate) == Fraction(floor(detection_rate(1000, false, int(drawn), escape) * 10_000), 100)
