"""DiLoCo, lo-fi, NoLoCo and DisTrO in groups of processes: all liars of a system lie in one training of it.

Their lies are found, nobody else is accused, and in the court they lose at one scalar.
"""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from logged_trainings import Convict, by_replay, ends_of, executions, told, trained_by_workers

from lab.rounds.replica_cheats import (
    FROM_ROUND,
    LYING_ROUND,
    BaseSender,
    Copycat,
    Loner,
    Magnifier,
    RandomSigns,
    Repeater,
    with_chosen_partners,
)
from pol.decentralised import distro
from pol.decentralised.diloco import DiLoCo, diloco_plan, diloco_round
from pol.decentralised.lofi import LoFi, lofi_plan, lofi_round
from pol.decentralised.noloco import NoLoCo, noloco_plan, noloco_round, with_drawn_partners
from pol.decentralised.parts.small_gpt import Shape
from pol.decentralised.processes.local_processes import local_key
from pol.demo.worker_processes import Sandbagger
from pol.rounds.auditing.claim_replay import load_end
from pol.rounds.auditing.round_audit import Lie, findings_by_roots
from pol.rounds.plan.source_rules import ClaimPlace

TINY = Shape(layers=1, width=16, heads=2, length=8)


@pytest.mark.long
def test_diloco(tmp_path: Path, convict: Convict) -> None:
    """With messages of int8."""
    options = DiLoCo(rounds=3, steps=5, seats=3, sizes=(3,))
    rounds = trained_by_workers(tmp_path, diloco_plan, options, diloco_round, 3, {1: Sandbagger, 2: Magnifier})
    assert len(rounds.claims) == 3 * 3 * 3
    for round_ in range(3):
        merged = ends_of(rounds, "merge", round_)
        assert (len(merged), len(set(merged))) == (3, 1)
    assert not list(findings_by_roots(rounds))
    found = by_replay(rounds)
    assert told(found) == executions((1, LYING_ROUND, "local"), (2, LYING_ROUND, "message"))
    for one in found:  # by the proof, or because the liar's proof refutes nothing
        convict(rounds, one.claim)


@pytest.mark.slow
def test_lofi(tmp_path: Path, convict: Convict) -> None:
    """One mean of whole fine-tunings; the base model and a copied one are found."""
    options = LoFi(parts=2, steps=3, seats=3, shape=TINY)
    do_round = partial(lofi_round, options)
    rounds = trained_by_workers(tmp_path, lofi_plan, options, do_round, 3, {1: BaseSender, 2: Copycat})
    assert len(rounds.claims) == 3 * 3
    assert not list(findings_by_roots(rounds))
    found = by_replay(rounds)
    assert told(found) == executions(*[(liar, 0, "tuned") for liar in (1, 2) for _ in range(2)])
    tuned = [[rounds.places[ClaimPlace(local_key(n).name, 0, 0, part)] for part in range(2)] for n in range(3)]
    for part in range(2):
        assert tuned[1][part].claim.end == tuned[1][part].claim.start
        assert tuned[2][part].claim.end == tuned[0][part].claim.end
    ends = [load_end(rounds, parts[-1])[0].view(np.float32) for parts in tuned]
    (mean,) = {load_end(rounds, e)[0].tobytes() for e in rounds.claims.values() if e.claim.phase == 1}
    assert mean == (((ends[0] + ends[1]) + ends[2]) * np.float32(1 / 3)).tobytes()
    for claim in {one.worker: one.claim for one in found}.values():
        convict(rounds, claim)


@pytest.mark.slow
def test_noloco(tmp_path: Path) -> None:
    """Partners are drawn; who chooses one is found by roots alone."""
    options = NoLoCo(rounds=3, steps=3, seats=3, shape=TINY)
    rounds = trained_by_workers(tmp_path, noloco_plan, options, noloco_round, 3, {1: Loner}, with_chosen_partners)
    assert len(rounds.claims) == 3 * 3 * 3
    rosters = [roster for (roster,) in rounds.rosters.values()]
    drawn = [with_drawn_partners(roster).partners for roster in rosters]
    assert len(set(drawn)) > 1
    assert [roster.partners == partners for roster, partners in zip(rosters, drawn, strict=True)] == [True, False, True]
    assert rosters[LYING_ROUND].partners[1] != 1
    found = {(one.lie, one.worker, one.round) for one in findings_by_roots(rounds)}
    coordinator, loner = local_key(-1).name, local_key(1).name
    assert found == {(Lie.ROSTER, coordinator, LYING_ROUND), (Lie.SOURCE, loner, LYING_ROUND)}
    assert not by_replay(rounds)


@pytest.mark.slow
def test_distro(tmp_path: Path, convict: Convict) -> None:
    """One-byte frequencies: workers stay equal bit for bit; copied and drawn messages are found."""
    options, cheats = distro.DisTrO(rounds=3, seats=3, sizes=(3,)), {1: Repeater, 2: RandomSigns}
    rounds = trained_by_workers(tmp_path, distro.distro_plan, options, distro.distro_round, 3, cheats)
    assert len(rounds.claims) == 3 * 3 * 2
    for round_ in range(3):
        # The roots are of the weights and of all messages, which every worker holds.
        merged, sent = (ends_of(rounds, phase, round_) for phase in (distro.MERGE, distro.STEP))
        assert (len(merged), len(set(merged)), len(set(sent))) == (3, 1, 3)
    assert not list(findings_by_roots(rounds))
    found = by_replay(rounds)
    assert told(found) == executions(
        *[(liar, round_, distro.STEP) for liar in (1, 2) for round_ in range(FROM_ROUND, 3)]
    )
    for claim in {one.worker: one.claim for one in found}.values():
        convict(rounds, claim)


def test_a_byte_holds_a_frequency_and_its_sign() -> None:
    generator = torch.Generator().manual_seed(0)
    values = torch.randn((50, 8), generator=generator)
    chosen = torch.randint(0, 128, (50, 8), generator=generator)
    found, signs = distro.unpacked(distro.packed(chosen, values))
    assert torch.equal(found, chosen)
    assert torch.equal(signs, values.sign())


def test_transforms_are_orthonormal() -> None:
    for matrix in distro.matrices().values():
        product = (matrix.double() @ matrix.double().t()).numpy()
        np.testing.assert_allclose(product, np.eye(len(matrix)), atol=1e-6)
