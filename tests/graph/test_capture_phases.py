"""Several losses and optimizers in one step: a GAN, an actor and a critic; the program is the user's own loop."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import SGD, Adam, Optimizer, RMSprop
from torch.optim.lr_scheduler import StepLR

from graph.test_lowering_operations import outputs_of
from pol.errors import UnsupportedError
from pol.execution.reference import next_state
from pol.graph.capture import Capture, Loop, capture
from pol.training.task.task_randomness import TaskRandomness

REAL = torch.randn(24, 2, generator=torch.manual_seed(1)) * 0.5 + 1
ORDER = torch.randint(0, 24, (6, 8), generator=torch.manual_seed(2))


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
    result = capture(gan, (critic, generator_loss), (by_critic, by_generator), (REAL,), ORDER, seed=5)
    assert set(result.names.observed) == {"loss.0", "loss.1"}
    assert {"discriminator.0.weight:0.exp_avg", "generator.0.weight:1.square_avg"} <= set(result.names.slots)
    assert "generator.0.weight.grad" in {name.name for name in result.names.nodes}
    state = trained(result, 3)
    randomness = TaskRandomness(5)
    for step in range(3):
        real = REAL[ORDER[step]]
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
    one = capture(gan, (discriminator_loss, generator_loss), (a, b), (REAL,), ORDER)
    other = capture(gan, (generator_loss, discriminator_loss), (b, a), (REAL,), ORDER)
    assert one.program != other.program


def test_an_optimizer_may_have_several_turns() -> None:
    gan = Gan()
    by_critic, by_generator = optimizers(gan)
    losses = (discriminator_loss, discriminator_loss, generator_loss)
    result = capture(gan, losses, (by_critic, by_critic, by_generator), (REAL,), ORDER, seed=1)
    state = trained(result, 2)
    for step in range(2):
        with TaskRandomness(1).step(step):
            for loss, optimizer in zip(losses, (by_critic, by_critic, by_generator), strict=True):
                optimizer.zero_grad()
                loss(gan, REAL[ORDER[step]]).backward()
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
    result = capture(agent, (critic_loss, actor_loss), (by_critic, by_actor), data, ORDER, loop)
    names = {name.name for name in result.names.nodes}
    assert {"body.weight.grad", "body.weight.phase1.grad"} <= names
    assert {"schedule.0.lr.0", "schedule.1.lr.0"} <= set(result.names.constants)
    state = trained(result, 4)
    for step in range(4):
        for loss, optimizer, scheduler in zip(
            (critic_loss, actor_loss), (by_critic, by_actor), schedulers, strict=True
        ):
            optimizer.zero_grad()
            for rows in ORDER[step].reshape(2, -1):
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
        capture(gan, (discriminator_loss, generator_loss), a, (REAL,), ORDER)
    with pytest.raises(UnsupportedError, match="none may be None"):
        capture(gan, (discriminator_loss, None), (a, b), (REAL,), ORDER)
    with pytest.raises(UnsupportedError, match="loss does not depend on any parameter"):
        capture(gan, (discriminator_loss, generator_loss), (b, b), (REAL,), ORDER)
    other = SGD(nn.Linear(1, 1).parameters(), 0.1)
    loop = Loop(scheduler=[StepLR(other, 1)])
    with pytest.raises(UnsupportedError, match="scheduler belongs to another optimizer"):
        capture(gan, (discriminator_loss, generator_loss), (a, b), (REAL,), ORDER, loop)
