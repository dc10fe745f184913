"""Which worker holds which stage of which pipeline, over a matrix of latencies and bandwidths: a cost that is proven.

Yuan et al., Decentralized Training of Foundation Models in Heterogeneous Environments, 2206.01288, section 3. The cost
is in integers, so it is the same for everybody. That no exchange of two workers is better is proven with it; that no
placement at all is better isn't.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import torch
from torch import Tensor

from pol.errors import OperationalError, ProtocolError
from pol.graph.capture.functions import capture_function
from pol.graph.captured_step import Capture
from pol.graph.step_program import Component
from pol.rounds.plan.plan_builder import ALWAYS, PlanBuilder
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.training.storage.store import Store

PHASE = "placement"
COST, BEST_EXCHANGE = "cost", "best exchange"
NO_PLACEMENT = 1 << 30
"""The cost of an assignment that names a worker twice."""


@dataclass(frozen=True)
class Network:
    """Times between workers in microseconds, int64 of shape (workers, workers), zero on the diagonal.

    ``gradients`` is for a stage's share of gradients between two replicas, ``activations`` for a micro-batch between
    two stages, both ways each. A placement has ``pipelines`` times ``stages`` workers.
    """

    gradients: Tensor
    activations: Tensor
    pipelines: int
    stages: int

    def __post_init__(self) -> None:
        workers = self.pipelines * self.stages
        if self.pipelines < 1 or self.stages < 2 or workers < 2:
            raise ProtocolError("a placement has at least one pipeline of two stages")
        for times in (self.gradients, self.activations):
            if times.shape != (workers, workers) or times.dtype != torch.int64 or bool((times < 0).any()):
                raise ProtocolError(f"times are int64 of shape ({workers}, {workers}), in microseconds, none below 0")
            if int(times.max()) * workers * 2 >= NO_PLACEMENT:
                raise ProtocolError(f"a time of {int(times.max())} microseconds is too long: give milliseconds")


def network(
    latency: Tensor, bandwidth: Tensor, pipelines: int, stages: int, gradients: int, activations: int
) -> Network:
    """The times that follow from a latency (microseconds) and a bandwidth (bytes per millisecond) of each pair.

    ``gradients`` are the bytes of a stage's gradients, ``activations`` those of a micro-batch's activations.
    """

    def times(size: int) -> Tensor:
        found = 2 * (latency + -(-size * 1000 // bandwidth.clamp(min=1)))
        return found.fill_diagonal_(0)

    return Network(times(-(-gradients // pipelines)), times(activations), pipelines, stages)


def cost(assignments: Tensor, gradients: Tensor, activations: Tensor) -> Tensor:
    """The times of assignments of shape (count, pipelines, stages), int64: of a round of gradients and a micro-batch.

    The slowest worker of all stages sends its gradients to the other replicas, one after another; the slowest pipeline
    passes its activations on from stage to stage.
    """
    count, pipelines, stages = assignments.shape
    replicas = assignments.transpose(1, 2).reshape(count * stages, pipelines)
    exchanged = gradients[replicas.unsqueeze(2), replicas.unsqueeze(1)].sum(2).reshape(count, stages * pipelines)
    passed = activations[assignments[:, :, :-1], assignments[:, :, 1:]].sum(2)
    total = exchanged.amax(1) + passed.amax(1)
    places = assignments.reshape(count, 1, pipelines * stages)
    named = (places == torch.arange(pipelines * stages).view(1, -1, 1)).sum(2)
    return torch.where((named == 1).all(1), total, torch.full_like(total, NO_PLACEMENT))


def placement_step(net: Network, assignment: Tensor) -> Capture:
    """The program that gives the cost of an assignment, and the least cost after an exchange of two workers."""
    exchanges = _exchanges(net.pipelines * net.stages)

    def step(state: dict[str, Tensor], constants: dict[str, Tensor], _: Tensor) -> dict[str, Tensor]:
        gradients, activations = constants["gradients"], constants["activations"]
        flat = state["assignment"].reshape(-1)
        others = flat[constants["exchanges"]].reshape(-1, net.pipelines, net.stages)
        return {
            COST: cost(state["assignment"].unsqueeze(0), gradients, activations),
            BEST_EXCHANGE: cost(others, gradients, activations).amin(0, keepdim=True),
        }

    zero = torch.zeros(1, dtype=torch.int64)
    state = {"assignment": assignment, COST: zero, BEST_EXCHANGE: zero}
    constants = {"gradients": net.gradients, "activations": net.activations, "exchanges": exchanges}
    return capture_function(step, state, constants, components=dict.fromkeys(state, Component.BUFFER))


def placement_plan(store: Store, net: Network, assignment: Tensor, coordinator: str, nonce: bytes) -> RoundsPlan:
    """The plan that announces an assignment of workers, of shape (pipelines, stages); its only claim is the cost."""
    builder = PlanBuilder(store)
    capture = placement_step(net, assignment)
    builder.phase(PHASE, capture, dict.fromkeys(capture.names.slots, ALWAYS))
    said = {"pipelines": str(net.pipelines), "stages": str(net.stages)}
    return builder.build("placement", coordinator, nonce, 1, said)


def find_placement(net: Network, seed: int = 0, starts: int = 8) -> Tensor:
    """An assignment that no exchange of two workers makes better, of shape (pipelines, stages).

    Starts come from SciPy's solver of the quadratic assignment problem, and from the seed.

    Raises:
        OperationalError: SciPy isn't installed.
    """
    try:
        from scipy.optimize import quadratic_assignment
    except ImportError as error:
        raise OperationalError(f"no solver ({error}): pip install 'proof-of-learning[placement]'") from error
    workers = net.pipelines * net.stages
    flow = np.zeros((workers, workers))
    for place, other in combinations(range(workers), 2):
        (lane, stage), (lane2, stage2) = divmod(place, net.stages), divmod(other, net.stages)
        flow[place, other] = flow[other, place] = float(stage == stage2 or (lane == lane2 and abs(stage - stage2) == 1))
    times = (net.gradients + net.activations).numpy().astype(np.float64)
    found = []
    for start in range(starts):
        options = {"rng": np.random.default_rng([seed, start])}
        solved = quadratic_assignment(flow, times, method="2opt", options=options)
        found.append(torch.from_numpy(np.array(solved.col_ind, np.int64)).view(net.pipelines, net.stages))
    improved = [_without_better_exchange(net, assignment) for assignment in found]
    return min(improved, key=lambda assignment: cost_of(net, assignment))


def cost_of(net: Network, assignment: Tensor) -> int:
    """The cost of one assignment in microseconds."""
    return int(cost(assignment.unsqueeze(0), net.gradients, net.activations))


def favors_somebody(end: Mapping[str, Tensor]) -> bool:
    """Whether the end of a claim shows an assignment that an exchange of two workers makes better, or none at all."""
    return bool(end[BEST_EXCHANGE] < end[COST]) or bool(end[COST] >= NO_PLACEMENT)


def _without_better_exchange(net: Network, assignment: Tensor) -> Tensor:
    exchanges, own = _exchanges(net.pipelines * net.stages), cost_of(net, assignment)
    while True:
        others = assignment.reshape(-1)[exchanges].view(-1, net.pipelines, net.stages)
        costs = cost(others, net.gradients, net.activations)
        best = int(costs.argmin())
        if int(costs[best]) >= own:
            return assignment
        assignment, own = others[best], int(costs[best])


def _exchanges(workers: int) -> Tensor:
    """All exchanges of two places: rows of the places with two of them exchanged."""
    rows = torch.arange(workers).repeat(workers * (workers - 1) // 2, 1)
    for row, (first, second) in zip(rows, combinations(range(workers), 2), strict=True):
        row[first], row[second] = second, first
    return rows
