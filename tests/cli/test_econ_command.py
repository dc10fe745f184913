"""`pol econ`: parameters and coalitions, for people and programs, and a page."""

import json
from functools import partial
from pathlib import Path

import pytest

import toy_program
from cli_runner import Said, answer, pol

pytestmark = pytest.mark.rules

TASK = ("--task-value", "100", "--verify-cost", "20", "--cheat-gain", "10")
asked = partial(answer, "econ")


def test_a_design_for_programs() -> None:
    found = asked("design", *TASK)
    assert found["attacker_burn_ratio"] >= 10
    assert all(choice["margin"] > 0 for choice in found["choices"])
    assert found["catch"] == found["stakes"]["jackpot"] // found["shares"]
    assert "Infinity" not in json.dumps(found)
    assert found["windows"]["exit_delay"] > found["windows"]["longest_dispute"]


def test_clocks_follow_from_a_program(tmp_path: Path) -> None:
    """A segment is two steps. The disputed one is executed again for its trace, and for one node."""
    (tmp_path / "program.bin").write_bytes(toy_program.build().to_bytes())
    program = ("--program", str(tmp_path / "program.bin"))
    task = (*TASK, "--train-seconds", "864000", "--capital", "0")
    found = asked("design", *task, *program, "--interval", "2")["windows"]
    plain = asked("design", *task)["windows"]
    assert found["clock"] == pytest.approx(2 * plain["clock"], rel=0.01)
    assert found["replay_grace"] == pytest.approx(1.5 * plain["replay_grace"], rel=0.01)
    assert found["move_grace"] == pytest.approx(0.5 * plain["replay_grace"], rel=0.01)
    assert pol("econ", "design", *TASK, *program) == Said(2, match="--program needs --interval")


def test_a_design_for_people() -> None:
    said = pol("econ", "design", *TASK)
    assert said == Said(0, match="verifier's stake")
    assert said == Said(0, match="a challenge without a ground")
    assert said == Said(0, match="One ticket is enough to watch")


def test_a_search_for_people_names_the_rules_and_what_is_done_without_them() -> None:
    """Of nobody, which is soon over: docs/guides/economics.md has one of a quarter of all tickets."""
    said = pol("econ", "coalition", *TASK, "--share", "0")
    assert said == Said(0, match="What a coalition gains at most")
    assert said == Said(0, match="second looks are unpriced: solver, friend; terms of the design")
    assert said == Said(0, match="train: land where looks decide")


def test_amounts_are_exact() -> None:
    task = ("--task-value", "0.1", "--verify-cost", "0.02", "--cheat-gain", "0.01")
    thousandth = asked("design", *task, "--transaction", "0", "--dispute", "0.00001")
    assert thousandth["stakes"]["price"] > 10**16


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("design", *TASK, "--segments", "1000"), 1, "make segments longer"),
        (("design", *TASK, "--task-value", "much"), 2, "is no amount"),
        (("design", *TASK, "--task-value", "-1"), 2, "0 or more"),
        (("design", *TASK, "--confidence", "2"), 2, "confidence"),
        (("design", *TASK, "--task-value", "25", "--most-stake", "400"), 1, "the task is worth 25 and costs "),
        (("design", *TASK, "--most-stake", "0.5"), 1, "with a stake of 0.5: it takes "),
        (("design", *TASK, "--plot", "picture.png"), 2, "ends with .html"),
        (("design", *TASK, "--plot", "no/such/folder.html"), 3, "can't write"),
    ],
)
def test_bad_input_is_said_in_a_line(arguments: tuple[str, ...], code: int, words: str) -> None:
    assert pol("econ", *arguments) == Said(code, match=words)


def test_a_page_opens_from_disk_and_asks_nobody(tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    assert pol("econ", "design", *TASK, "--plot", file) == Said(0)
    page = file.read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert page.count("<svg") >= 2
    assert "script" not in page
    assert "default-src" in page
