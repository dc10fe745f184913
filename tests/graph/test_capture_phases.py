"""Several losses and optimizers in one step: a GAN, an actor and a critic; the program is the user's own loop.

Gradient checkpointing runs modules again in the backward pass; a capture holds both runs.
"""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import SGD, Adam, Optimizer, RMSprop
from torch.optim.lr_scheduler import StepLR
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
)
from transformers import GPT2Config, GPT2LMHeadModel

import chosen_rows
from graph.test_lowering_operations import outputs_of
from pol.errors import UnsupportedError
from pol.execution.cpu import CpuExecutor
from pol.execution.reference import ReferenceExecutor, next_state
from pol.graph.capture import Capture, Loop, capture
from pol.training.task.task_randomness import TaskRandomness

torch.manual_seed(1)
INPUTS, LABELS = torch.randn(12, 4), torch.arange(12) % 3
ORDER = torch.arange(12).reshape(3, 4)


class Net(nn.Module):
    """Two layers and what lies between them, recomputed or not."""

    def __init__(self, between: nn.Module, recompute: bool | str = True) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.first, self.between, self.last = nn.Linear(4, 6), between, nn.Linear(6, 3)
        self.recompute = recompute

    def block(self, x: Tensor) -> Tensor:
        return torch.tanh(self.between(self.first(x)))

    def forward(self, x: Tensor) -> Tensor:
        if not self.recompute:
            return self.last(self.block(x))  # type: ignore[no-any-return]  # torch: Any
        reentrant = self.recompute == "reentrant"
        return self.last(checkpoint(self.block, x.clone().requires_grad_(reentrant), use_reentrant=reentrant))  # type: ignore[no-any-return]  # torch: Any


def captured(model: nn.Module, loop: Loop = Loop()) -> Capture:  # noqa: B008  # immutable
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    return capture(model, functional.cross_entropy, optimizer, (INPUTS, LABELS), ORDER, loop)


def assert_same_bits(result: Capture) -> None:
    fast = CpuExecutor(result.program, result.constants).run(result.state, 1)
    slow = ReferenceExecutor(result.program, result.constants).run(result.state, 1)
    assert all(np.array_equal(one, other) for one, other in zip(fast, slow, strict=True))


@pytest.mark.parametrize(
    "loop", chosen_rows.first([Loop(accumulation=2), Loop(), Loop(precision="bf16-mixed")], 1, others=pytest.mark.slow)
)
def test_a_checkpointed_layer_is_captured_as_the_same_training(loop: Loop) -> None:
    torch.manual_seed(3)
    between = nn.Linear(6, 6)
    result = captured(Net(between), loop)
    assert result.program == captured(Net(between, recompute=False), loop).program


def test_statistics_move_twice_as_in_torch() -> None:
    result = captured(Net(nn.BatchNorm1d(6)))  # the self-check compares buffers too
    assert "between.running_mean" in result.names.slots


class Sequence(nn.Module):
    """`checkpoint_sequential` in two segments, or the layers one after another."""

    def __init__(self, recompute: bool) -> None:
        super().__init__()
        torch.manual_seed(2)
        layers = [nn.Linear(4, 6), nn.Tanh(), nn.Dropout(0.3), nn.Linear(6, 6), nn.Dropout(0.2), nn.Linear(6, 3)]
        self.layers, self.recompute = nn.Sequential(*layers), recompute

    def forward(self, x: Tensor) -> Tensor:
        if not self.recompute:
            return self.layers(x)  # type: ignore[no-any-return]  # torch: Any
        return checkpoint_sequential(self.layers, 2, x.requires_grad_(), use_reentrant=True)  # type: ignore[no-any-return]  # torch: Any


@pytest.mark.parametrize("recompute", ["plain", "reentrant"])
@pytest.mark.parametrize("loop", chosen_rows.first([Loop(accumulation=2), Loop()], 1, others=pytest.mark.slow))
def test_a_recomputation_draws_the_numbers_of_the_forward_pass(recompute: str, loop: Loop) -> None:
    """The self-check compares with torch's own recomputation."""
    expected = captured(Net(nn.Dropout(0.5), False), loop)
    assert captured(Net(nn.Dropout(0.5), recompute), loop).program == expected.program


def test_segments_of_a_sequence_are_the_same_training() -> None:
    result, expected = captured(Sequence(True)), captured(Sequence(False))
    assert result.program == expected.program
    assert_same_bits(result)


def test_a_reentrant_checkpoint_without_an_input_that_requires_a_gradient_trains_nothing() -> None:
    class First(Net):
        def forward(self, x: Tensor) -> Tensor:
            return self.last(checkpoint(self.block, x, use_reentrant=True))

    with pytest.warns(UserWarning, match="None of the inputs have requires_grad"):
        result = captured(First(nn.Linear(6, 6)))
    outputs = ReferenceExecutor(result.program, result.constants).run(result.state, 0)
    after = dict(zip(result.names.slots, next_state(result.program, outputs), strict=True))
    before = dict(zip(result.names.slots, result.state, strict=True))
    changed = {name for name in before if not np.array_equal(before[name], after[name])}
    assert changed == {"last.weight", "last.bias"}


def test_draws_of_ones_own_loop_repeat_where_backward_is_inside() -> None:
    model, plain = Net(nn.Dropout(0.5)), Net(nn.Dropout(0.5), False)
    gradients = []
    for net in (model, plain):
        with TaskRandomness(3).step(1):
            functional.cross_entropy(net(INPUTS), LABELS).backward()  # type: ignore[no-untyped-call]  # torch declares no types
        gradients.append(net.first.weight.grad)
    assert torch.equal(*gradients)


def test_a_selective_checkpoint_is_the_same_training() -> None:
    def policy(_: object, operation: object, *__: object, **___: object) -> CheckpointPolicy:
        keeps = operation == torch.ops.aten.addmm.default
        return CheckpointPolicy.MUST_SAVE if keeps else CheckpointPolicy.PREFER_RECOMPUTE

    class Selective(Net):
        def forward(self, x: Tensor) -> Tensor:
            contexts = partial(create_selective_checkpoint_contexts, policy)
            return self.last(checkpoint(self.block, x, use_reentrant=False, context_fn=contexts))  # type: ignore[no-any-return]  # torch: Any

    assert captured(Selective(nn.Dropout(0.5))).program == captured(Net(nn.Dropout(0.5), False)).program


def test_a_recomputation_that_draws_other_numbers_is_refused() -> None:
    class Forgets(Net):
        def forward(self, x: Tensor) -> Tensor:
            return self.last(checkpoint(self.block, x, use_reentrant=False, preserve_rng_state=False))

    with pytest.raises(UnsupportedError, match=r"backward pass that are not those.*preserve_rng_state=True"):
        captured(Forgets(nn.Dropout(0.5)))


@pytest.mark.filterwarnings("ignore:.*gradient_checkpointing_enable:FutureWarning")
@pytest.mark.parametrize("reentrant", chosen_rows.first([True, False], 1, others=pytest.mark.slow))
def test_gradient_checkpointing_of_hugging_face(reentrant: bool) -> None:
    torch.manual_seed(4)
    config = GPT2Config(
        vocab_size=11, n_positions=4, n_embd=8, n_layer=1, n_head=2, embd_pdrop=0.1, attn_pdrop=0.1, resid_pdrop=0.1
    )
    model = GPT2LMHeadModel(config)
    model.gradient_checkpointing_enable({"use_reentrant": reentrant})
    tokens = torch.randint(0, 11, (6, 4))

    def loss(output: object, target: Tensor) -> Tensor:
        return functional.cross_entropy(output.logits.flatten(0, 1), target.flatten())  # type: ignore[attr-defined]

    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    capture(model, loss, optimizer, (tokens, tokens), torch.arange(6).reshape(3, 2), check=False)


REAL = torch.randn(24, 2, generator=torch.manual_seed(1)) * 0.5 + 1
PHASED_ORDER = torch.randint(0, 24, (6, 8), generator=torch.manual_seed(2))


class Gan(nn.Module):
    """A generator and a discriminator."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.generator = nn.Sequential(nn.Linear(3, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2))
        self.discriminator = nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Dropout(0.1), nn.Linear(8, 1))


def discriminator_loss(gan: Gan, real: Tensor) -> Tensor:
    fake = gan.generator(torch.randn(len(real), 3)).detach()
    yes, no = gan.discriminator(real), gan.discriminator(fake)
    bce = functional.binary_cross_entropy_with_logits
    return bce(yes, torch.ones_like(yes)) + bce(no, torch.zeros_like(no))


def generator_loss(gan: Gan, real: Tensor) -> Tensor:
    verdict = gan.discriminator(gan.generator(torch.randn(len(real), 3)))
    return functional.binary_cross_entropy_with_logits(verdict, torch.ones_like(verdict))


def wasserstein_loss(gan: Gan, real: Tensor) -> Tensor:
    """With a penalty on the gradient at points between both, so that the backward pass is differentiated."""
    fake = gan.generator(torch.randn(len(real), 3)).detach()
    share = torch.rand(len(real), 1)
    between = (share * real + (1 - share) * fake).requires_grad_()
    (gradient,) = torch.autograd.grad(gan.discriminator(between).sum(), between, create_graph=True)
    penalty = ((gradient.pow(2).sum(1) + 1e-12).sqrt() - 1).pow(2).mean()
    return gan.discriminator(fake).mean() - gan.discriminator(real).mean() + 10 * penalty


def optimizers(gan: Gan) -> tuple[Optimizer, Optimizer]:
    return (
        Adam(gan.discriminator.parameters(), 1e-2, betas=(0.5, 0.9), foreach=False),
        RMSprop(gan.generator.parameters(), 1e-2, foreach=False),
    )


def trained(result: Capture, steps: int) -> dict[str, np.ndarray[Any, Any]]:
    """The state after canonical steps; both executors give the same bits."""
    words = result.state
    for step in range(steps):
        words = next_state(result.program, outputs_of(result.program, words, result.constants, step))
    return {name: w.view(np.float32) for name, w in zip(result.names.slots, words, strict=True)}


@pytest.mark.parametrize("critic", [discriminator_loss, wasserstein_loss])
def test_a_gan_is_both_updates_in_their_order(critic: Any) -> None:
    gan = Gan()
    by_critic, by_generator = optimizers(gan)
    result = capture(gan, (critic, generator_loss), (by_critic, by_generator), (REAL,), PHASED_ORDER, seed=5)
    assert set(result.names.observed) == {"loss.0", "loss.1"}
    assert {"discriminator.0.weight:0.exp_avg", "generator.0.weight:1.square_avg"} <= set(result.names.slots)
    assert "generator.0.weight.grad" in {name.name for name in result.names.nodes}
    state = trained(result, 3)
    randomness = TaskRandomness(5)
    for step in range(3):
        real = REAL[PHASED_ORDER[step]]
        with randomness.step(step):
            by_critic.zero_grad()
            critic(gan, real).backward()
            by_critic.step()
            by_generator.zero_grad()
            generator_loss(gan, real).backward()
            by_generator.step()
    for name, tensor in (*gan.named_parameters(), *gan.named_buffers()):
        if tensor.is_floating_point():
            np.testing.assert_allclose(state[name], tensor.detach().numpy(), rtol=3e-4, atol=3e-5, err_msg=name)


def test_the_order_of_the_phases_is_part_of_the_program() -> None:
    gan = Gan()
    a, b = optimizers(gan)
    one = capture(gan, (discriminator_loss, generator_loss), (a, b), (REAL,), PHASED_ORDER)
    other = capture(gan, (generator_loss, discriminator_loss), (b, a), (REAL,), PHASED_ORDER)
    assert one.program != other.program


def test_an_optimizer_may_have_several_turns() -> None:
    gan = Gan()
    by_critic, by_generator = optimizers(gan)
    losses = (discriminator_loss, discriminator_loss, generator_loss)
    result = capture(gan, losses, (by_critic, by_critic, by_generator), (REAL,), PHASED_ORDER, seed=1)
    state = trained(result, 2)
    for step in range(2):
        with TaskRandomness(1).step(step):
            for loss, optimizer in zip(losses, (by_critic, by_critic, by_generator), strict=True):
                optimizer.zero_grad()
                loss(gan, REAL[PHASED_ORDER[step]]).backward()
                optimizer.step()
    for name, parameter in gan.named_parameters():
        np.testing.assert_allclose(state[name], parameter.detach().numpy(), rtol=3e-4, atol=3e-5, err_msg=name)


class Agent(nn.Module):
    """An actor and a critic on one body, which both train."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.body, self.actor, self.critic = nn.Linear(2, 6), nn.Linear(6, 3), nn.Linear(6, 1)


def critic_loss(agent: Agent, seen: Tensor, action: Tensor, reward: Tensor) -> Tensor:
    return functional.mse_loss(agent.critic(torch.tanh(agent.body(seen))).squeeze(1), reward)


def actor_loss(agent: Agent, seen: Tensor, action: Tensor, reward: Tensor) -> Tensor:
    hidden = torch.tanh(agent.body(seen))
    advantage = reward - agent.critic(hidden).squeeze(1).detach()
    chances = functional.log_softmax(agent.actor(hidden), 1).gather(1, action[:, None]).squeeze(1)
    return -(chances * advantage).mean()


def test_actor_and_critic_with_schedules_clipping_and_a_common_body() -> None:
    agent = Agent()
    action, reward = torch.arange(24) % 3, torch.randn(24, generator=torch.manual_seed(6))
    by_critic = SGD([*agent.body.parameters(), *agent.critic.parameters()], 0.1, momentum=0.9)
    by_actor = SGD([*agent.body.parameters(), *agent.actor.parameters()], 0.05, momentum=0.5)
    schedulers = (StepLR(by_critic, 1, 0.5), StepLR(by_actor, 2, 0.1))
    loop = Loop(scheduler=schedulers, clip_norm=0.5, accumulation=2, ema=0.9)
    data = (REAL, action, reward)
    result = capture(agent, (critic_loss, actor_loss), (by_critic, by_actor), data, PHASED_ORDER, loop)
    names = {name.name for name in result.names.nodes}
    assert {"body.weight.grad", "body.weight.phase1.grad"} <= names
    assert {"schedule.0.lr.0", "schedule.1.lr.0"} <= set(result.names.constants)
    state = trained(result, 4)
    for step in range(4):
        for loss, optimizer, scheduler in zip(
            (critic_loss, actor_loss), (by_critic, by_actor), schedulers, strict=True
        ):
            optimizer.zero_grad()
            for rows in PHASED_ORDER[step].reshape(2, -1):
                (loss(agent, *(part[rows] for part in data)) / 2).backward()
            nn.utils.clip_grad_norm_([p for group in optimizer.param_groups for p in group["params"]], 0.5)
            optimizer.step()
            scheduler.step()
    for name, parameter in agent.named_parameters():
        np.testing.assert_allclose(state[name], parameter.detach().numpy(), rtol=3e-4, atol=3e-5, err_msg=name)


def test_phases_that_do_not_belong_together_are_refused() -> None:
    gan = Gan()
    a, b = optimizers(gan)
    with pytest.raises(UnsupportedError, match="2 losses need as many optimizers"):
        capture(gan, (discriminator_loss, generator_loss), a, (REAL,), PHASED_ORDER)
    with pytest.raises(UnsupportedError, match="none may be None"):
        capture(gan, (discriminator_loss, None), (a, b), (REAL,), PHASED_ORDER)
    with pytest.raises(UnsupportedError, match="loss does not depend on any parameter"):
        capture(gan, (discriminator_loss, generator_loss), (b, b), (REAL,), PHASED_ORDER)
    loop = Loop(scheduler=[StepLR(SGD(nn.Linear(1, 1).parameters(), 0.1), 1)])
    with pytest.raises(UnsupportedError, match="scheduler belongs to another optimizer"):
        capture(gan, (discriminator_loss, generator_loss), (a, b), (REAL,), PHASED_ORDER, loop)
