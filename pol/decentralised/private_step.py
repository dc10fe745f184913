"""DP-SGD by several owners of data: each clips its examples' gradients, adds noise and shares its weights.

Abadi et al., Deep Learning with Differential Privacy, 1607.00133; McMahan et al., 1710.06963. Sampling, clipping and
noise are one step program: what is proven is that the mechanism ran with the committed seed. It protects against those
who don't know that seed, and only if nobody has chosen it: the owner draws it, and seals it with its data.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from torch import Tensor

from pol.arithmetic.primitives import Words
from pol.decentralised.parts import small_gpt
from pol.decentralised.parts.mean_of_weights import mean_step
from pol.decentralised.processes.local_processes import Author
from pol.decentralised.processes.round_worker import RoundWorker
from pol.decentralised.training_options import TrainingOptions
from pol.errors import ProtocolError
from pol.execution.executor import ExecutorFactory
from pol.graph.capture import to_words
from pol.graph.capture.functions import capture_function
from pol.graph.capture.tracing.random_operations import seed_words
from pol.graph.captured_step import Capture
from pol.rounds.auditing.claim_replay import load_phase
from pol.rounds.claim_author import ClaimAuthor
from pol.rounds.plan.plan_builder import From, PlanBuilder
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.worker_key import WorkerKey
from pol.training.storage.sealing import SealedStore
from pol.training.storage.store import Store

ORDERS = (*range(2, 65), 80, 96, 128, 192, 256, 512)
"""Integer orders among which the bound takes the best."""


def epsilon(rate: float, noise: float, steps: int, delta: float) -> float:
    """The epsilon of ``steps`` sampled Gaussian steps at a ``delta``: each example is in a batch with chance ``rate``.

    ``noise`` is the standard deviation over the clipping norm. An upper bound, for Gaussians of real numbers.
    """
    if not 0 < rate <= 1 or noise <= 0 or not 0 < delta < 1 or steps < 0:
        raise ProtocolError("the bound needs a rate up to 1, noise above 0, a delta between 0 and 1, steps from 0 on")
    found: list[float] = [steps * renyi(rate, noise, order) + math.log(1 / delta) / (order - 1) for order in ORDERS]
    return min(found)


def renyi(rate: float, noise: float, order: int) -> float:
    """The Renyi divergence of one step at an integer order of 2 or more."""
    if rate == 1:
        return order / (2 * noise * noise)
    terms = [
        math.log(math.comb(order, k))
        + k * math.log(rate)
        + (order - k) * math.log1p(-rate)
        + (k * k - k) / (2 * noise * noise)
        for k in range(order + 1)
    ]
    greatest = max(terms)
    return (greatest + math.log(math.fsum(math.exp(term - greatest) for term in terms))) / (order - 1)


def batch_limit(rows: int, rate: float, tail: float = 1e-9) -> int:
    """The least size that a batch of examples drawn at a rate exceeds with a chance below ``tail``."""
    chance, below = (1 - rate) ** rows, 0.0
    for size in range(rows + 1):
        below += chance
        if 1 - below < tail:
            return size
        chance *= (rows - size) / (size + 1) * rate / (1 - rate)
    return rows


PRIVATE, MERGE = "private", "merge"


@dataclass(frozen=True)
class PrivateTraining(TrainingOptions):
    """Options of a training. An example of a seat's own ``rows`` is in a batch with chance ``sampled``.

    ``clip`` is the greatest norm of an example's gradient, ``noise`` the standard deviation over it.
    """

    rounds: int = 5
    steps: int = 10
    seats: int = 2
    sizes: Sequence[int] = (2,)
    rows: int = 256
    sampled: float = 1 / 16
    clip: float = 1.0
    noise: float = 0.8
    rate: float = 0.5
    shape: small_gpt.Shape = small_gpt.SMALL

    def epsilon(self, delta: float = 1e-5) -> float:
        """The bound for all steps of a seat, against those who don't know its seed."""
        return epsilon(self.sampled, self.noise, self.rounds * self.steps, delta)


def private_plan(
    store: Store,
    options: PrivateTraining,
    coordinator: str,
    nonce: bytes,
    vaults: Sequence[Store] = (),
    seeds: Sequence[int] | None = None,
) -> RoundsPlan:
    """The plan of a training of the small GPT, stored; data and seed of each seat are in its vault.

    ``seeds`` have 64 bits, one for each seat, by default of the system's entropy. This function knows all data, for a
    run on one machine: owners would build the constants of their seats themselves, and give their roots and digests.
    """
    model = small_gpt.small_gpt(options.shape)
    weights = {name: parameter.detach() for name, parameter in model.named_parameters()}
    step = private_step(model, weights, options)
    drawn = [secrets.randbits(64) for _ in range(options.seats)] if seeds is None else seeds
    data = [seat_constants(step, options, seat, drawn[seat]) for seat in range(options.seats)]
    merged = {name: From(MERGE, name, lag=1, starts=True, inherits=True) for name in weights}
    builder = PlanBuilder(store, vaults)
    builder.phase(PRIVATE, step, merged, data=data, steps=options.steps, units=options.steps)
    for members in options.sizes:
        received = {f"{name}.{k}": From(PRIVATE, name, f"member:{k}") for k in range(members) for name in weights}
        builder.phase(MERGE, mean_step(weights, members), {**merged, **received}, members=members)
    said = {"epsilon": f"{options.epsilon():.2f} at delta 1e-5", "noise": str(options.noise), "clip": str(options.clip)}
    return builder.build("dp-sgd", coordinator, nonce, options.rounds, said)


def seat_constants(step: Capture, options: PrivateTraining, seat: int, seed: int) -> list[Words]:
    """The constants of a seat: its own text, and its seed."""
    text, following = small_gpt.text_rows(options.rows, options.shape.length, seed=1 + seat)
    own = {"text": text, "following": following, "seed": seed_words(seed)}
    return [
        to_words(name, own[name]) if name in own else words
        for name, words in zip(step.names.constants, step.constants, strict=True)
    ]


def private_step(model: small_gpt.SmallGpt, weights: Mapping[str, Tensor], options: PrivateTraining) -> Capture:
    """A step of DP-SGD: a drawn batch, the gradient of each example, clipped; their sum with noise.

    Batches have a limit that a draw exceeds with a chance below 1e-9 (`batch_limit`): delta grows by as much a step.
    """
    limit = batch_limit(options.rows, options.sampled)

    def loss(parameters: dict[str, Tensor], text: Tensor, following: Tensor) -> Tensor:
        return small_gpt.loss(torch.func.functional_call(model, parameters, text[None]), following[None])

    def step(state: dict[str, Tensor], constants: dict[str, Tensor], _: Tensor) -> dict[str, Tensor]:
        is_drawn = (torch.rand(options.rows) < options.sampled).to(torch.float32)
        # The first ``limit`` of those that are drawn; beyond them come others, whose gradients count nothing.
        counts, rows = torch.topk(is_drawn, limit)
        text, following = constants["text"].index_select(0, rows), constants["following"].index_select(0, rows)
        gradients = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(dict(state), text, following)
        norms = sum((part.flatten(1).square().sum(1) for part in gradients.values()), torch.zeros(limit)).sqrt()
        factors = counts * (constants["clip"] / (norms + 1e-6)).clamp(max=1.0)
        deviation = constants["clip"] * constants["noise"]

        def moved(name: str, gradient: Tensor) -> Tensor:
            clipped = (gradient.flatten(1) * factors.view(-1, 1)).sum(0).view(gradient.shape[1:])
            noisy = clipped + deviation * torch.randn(clipped.shape)
            return state[name] - constants["rate"] * noisy

        return {name: moved(name, gradient) for name, gradient in gradients.items()}

    text, following = small_gpt.text_rows(options.rows, options.shape.length, seed=1)
    rate = options.rate / (options.sampled * options.rows)
    numbers = {"clip": options.clip, "noise": options.noise, "rate": rate}
    constants = {name: torch.tensor([value]) for name, value in numbers.items()}
    return capture_function(step, weights, {"text": text, "following": following, **constants})


def data_owner(
    secret: bytes, author: Author, store: Store, plan: RoundsPlan, key: WorkerKey, executors: ExecutorFactory
) -> ClaimAuthor:
    """The author of a worker whose data are sealed to an X25519 key; ``secret`` is that key, 32 bytes."""
    vault = SealedStore(store, key=X25519PrivateKey.from_private_bytes(secret))
    return author(store, plan, key, executors, vault=vault)


def private_round(worker: RoundWorker) -> None:
    """One round of one worker, between `RoundWorker.begin` and `RoundWorker.finish`."""
    made = worker.make(PRIVATE)
    names = load_phase(worker.author.store, worker.author.plan.phases[made.entry.claim.phase]).names
    worker.share(made, names.slots)
    worker.make(MERGE)
