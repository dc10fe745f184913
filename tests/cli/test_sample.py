"""`pol sample` says what a sample has to be, and when the chain's limit is too low for it."""

from fractions import Fraction
from functools import partial

import pytest

from cli_runner import Said, answer, pol
from pol.claims.sample_size import detection_probability
from pol.claims.segment_draw import MAX_DRAWS

pytestmark = pytest.mark.rules
asked = partial(answer, "sample")


def test_the_sample_of_the_issue() -> None:
    """99 % against 5 % of cheating, with the odds of one draw after the other."""
    document = asked("--segments", "1000", "--confidence", "0.99", "--cheat-fraction", "0.05")
    assert (document["cheated"], document["draws"], document["reexecution"]) == (50, 86, 0.086)
    missed = 1.0
    for i in range(86):
        missed *= (950 - i) / (1000 - i)
    assert document["detection_probability"] == pytest.approx(1 - missed, rel=1e-12)
    assert document["chain_enough"] is False
    assert document["chain_draws"] == MAX_DRAWS
    assert document["chain_detection_probability"] == float(detection_probability(1000, 50, MAX_DRAWS))
    least = document["chain_detectable"]
    assert detection_probability(1000, least, MAX_DRAWS) >= Fraction(99, 100)
    assert detection_probability(1000, least - 1, MAX_DRAWS) < Fraction(99, 100)


def test_people_read_when_the_chain_is_not_enough() -> None:
    said = pol("sample", "--segments", "1000")
    assert said == Said(0, match="86 of 1000 segments have to be drawn to find 50 cheated ones (5 %) with 99 %")
    assert said == Said(0, match="8.6 % of the training is replayed")
    assert said == Said(0, match="has 32 drawn at most: they find these with 81.13 %")
    assert said == Said(0, match="has to be verified off chain")
    few = pol("sample", "--segments", "48", "--cheat-fraction", "1/4")
    assert few == Said(0, match="14 of 48 segments")
    assert few == Said(0, match="A task on chain can have so many drawn")


def test_ways_to_write_a_share() -> None:
    documents = [asked("--segments", "300", "--cheat-fraction", share) for share in ("0.05", "5%", "1/20", "5e-2")]
    assert all(document == documents[0] for document in documents)
    assert len(documents[0]["table"]) == 6 * 3


@pytest.mark.parametrize("share", ["0", "-0.1", "1.01", "101%", "1/0", "half", "nan", "inf", ""])
@pytest.mark.parametrize("option", ["--confidence", "--cheat-fraction"])
def test_shares_that_are_none(option: str, share: str) -> None:
    said = pol("sample", "--segments", "300", option, share)
    assert said.code == 2
    assert "above 0 and up to 1" in said.out or "isn't a number" in said.out


@pytest.mark.parametrize("segments", ["0", "-1", "10000001", "many"])
def test_segments_that_are_none(segments: str) -> None:
    assert pol("sample", "--segments", segments) == Said(2)


def test_extremes() -> None:
    assert asked("--segments", "1")["draws"] == 1
    certain = asked("--segments", "300", "--confidence", "1", "--cheat-fraction", "10%")
    assert (certain["draws"], certain["detection_probability"]) == (271, 1.0)
    assert asked("--segments", "100000", "--cheat-fraction", "100%")["draws"] == 1
    assert asked("--segments", "100000", "--cheat-fraction", "1e-9", "--confidence", "0.5")["draws"] == 50_000
