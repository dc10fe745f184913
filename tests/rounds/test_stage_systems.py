"""Trainings in stages: pipelines, Oobleck, CheckFree, AQ-SGD, subspaces and DiPaCo, on real processes.

All liars of a system lie in one training of it: their lies are found, nobody else is accused, and in the court they
lose at one scalar. Killed workers are led around, and what they held comes back as the plan says.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from logged_trainings import Convict, by_replay, entries_of, executions, require_honest, told

from lab.rounds.stage_cheats import (
    FAILED_ROUND,
    CovertCoefficients,
    EasierShard,
    FalseRouting,
    GradientReplacer,
    GradientScaler,
    IdentityActivations,
    NeighborCopier,
    OlderWeights,
    OwnShard,
    SilentlyOlderWeights,
    StaleBasis,
    StaleBuffer,
    WrongDelta,
    cosine,
)
from pol.decentralised.dipaco import PATHS, SHARD, DiPaCo, dipaco_plan, dipaco_round, local, merge, path_roster
from pol.decentralised.parts.gpt_stages import gpt_stages
from pol.decentralised.pipelines.aq_sgd import aq_sgd_plan, buffers_out_of_step, fixed_roster
from pol.decentralised.pipelines.checkfree import THREE_BLOCKS, checkfree_plan, checkfree_round, spare_roster
from pol.decentralised.pipelines.oobleck import pipelines, start_roots, state_roots, template_roster
from pol.decentralised.pipelines.pipeline import (
    HEAD,
    Pipeline,
    forward,
    pipeline_plan,
    pipeline_round,
    staged_roster,
    update,
)
from pol.decentralised.pipelines.pipeline_processes import RosterOf, run_pipeline
from pol.decentralised.pipelines.protocol_models import protocol_models_plan, turned_bases
from pol.decentralised.processes.local_processes import Author, Round, local_key
from pol.errors import ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.rounds.auditing.claim_replay import load_end, load_phase, load_start, replay_claim
from pol.rounds.auditing.drawn_audit import audit, open_rounds
from pol.rounds.auditing.round_audit import Lie, findings_by_roots
from pol.rounds.log.logged_rounds import LoggedRounds, read_rounds
from pol.rounds.log.rounds_log import load_head, require_whole
from pol.rounds.message import slots_of
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.plan.source_rules import holder
from pol.rounds.roster import Member, Roster, drawn_routes, require_drawn
from pol.training.storage.store import Store

PlanOf = Callable[[Store, str, bytes], RoundsPlan]
"""The plan in a store, of a coordinator and a nonce."""
STAGED = Pipeline(rounds=3, rows=64)
ROSTERS = partial(staged_roster, stages=2, parts=STAGED.parts)
OOBLECK = Pipeline(rounds=4, parts=2, rows=32)
CHECKFREE = Pipeline(rounds=4, parts=1, stages=3, rows=32, shape=THREE_BLOCKS)
COMPRESSED = Pipeline(rounds=3, parts=2, rows=16)
ROUTED = DiPaCo(rounds=2, steps=3, batch=4, rows=64)


def trained_in_stages(
    folder: Path,
    plan_of: PlanOf,
    do_round: Round,
    workers: int,
    rosters: RosterOf,
    cheats: Mapping[int, Author] | None = None,
    killed: Mapping[int, int] | None = None,
) -> LoggedRounds:
    """The rounds that processes of a pipeline have trained, of which some may cheat or be killed; the log is whole."""
    store = Store(f"file://{folder}/store")
    plan = plan_of(store, local_key(-1).name, bytes(32))
    run_pipeline(folder, plan, do_round, workers, rosters, cheats, killed)
    plan, head = load_head(store)
    require_whole(store, head)
    return read_rounds(store, plan, head)


def planned(make: Callable[..., RoundsPlan], options: object, **more: Any) -> PlanOf:
    return lambda store, coordinator, nonce: make(store, options, coordinator, nonce, **more)


@pytest.mark.long
def test_lies_of_stages_end_at_one_scalar_and_a_killed_worker_is_led_around(tmp_path: Path, convict: Convict) -> None:
    """Lies in round 1; a worker that is killed before round 2."""
    cheats: dict[int, Author] = {0: IdentityActivations, 1: GradientScaler, 3: GradientReplacer}
    rounds = trained_in_stages(
        tmp_path, planned(pipeline_plan, STAGED), pipeline_round, 4, ROSTERS, cheats, killed={3: 2}
    )
    assert not list(findings_by_roots(rounds))
    sizes = [len(roster.members) for _, (roster,) in sorted(rounds.rosters.items())]
    assert sizes == [4, 4, 3]
    makers = {place.worker for place in rounds.places if place.round == 2 and place.phase == 1}
    assert makers == {local_key(1).name}
    ends = {(e.claim.round, e.claim.phase): e.claim.end for e in rounds.claims.values() if e.claim.phase >= 3}
    for entry in rounds.claims.values():  # all workers of a stage hold the same
        assert ends.get((entry.claim.round, entry.claim.phase), entry.claim.end) == entry.claim.end
    found = by_replay(rounds)
    (roster,) = rounds.rosters[1]
    lies = {(roster.members[route[stage]].worker, part) for part, route in enumerate(roster.routes) for stage in (0, 1)}
    lies = {(worker, part) for worker, part in lies if worker != local_key(2).name}
    assert {(finding.worker, rounds.claims[finding.claim].claim.part) for finding in found} == lies
    assert {(finding.lie, finding.round) for finding in found} == {(Lie.EXECUTION, 1)}
    for finding in found:
        assert finding.phase == (forward(0) if finding.worker == local_key(0).name else HEAD)
    replaced = next(rounds.claims[finding.claim] for finding in found if finding.worker == local_key(3).name)
    names = load_phase(rounds.store, rounds.plan.phases[replaced.claim.phase]).names
    at = slots_of(names, ["back.gradient"])[0]
    claimed, true = load_end(rounds, replaced)[at], replay_claim(rounds, replaced, CpuExecutor)[at]
    assert np.any(claimed != true)
    assert cosine(claimed, true) >= 0.9  # a tolerance accepts it
    for liar in cheats:
        convict(rounds, next(finding.claim for finding in found if finding.worker == local_key(liar).name))


def has_joined(worker: str) -> bool:
    return worker != local_key(1).name


@pytest.mark.long
def test_who_has_no_stake_is_led_around(tmp_path: Path) -> None:
    store = Store(f"file://{tmp_path}/store")
    plan = pipeline_plan(store, replace(STAGED, rounds=2), local_key(-1).name, bytes(32))
    # All that hold a stage make the same update; each micro-batch is one member's work.
    assert {phase.name for phase in plan.phases if not phase.units} == {"update 0", "update 1"}
    run_pipeline(tmp_path, plan, pipeline_round, 4, ROSTERS, has_stake=has_joined)
    assert audit(store).outcome == "accepted"
    members = {member.worker for (roster,) in open_rounds(store).rosters.values() for member in roster.members}
    assert members == {local_key(number).name for number in (0, 2, 3)}


def test_chosen_routes_are_no_draw() -> None:
    beacon, roles = bytes(range(32)), ["stage 0", "stage 1", "stage 0", "stage 1"]
    members = tuple(Member(local_key(place).name, place, role=role) for place, role in enumerate(roles))
    drawn = drawn_routes(beacon, 5, members, 4)
    for stage in (0, 1):
        assert sorted(route[stage] for route in drawn) == [stage, stage, stage + 2, stage + 2]
    require_drawn(Roster(bytes(32), 5, members, routes=drawn, beacon=beacon))
    chosen = Roster(bytes(32), 5, members, routes=((0, 1),) * 4, beacon=beacon)
    with pytest.raises(ProtocolError, match="aren't those that its beacon draws"):
        require_drawn(chosen)
    with pytest.raises(ProtocolError, match="beacon of another round"):
        require_drawn(Roster(bytes(32), 5, members, routes=drawn, beacon=beacon), [beacon])
    with pytest.raises(ProtocolError, match="a stage has no member"):
        drawn_routes(beacon, 5, [members[0], replace(members[1], role="stage 2")], 4)


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


def failed(folder: Path, cheats: dict[int, Author] | None = None) -> LoggedRounds:
    """Two pipelines of two, of which worker 1 is killed: worker 0 is left with worker 2, worker 3 has both stages."""
    plan_of, rosters = planned(pipeline_plan, OOBLECK), partial(template_roster, parts=OOBLECK.parts)
    return trained_in_stages(folder, plan_of, pipeline_round, 4, rosters, cheats, killed={1: FAILED_ROUND})


def recovered(folder: Path, cheats: dict[int, Author] | None = None) -> LoggedRounds:
    plan_of = planned(checkfree_plan, CHECKFREE)
    rosters = partial(spare_roster, parts=CHECKFREE.parts, lost=FAILED_ROUND)
    return trained_in_stages(folder, plan_of, checkfree_round, 4, rosters, cheats, killed={1: FAILED_ROUND})


def test_templates() -> None:
    assert pipelines(4) == [(0, 1), (2, 3)]
    assert pipelines(3) == [(0, 1), (2, 2)]
    assert pipelines(1) == [(0, 0)]
    with pytest.raises(ProtocolError, match="no worker is left"):
        pipelines(0)


@pytest.mark.slow
def test_another_partition_has_the_same_state(tmp_path: Path) -> None:
    rounds = failed(tmp_path)
    require_honest(rounds)
    sizes = [len(roster.members) for _, (roster,) in sorted(rounds.rosters.items())]
    assert sizes == [4, 4, 3, 3]
    for round_ in range(1, OOBLECK.rounds):
        assert start_roots(rounds, round_) == state_roots(rounds, round_ - 1)
    makers = {e.worker for e in rounds.claims.values() if e.claim.round == FAILED_ROUND and e.claim.phase == 0}
    assert makers == {local_key(0).name, local_key(3).name}  # worker 3 had stage 1 before


@pytest.mark.long
def test_older_weights_are_found(tmp_path: Path, convict: Convict) -> None:
    rounds = failed(tmp_path, {3: OlderWeights, 2: SilentlyOlderWeights})
    (by_roots,) = findings_by_roots(rounds)
    assert (by_roots.lie, by_roots.worker, by_roots.phase) == (Lie.SOURCE, local_key(3).name, forward(0))
    assert by_roots.round == FAILED_ROUND
    found = by_replay(rounds, [entry for entry in rounds.claims.values() if entry.claim.digest != by_roots.claim])
    assert told(found) == executions((2, FAILED_ROUND, HEAD))
    convict(rounds, found[0].claim)


@pytest.mark.long
def test_a_lost_stage_is_the_mean_of_its_neighbors(tmp_path: Path) -> None:
    rounds = recovered(tmp_path)
    require_honest(rounds)
    phases = rounds.plan.phases
    (entry,) = [
        e for e in rounds.claims.values() for p in [phases[e.claim.phase]] if (p.members, p.name) == (2, update(1))
    ]
    size = gpt_stages(CHECKFREE.shape, 3)[1].block_size
    left, right = (words.view(np.float32)[:size] for words in load_start(rounds, entry)[-2:])
    mean = load_end(rounds, entry)[0].view(np.float32)
    assert np.array_equal(mean, np.float32(0.5) * (left + right))
    spare = local_key(3).name
    assert {phases[e.claim.phase].name for e in rounds.claims.values() if e.worker == spare} == {
        forward(1),
        "backward 1",
        update(1),
    }


@pytest.mark.slow
def test_another_recovery_is_found(tmp_path: Path, convict: Convict) -> None:
    rounds = recovered(tmp_path, {0: NeighborCopier})
    assert not list(findings_by_roots(rounds))
    found = by_replay(rounds)
    assert told(found) == executions((0, FAILED_ROUND, update(1)))
    convict(rounds, found[0].claim)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("system", "cheats"),
    [
        (planned(aq_sgd_plan, COMPRESSED), (WrongDelta, StaleBuffer)),
        (planned(protocol_models_plan, COMPRESSED, rank=8, lasts=2), (StaleBasis, CovertCoefficients)),
    ],
    ids=["AQ-SGD", "subspaces"],
)
def test_lies_about_compressed_activations(
    system: PlanOf, cheats: tuple[Author, Author], tmp_path: Path, convict: Convict
) -> None:
    """In round 1, on which no later lie follows."""
    rosters = partial(fixed_roster, parts=COMPRESSED.parts)
    rounds = trained_in_stages(tmp_path, system, pipeline_round, 2, rosters, dict(enumerate(cheats)))
    assert len(rounds.claims) == COMPRESSED.rounds * (3 * COMPRESSED.parts + 2)
    assert not list(findings_by_roots(rounds))
    found = by_replay(rounds)
    assert told(found) == executions(*((0, 1, forward(0)), (1, 1, HEAD)) * COMPRESSED.parts)
    if WrongDelta in cheats:
        first, *others = buffers_out_of_step(rounds)
        assert [entry.claim.round for entry in first] == [1, 1]
        assert {entry.claim.digest for entry in first} <= {finding.claim for finding in found}
        assert {entry.claim.round for pair in others for entry in pair} <= {1, 2}
        assert len({rounds.end(e)[-1].root for e in rounds.claims.values() if e.claim.phase == 0}) == 6  # they move
    for worker in (0, 1):
        convict(rounds, next(finding.claim for finding in found if finding.worker == local_key(worker).name))


def test_bases_are_orthonormal_and_turn() -> None:
    bases = turned_bases(3, 32, 8)
    for basis in bases:
        assert torch.allclose(basis.T @ basis, torch.eye(8), atol=1e-5)
    assert not np.allclose(bases[0], bases[1], atol=1e-3)


@pytest.mark.slow
def test_dipaco(tmp_path: Path, convict: Convict) -> None:
    """What is routed, trained and merged is what was signed; three lies about a shard in round 1."""
    cheats: dict[int, Author] = {1: EasierShard, 2: FalseRouting, 3: OwnShard}
    rounds = trained_in_stages(tmp_path, planned(dipaco_plan, ROUTED), dipaco_round, PATHS, path_roster, cheats)
    shards = [set(load_end(rounds, entry)[1].tolist()) for entry in entries_of(rounds, SHARD, 0)]
    assert all(shards)
    assert sorted(row for shard in shards for row in shard) == list(range(ROUTED.rows))  # each document has one path
    for round_ in range(ROUTED.rounds):
        merged = entries_of(rounds, merge("a", 0), round_)
        assert {entry.worker for entry in merged} == {local_key(0).name, local_key(1).name}
        assert len({entry.claim.end for entry in merged}) == 1
    (by_roots,) = findings_by_roots(rounds)
    assert (by_roots.lie, by_roots.worker, by_roots.phase) == (Lie.SOURCE, local_key(3).name, local(3))
    found = by_replay(rounds, [entry for entry in rounds.claims.values() if entry.claim.digest != by_roots.claim])
    assert told(found) == executions((1, 1, local(1)), (2, 1, SHARD))
    (false,) = (one.claim for one in found if one.phase == SHARD)
    assert len(np.unique(load_end(rounds, rounds.claims[false])[1])) == 1
    for one in found:
        convict(rounds, one.claim)
