"""A placement's cost is the same integer for everybody; a coordinator that favors its own worker is found."""

from itertools import permutations
from pathlib import Path

import pytest
import torch

from lab.rounds.claim_dispute import walked
from lab.rounds.tiny_training import PLACER, announced, drawn_network, end_of
from pol.decentralised.placement import COST, NO_PLACEMENT, Network, cost, cost_of, favors_somebody, find_placement
from pol.dispute.position import Side
from pol.errors import ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.rounds.auditing.claim_replay import findings_by_replay
from pol.rounds.auditing.round_audit import Lie, findings_by_roots


@pytest.mark.parametrize("seed", range(3))
def test_the_best_of_all_placements_is_found(seed: int) -> None:
    net = drawn_network(seed, 2, 3)
    everything = torch.tensor(list(permutations(range(6)))).view(-1, 2, 3)
    costs = cost(everything, net.gradients, net.activations)
    assert cost_of(net, find_placement(net)) == int(costs.min())
    assert int(costs.min()) < 0.8 * float(costs.double().mean())


def test_an_honest_placement(tmp_path: Path) -> None:
    net = drawn_network(0, 2, 4)
    chosen = find_placement(net)
    rounds = announced(tmp_path, net, chosen)
    assert not list(findings_by_roots(rounds))
    assert not list(findings_by_replay(rounds, rounds.claims.values(), CpuExecutor))
    end = end_of(rounds)
    assert int(end[COST]) == cost_of(net, chosen)
    assert not favors_somebody(end)


def test_a_favored_worker_shows_in_the_claim(tmp_path: Path) -> None:
    net = drawn_network(0, 2, 4)
    worst = torch.arange(8).view(2, 4)  # near and far workers alternate
    assert favors_somebody(end_of(announced(tmp_path, net, worst)))


def test_a_false_cost_ends_at_one_scalar(tmp_path: Path) -> None:
    net = drawn_network(0, 2, 4)
    worst = torch.arange(8).view(2, 4)
    rounds = announced(tmp_path, net, worst, lied_cost=1)
    assert not favors_somebody(end_of(rounds))
    (found,) = findings_by_replay(rounds, rounds.claims.values(), CpuExecutor)
    assert (found.lie, found.worker) == (Lie.EXECUTION, PLACER.name)
    assert walked(rounds, rounds.claims[found.claim]).winner is Side.CHALLENGER


def test_a_worker_that_stands_twice_is_no_placement(tmp_path: Path) -> None:
    net = drawn_network(0, 2, 2)
    end = end_of(announced(tmp_path, net, torch.tensor([[0, 1], [1, 3]])))
    assert int(end[COST]) == NO_PLACEMENT
    assert favors_somebody(end)


def test_networks_that_are_none() -> None:
    good = drawn_network(0, 2, 2)
    for gradients in (good.gradients[:3], good.gradients.int(), good.gradients - 10**9, good.gradients + 2**29):
        with pytest.raises(ProtocolError):
            Network(gradients, good.activations, 2, 2)
    with pytest.raises(ProtocolError):
        Network(good.gradients, good.activations, 4, 1)
