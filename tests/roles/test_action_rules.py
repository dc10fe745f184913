"""Each action has a rule of the specification, and `pol explain --why` shows it with what the process had read."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from role_market import OFFER, Town, submitted

from cli_runner import Said, pol
from pol.roles.party.action_rules import RULES
from pol.roles.process.decision_log import DecisionLog
from pol.roles.process.party_process import Process
from pol.roles.verifier.verifier import Verifier
from pol.roles.verifier.verifier_decisions import next_of_verifier
from pol.training.storage.party_database import PartyDatabase

ROOT = Path(__file__).parents[2]
MAKERS = {"Action", "PublicCall", "_call", "ends"}


def verbs() -> Iterator[str]:
    """Second arguments of calls that make an action; of `ends`, and of what has no task, the first."""
    for path in (ROOT / "pol" / "roles").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in MAKERS:
                texts = [a for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
                yield from (str(text.value) for text in texts[:1])


@pytest.mark.rules
def test_every_action_has_a_rule_of_the_specification() -> None:
    chosen = {"remove the verifier", "remove the profiler", "show an unstaked member", "ask for the length of the log"}
    assert {*verbs()} | chosen == {*RULES}
    for rule in RULES.values():
        page, heading = rule.spec.split(": ")
        lines = (ROOT / "docs" / "spec" / f"{page}.md").read_text().splitlines()
        assert any(line.lstrip("#").strip() == heading for line in lines if line.startswith("#")), rule.spec


def test_why_a_process_acted(town: Town, tmp_path: Path) -> None:
    task_id, _ = submitted(town, OFFER)
    verifier = town.join(Verifier, "v")
    town.connection.wait_for_block(verifier.market.seats.seating(task_id).round + 1)
    log = DecisionLog(PartyDatabase(tmp_path))
    Process(verifier, next_of_verifier, note=log.note).turn()
    why = ("explain", "--data", tmp_path, "--why")
    shown = json.loads(pol(*why, "open claims", task_id.hex()[:8], "--json").out)
    assert (shown["task"], shown["result"]) == (task_id.hex(), "done")
    assert shown["rule"] == RULES["open claims"].reason
    assert shown["spec"] == "docs/spec/market.md, Seats"
    assert f"TaskRegistry.task({task_id.hex()[:8]})" in "\n".join(shown["view"])
    assert pol(*why, "open claims") == Said(0, match="what it had read of the chain")
    assert pol(*why, "dance") == Said(1, match="but on: open claims")
    assert pol("explain", "--why", "move") == Said(2, match="--data DIR")
