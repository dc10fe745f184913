"""`pol econ`: parameters and populations, for people, programs and as pages."""

import json
from pathlib import Path
from typing import Any

import pytest

import toy_program
from cli_runner import Said, pol

TASK = ("--task-value", "100", "--verify-cost", "20", "--cheat-gain", "10")
PEOPLE = ("--verifiers", "honest=4,lazy=1", "--solvers", "honest=2", "--whistleblowers", "2", "--tasks", "20")


def asked(*arguments: str) -> dict[str, Any]:
    said = pol("econ", *arguments, "--json")
    assert said == Said(0)
    document: dict[str, Any] = json.loads(said.out)
    return document


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
    said = pol("econ", "coalition", *TASK, "--share", "0.25")
    assert said == Said(0, match="What a coalition gains at most")
    assert said == Said(0, match="lie in its entry")
    assert pol("econ", "coalition", *TASK, "--plot", "page.html") == Said(2, match="has no page")


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
        (("design", *TASK, "--task-value", "25", "--most-stake", "200"), 1, "the task is worth 25 and costs "),
        (("design", *TASK, "--most-stake", "0.5"), 1, "with a stake of 0.5: it takes "),
        (("design", *TASK, "--plot", "picture.png"), 2, "ends with .html"),
        (("design", *TASK, "--plot", "no/such/folder.html"), 3, "can't write"),
        (("simulate", *TASK, "--verifiers", "angels=3"), 2, "KIND=NUMBER"),
        (("simulate", *TASK, "--verifiers", "withholding=2", "--whistleblowers", "0"), 1, "settles nothing"),
    ],
)
def test_bad_input_is_said_in_a_line(arguments: tuple[str, ...], code: int, words: str) -> None:
    assert pol("econ", *arguments) == Said(code, match=words)


def test_a_population_for_programs_and_for_people() -> None:
    found = asked("simulate", *TASK, *PEOPLE)
    assert found["total_change"] == 0
    assert sum(epoch["tasks"] for epoch in found["epochs"]) == 20
    earned = {(row["role"], row["kind"]): row["each_and_task"] for row in found["earned"]}
    assert earned["verifier, watcher", "lazy"] < earned["verifier, watcher", "honest"]
    assert pol("econ", "simulate", *TASK, *PEOPLE) == Said(0, match="All balances together changed by 0")


def test_without_planted_errors_nothing_is_caught() -> None:
    found = asked("simulate", *TASK, *PEOPLE, "--no-planted-errors")
    assert found["most_paid"] == 0
    assert all(epoch["planted"] == 0 for epoch in found["epochs"])


@pytest.mark.parametrize("arguments", [("design", *TASK), ("simulate", *TASK, *PEOPLE)])
def test_pages_open_from_disk_and_ask_nobody(arguments: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    assert pol("econ", *arguments, "--plot", file) == Said(0)
    page = file.read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert page.count("<svg") >= 2
    assert "script" not in page
    assert "default-src" in page
