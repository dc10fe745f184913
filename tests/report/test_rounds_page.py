"""The page about a training in rounds: it parses, loads nothing, and names the liar, its round and its lie."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

import pytest

from cli_runner import Said, pol
from lab.rounds.claim_dispute import walked
from lab.rounds.tiny_training import TinyTraining, key
from pol.arithmetic.primitives import Words
from pol.rounds import ClaimAuthor, audit
from pol.rounds.plan.source_rules import ClaimPlace
from pol.training.storage.store import Store

LIAR = 1
VOID = ("meta",)


class Liar(ClaimAuthor):
    def run(self, place: ClaimPlace, start: Sequence[Words], first_step: int, steps: int) -> list[Words]:
        end = super().run(place, start, first_step, steps)
        if (place.round, place.phase) == (1, 0):
            end[0] = end[0].copy()
            end[0][5] ^= 1 << 20
        return end


class _Page(HTMLParser):
    """Text by element, the attributes of all elements, and whether every element is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.tags: list[str] = []
        self.words: dict[str, list[str]] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.words.setdefault(self.open[-1], []).append(data)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    training = TinyTraining.of(Store(f"file://{folder}/store"))
    training.author(LIAR, Liar)
    for round_ in range(3):
        training.play(round_, (0, LIAR) if round_ == 0 else (0, LIAR, 2))
        training.publish(round_)
    return folder


def test_the_page(run: Path, tmp_path: Path) -> None:
    found = audit(Store(f"file://{run}/store"))
    (lie,) = found.lies
    match = walked(found.rounds, found.rounds.claims[lie.claim])
    (run / "dispute.json").write_text(json.dumps(match.record.to_dict() | {"ended_by": "resignation"}))
    file = tmp_path / "page.html"
    assert pol("audit", run, "--report", file) == Said(1)
    text = file.read_text()
    page = _Page(text)
    assert page.open == []
    assert not {"script", "link", "img", "iframe"} & set(page.tags)
    assert not [value for name, value in page.attributes if name in ("src", "href")]
    assert ("name", "viewport") in page.attributes
    assert "Worker 1 was caught" in page.words["h2"]
    assert key(LIAR).name in page.words["code"]
    assert any("Round 1, work: an end that its program doesn't give" in words for words in page.words["b"])
    assert page.words["span"].count("lie") == 1
    assert any("challenger has won" in words for words in page.words["p"])
    assert "svg" in page.tags
    assert "Down to" in page.words["b"]
    assert any("1 lie was found, of worker 1; nobody else is to blame." in words for words in page.words["p"])
    assert any(f"pol audit {run}" in words for words in page.words["pre"])
    assert any("8 messages with " in words for words in page.words["summary"])  # 2 in round 0, 3 in each other one


def test_a_dispute_of_other_rounds_is_refused(run: Path, tmp_path: Path) -> None:
    other = TinyTraining.of(Store(f"file://{tmp_path}/store"))
    other.play(0, (0, 2))
    other.publish()
    found = audit(Store(f"file://{run}/store"), str(LIAR), 1)
    record = walked(found.rounds, found.rounds.claims[found.lies[0].claim]).record
    (tmp_path / "dispute.json").write_text(json.dumps(record.to_dict() | {"ended_by": "proof"}))
    said = pol("audit", tmp_path, "--report", tmp_path / "page.html")
    assert said == Said(1, match="the dispute beside these rounds is about no claim of them")
