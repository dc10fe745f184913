"""DisTrO's one-byte frequencies: workers stay equal bit for bit, copied and drawn messages are found."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dispute_harness import court
from lab.rounds.claim_dispute import sides
from lab.rounds.distro_cheats import FROM_ROUND, Copycat, RandomSigns
from pol.decentralised.distro import (
    MERGE,
    STEP,
    DisTrO,
    distro_plan,
    distro_round,
    matrices,
    packed,
    unpacked,
)
from pol.decentralised.processes.local_processes import local_key, run_workers
from pol.dispute.position import Side
from pol.execution.cpu import CpuExecutor
from pol.rounds.auditing.claim_replay import findings_by_replay
from pol.rounds.auditing.round_audit import Lie, findings_by_roots
from pol.rounds.log.logged_rounds import LoggedRounds, read_rounds
from pol.rounds.log.rounds_log import load_head, require_whole
from pol.training.storage.store import Store

ROUNDS = 3


@pytest.fixture(scope="module")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> LoggedRounds:
    """Three workers, of which two lie from `FROM_ROUND` on."""
    folder = tmp_path_factory.mktemp("distro")
    store = Store(f"file://{folder}/store")
    plan = distro_plan(store, DisTrO(rounds=ROUNDS, seats=3, sizes=(3,)), local_key(-1).name, bytes(32))
    run_workers(folder, plan, distro_round, 3, {1: Copycat, 2: RandomSigns})
    plan, head = load_head(store)
    require_whole(store, head)
    return read_rounds(store, plan, head)


def ends(rounds: LoggedRounds, phase: str, round_: int) -> list[bytes]:
    number = [phase.name for phase in rounds.plan.phases].index(phase)
    claims = [entry.claim for entry in rounds.claims.values()]
    return [claim.end for claim in claims if (claim.round, claim.phase) == (round_, number)]


def test_workers_stay_equal(rounds: LoggedRounds) -> None:
    for round_ in range(ROUNDS):
        # The roots are of the weights and of all messages, which every worker holds.
        assert len(ends(rounds, MERGE, round_)) == 3
        assert len(set(ends(rounds, MERGE, round_))) == 1
        assert len(set(ends(rounds, STEP, round_))) == 3


def test_copied_and_drawn_messages_end_at_one_scalar(rounds: LoggedRounds) -> None:
    assert len(rounds.claims) == ROUNDS * 3 * 2
    assert not list(findings_by_roots(rounds))
    found = list(findings_by_replay(rounds, rounds.claims.values(), CpuExecutor))
    told = {(item.lie, item.worker, item.round, item.phase) for item in found}
    lies = [(local_key(liar).name, round_) for liar in (1, 2) for round_ in range(FROM_ROUND, ROUNDS)]
    assert told == {(Lie.EXECUTION, worker, round_, STEP) for worker, round_ in lies}
    with court() as evm:
        for worker in {item.worker for item in found}:
            claim = next(item.claim for item in found if item.worker == worker)
            played = evm.play(*sides(rounds, rounds.claims[claim]))
            assert played.match.winner is Side.CHALLENGER


def test_a_byte_holds_a_frequency_and_its_sign() -> None:
    generator = torch.Generator().manual_seed(0)
    values = torch.randn((50, 8), generator=generator)
    chosen = torch.randint(0, 128, (50, 8), generator=generator)
    found, signs = unpacked(packed(chosen, values))
    assert torch.equal(found, chosen)
    assert torch.equal(signs, values.sign())


def test_transforms_are_orthonormal() -> None:
    for matrix in matrices().values():
        product = (matrix.double() @ matrix.double().t()).numpy()
        np.testing.assert_allclose(product, np.eye(len(matrix)), atol=1e-6)
