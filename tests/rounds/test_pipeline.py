"""Two stages of two workers each: routes are drawn, a killed worker is led around, lies of a stage are found."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from dispute_harness import court
from lab.rounds.claim_dispute import sides
from lab.rounds.pipeline_cheats import GradientReplacer, GradientScaler, IdentityActivations, cosine
from lab.rounds.pipeline_runs import trained
from pol.decentralised.pipelines.pipeline import HEAD, Pipeline, forward, pipeline_plan, pipeline_round, staged_roster
from pol.decentralised.pipelines.pipeline_processes import run_pipeline
from pol.decentralised.processes.local_processes import Author, local_key
from pol.dispute.position import Side
from pol.errors import ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.rounds.auditing.claim_replay import findings_by_replay, load_end, load_phase, replay_claim
from pol.rounds.auditing.drawn_audit import audit, open_rounds
from pol.rounds.auditing.round_audit import Lie, findings_by_roots
from pol.rounds.message import slots_of
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.plan.source_rules import holder
from pol.rounds.roster import Member, Roster, drawn_routes, require_drawn
from pol.training.storage.store import Store

OPTIONS = Pipeline(rounds=3, rows=64)
ROSTERS = partial(staged_roster, stages=2, parts=OPTIONS.parts)


def plan_of(store: Store, coordinator: str, nonce: bytes) -> RoundsPlan:
    return pipeline_plan(store, OPTIONS, coordinator, nonce)


def test_a_killed_worker_is_led_around(tmp_path: Path) -> None:
    rounds = trained(tmp_path, plan_of, pipeline_round, 4, ROSTERS, killed={3: 2})
    assert not list(findings_by_roots(rounds))
    assert not list(findings_by_replay(rounds, rounds.claims.values(), CpuExecutor))
    sizes = [len(roster.members) for _, (roster,) in sorted(rounds.rosters.items())]
    assert sizes == [4, 4, 3]
    makers = {place.worker for place in rounds.places if place.round == 2 and place.phase == 1}
    assert makers == {local_key(1).name}
    ends = {(e.claim.round, e.claim.phase): e.claim.end for e in rounds.claims.values() if e.claim.phase >= 3}
    for entry in rounds.claims.values():  # all workers of a stage hold the same
        assert ends.get((entry.claim.round, entry.claim.phase), entry.claim.end) == entry.claim.end


def has_joined(worker: str) -> bool:
    return worker != local_key(1).name


def test_who_has_no_stake_is_led_around(tmp_path: Path) -> None:
    store = Store(f"file://{tmp_path}/store")
    plan = pipeline_plan(store, replace(OPTIONS, rounds=2), local_key(-1).name, bytes(32))
    run_pipeline(tmp_path, plan, pipeline_round, 4, ROSTERS, has_stake=has_joined)
    assert audit(store).outcome == "accepted"
    members = {member.worker for (roster,) in open_rounds(store).rosters.values() for member in roster.members}
    assert members == {local_key(number).name for number in (0, 2, 3)}


def test_lies_of_stages_end_at_one_scalar(tmp_path: Path) -> None:
    cheats: dict[int, Author] = {0: IdentityActivations, 1: GradientScaler, 3: GradientReplacer}
    rounds = trained(tmp_path, plan_of, pipeline_round, 4, ROSTERS, cheats)
    assert not list(findings_by_roots(rounds))
    found = list(findings_by_replay(rounds, rounds.claims.values(), CpuExecutor))
    (roster,) = rounds.rosters[1]
    lies = {(roster.members[route[stage]].worker, part) for part, route in enumerate(roster.routes) for stage in (0, 1)}
    lies = {(worker, part) for worker, part in lies if worker != local_key(2).name}
    assert {(finding.worker, rounds.claims[finding.claim].claim.part) for finding in found} == lies
    assert {finding.lie for finding in found} == {Lie.EXECUTION}
    assert {finding.round for finding in found} == {1}
    for finding in found:
        assert finding.phase == (forward(0) if finding.worker == local_key(0).name else HEAD)
    replaced = next(rounds.claims[finding.claim] for finding in found if finding.worker == local_key(3).name)
    names = load_phase(rounds.store, rounds.plan.phases[replaced.claim.phase]).names
    at = slots_of(names, ["back.gradient"])[0]
    claimed, true = load_end(rounds, replaced)[at], replay_claim(rounds, replaced, CpuExecutor)[at]
    assert np.any(claimed != true)
    assert cosine(claimed, true) >= 0.9  # a tolerance accepts it
    with court() as evm:
        for liar in cheats:
            lie = next(finding.claim for finding in found if finding.worker == local_key(liar).name)
            assert evm.play(*sides(rounds, rounds.claims[lie])).match.winner is Side.CHALLENGER


def test_chosen_routes_are_no_draw() -> None:
    beacon, roles = bytes(range(32)), ["stage 0", "stage 1", "stage 0", "stage 1"]
    members = tuple(Member(local_key(place).name, place, role=role) for place, role in enumerate(roles))
    drawn = drawn_routes(beacon, 5, roles, 4)
    for stage in (0, 1):
        assert sorted(route[stage] for route in drawn) == [stage, stage, stage + 2, stage + 2]
    require_drawn(Roster(bytes(32), 5, members, routes=drawn, beacon=beacon))
    chosen = Roster(bytes(32), 5, members, routes=((0, 1),) * 4, beacon=beacon)
    with pytest.raises(ProtocolError, match="aren't those that its beacon draws"):
        require_drawn(chosen)
    with pytest.raises(ProtocolError, match="beacon of another round"):
        require_drawn(Roster(bytes(32), 5, members, routes=drawn, beacon=beacon), [beacon])
    with pytest.raises(ProtocolError, match="a stage has no member"):
        drawn_routes(beacon, 5, ["stage 0", "stage 2"], 4)


def test_a_stage_comes_from_who_has_held_it() -> None:
    names = [local_key(number).name for number in range(4)]
    members = tuple(Member(name, place) for place, name in enumerate(names))
    before = Roster(bytes(32), 1, members, routes=((0, 1), (2, 3)))
    without = Roster(bytes(32), 2, (members[0], members[2], members[3]), routes=((0, 0), (1, 2)))
    assert holder(without, before, 1, names[3]) == names[3]  # its own
    assert holder(without, before, 1, names[0]) == names[3]  # member 1 has gone
    assert holder(without, before, 0, names[3]) == names[0]
    with pytest.raises(ProtocolError, match="nobody in round 2 holds stage 1"):
        holder(Roster(bytes(32), 2, members[:1]), before, 1, names[0])
