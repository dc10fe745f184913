"""Attacks on documents, evidence and the draw."""

import pytest

from attack_tasks import SEGMENTS, Expected, check, findings
from lab.attacks.protocol_attacks import ATTACKS
from pol.verification.verdict.verdict import Outcome

SKIPPED = 11 / 12
EXPECTED = {
    "withheld": Expected(SKIPPED, 2),
    "two-faced": Expected(SKIPPED, 2),
    "left-out": Expected(SKIPPED, None),
    "longer-interval": Expected(SKIPPED, None),
}
GRINDING = "grinding"


@pytest.mark.parametrize("name", EXPECTED)
def test_it_is_refused_or_not_accepted(name: str) -> None:
    check(tuple(attack for attack in ATTACKS if attack.name != GRINDING), name, EXPECTED)


def test_withholding_proves_nothing_and_is_accepted_nowhere() -> None:
    found = findings("withheld")
    assert {found.segments[i].outcome for i in found.cheated} == {Outcome.INCONCLUSIVE}


def test_evidence_that_contradicts_its_log_is_a_rejection() -> None:
    found = findings("two-faced")
    assert {found.segments[i].outcome for i in found.cheated} == {Outcome.REJECTED}


def test_no_variant_of_a_proof_changes_the_draw() -> None:
    damage = findings(GRINDING).forgery.damage
    assert damage["different draws of 1000 variants"] == 1
    assert 1 <= damage["tries if its hash were the seed"] <= 1000
    assert len(findings(GRINDING).segments) == SEGMENTS
