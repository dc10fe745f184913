"""Exact training in the user's own loop: the bits of the captured program, and objects as after an ordinary step."""

import copy
import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import SGD, Adafactor, Adagrad, Adam, AdamW, Optimizer, RMSprop, lr_scheduler

import chosen_rows
from pol import Loop, Recorder, Sampling, Store, UnsupportedError, capture, load, publish, verify
from pol.errors import ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.graph.capture.optimizers import Lion
from pol.training.exact.exact_step import ExactStep
from pol.training.task.learning_proof import ARITHMETIC, CANONICAL
from pol.verification.verdict.verdict import Outcome

ROWS, BATCH, STEPS = 40, 8, 6
X, LABELS = torch.randn(ROWS, 6, generator=torch.manual_seed(2)), torch.arange(ROWS) % 3
ORDER = torch.randint(0, ROWS, (STEPS, BATCH), generator=torch.manual_seed(3))
Make = Callable[[Any], Optimizer]


def plain() -> nn.Sequential:
    """Without a bias that batch normalization takes away: its gradient is but rounding."""
    torch.manual_seed(4)
    return nn.Sequential(nn.Linear(6, 7), nn.Tanh(), nn.Linear(7, 3))


def network() -> nn.Sequential:
    torch.manual_seed(4)
    return nn.Sequential(nn.Linear(6, 7), nn.BatchNorm1d(7), nn.Tanh(), nn.Dropout(0.25), nn.Linear(7, 3))


def batches(first: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
    for step in range(first, STEPS):
        yield X[ORDER[step]], LABELS[ORDER[step]]


def exact(model: nn.Module, optimizer: Optimizer, loop: Loop = Loop(), **options: Any) -> ExactStep:  # noqa: B008  # immutable
    options.setdefault("check", False)  # which the tests of captures test
    return ExactStep(model, functional.cross_entropy, optimizer, loop, steps=STEPS, seed=5, **options)


def values(model: nn.Module) -> dict[str, bytes]:
    return {name: tensor.detach().numpy().tobytes() for name, tensor in model.state_dict().items()}


def program_values(model: nn.Module, optimizer: Optimizer, loop: Loop) -> tuple[dict[str, bytes], list[float]]:
    """Parameters and buffers after all steps of the captured program, and the losses."""
    captured = capture(model, functional.cross_entropy, optimizer, (X, LABELS), ORDER, loop, seed=5, check=False)
    observed = [captured.names.observed["loss"]]
    executor = CpuExecutor(captured.program, captured.constants, 2, observed)
    state, losses = captured.state, []
    for step in range(STEPS):
        state, (loss,) = executor.advance(state, step)
        losses.append(float(loss.view(np.float32).item()))
    return dict(zip(captured.names.slots, (words.tobytes() for words in state), strict=True)), losses


OPTIMIZERS: dict[str, Make] = {
    "sgd": lambda p: SGD(p, 0.1),
    "momentum": lambda p: SGD(p, 0.1, momentum=0.9, dampening=0.3, weight_decay=0.1),
    "adam": lambda p: Adam(p, 1e-2, amsgrad=True),
    "adamw": lambda p: AdamW(p, 1e-2, fused=True),
    "rmsprop": lambda p: RMSprop(p, 1e-2, momentum=0.5, centered=True),
    "adagrad": lambda p: Adagrad(p, 1e-2),
    "adafactor": lambda p: Adafactor(p, 1e-2),
    "lion": lambda p: Lion(p, 1e-3),
}
LOOPS: dict[str, Callable[[Optimizer], Loop]] = {
    "plain": lambda optimizer: Loop(),
    "everything": lambda optimizer: Loop(
        lr_scheduler.CosineAnnealingLR(optimizer, STEPS), clip_norm=0.5, accumulation=2, ema=0.9
    ),
    "factors": lambda optimizer: Loop(lambda step: 1 / (step + 1)),
}


@pytest.mark.parametrize(
    ("name", "loop"),
    [
        *(pytest.param(name, "everything", marks=pytest.mark.slow) for name in OPTIMIZERS),
        ("adamw", "everything"),
        ("momentum", "factors"),
        ("adam", "plain"),
    ],
)
def test_the_bits_are_those_of_the_captured_program(name: str, loop: str) -> None:
    model = network()
    optimizer = OPTIMIZERS[name](model.parameters())
    around = LOOPS[loop](optimizer)
    expected, losses = program_values(model, optimizer, around)
    step = exact(model, optimizer, around)
    assert [float(step(*batch)) for batch in batches()] == losses
    for key, found in values(model).items():
        if key != "1.num_batches_tracked":  # 64 bits here, 32 there
            assert found == expected[key], key
    assert int(model.state_dict()["1.num_batches_tracked"]) == STEPS * around.accumulation
    for key, average in step.averages.items():
        assert average.numpy().tobytes() == expected[f"ema.{key}"]
    assert bool(step.averages) == (loop == "everything")


@pytest.mark.parametrize(
    "name", chosen_rows.named(OPTIMIZERS, "momentum", "adamw", "adafactor", others=pytest.mark.slow)
)
def test_objects_are_as_after_ones_own_loop(name: str) -> None:
    """Keys, counters and learning rates of optimizer and scheduler are torch's; values agree up to rounding."""
    own, model = plain(), plain()
    eager, optimizer = OPTIMIZERS[name](own.parameters()), OPTIMIZERS[name](model.parameters())
    theirs, scheduler = (lr_scheduler.StepLR(each, 2, 0.5) for each in (eager, optimizer))
    step = exact(model, optimizer, Loop(scheduler))
    for x, y in batches():
        eager.zero_grad()
        loss = functional.cross_entropy(own(x), y)
        loss.backward()
        eager.step()
        theirs.step()
        torch.testing.assert_close(step(x, y), loss.detach(), rtol=1e-4, atol=1e-5)
    assert scheduler.state_dict() == theirs.state_dict()
    one, two = eager.state_dict(), optimizer.state_dict()
    assert one["param_groups"] == two["param_groups"]
    assert {k: sorted(v) for k, v in one["state"].items()} == {k: sorted(v) for k, v in two["state"].items()}
    torch.testing.assert_close(two["state"], one["state"], rtol=1e-2, atol=1e-4)
    torch.testing.assert_close(dict(model.state_dict()), dict(own.state_dict()), rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize("name", chosen_rows.first(["adamw", "momentum", "adafactor"], 1, others=pytest.mark.slow))
def test_a_training_that_is_resumed_has_the_bits_of_one_that_was_not(name: str) -> None:
    """In other objects, from ordinary state dictionaries."""

    def made() -> tuple[nn.Module, Optimizer, Any, ExactStep]:
        model = network()
        optimizer = OPTIMIZERS[name](model.parameters())
        scheduler = lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
        return model, optimizer, scheduler, exact(model, optimizer, Loop(scheduler, ema=0.9))

    whole, first = made(), made()
    for batch in batches():
        whole[3](*batch)
    for batch in list(batches())[:3]:
        first[3](*batch)
    file = io.BytesIO()
    torch.save([part.state_dict() for part in first], file)
    file.seek(0)
    again = made()
    for part, state in zip(again, torch.load(file), strict=True):
        part.load_state_dict(state)
    for batch in batches(3):
        again[3](*batch)
    assert values(again[0]) == values(whole[0])
    assert {k: v.tolist() for k, v in again[3].averages.items()} == {
        k: v.tolist() for k, v in whole[3].averages.items()
    }


class Gan(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.generator = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 6))
        self.discriminator = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))


def critic(gan: Gan, real: Tensor, labels: Tensor) -> Tensor:
    fake = gan.generator(torch.randn(len(real), 2)).detach()
    return functional.softplus(gan.discriminator(fake)).mean() + functional.softplus(-gan.discriminator(real)).mean()


def actor(gan: Gan, real: Tensor, labels: Tensor) -> Tensor:
    return functional.softplus(-gan.discriminator(gan.generator(torch.randn(len(real), 2)))).mean()


def a_gan() -> tuple[Any, ...]:
    """The critic steps twice in a step; its rate follows a schedule, that of the actor doesn't."""
    torch.manual_seed(4)
    gan = Gan()
    first, second = Adam(gan.discriminator.parameters(), 1e-2), SGD(gan.generator.parameters(), 1e-2, momentum=0.9)
    loop = Loop([lr_scheduler.StepLR(first, 2, 0.5)])
    return gan, (critic, critic, actor), (first, first, second), loop, [first, second, *loop.schedulers]


def two_at_once() -> tuple[Any, ...]:
    """Muon for matrices, AdamW for the rest, after one backward pass."""
    model = plain()
    matrices = torch.optim.Muon([p for p in model.parameters() if p.dim() == 2], lr=1e-2)
    rest = AdamW([p for p in model.parameters() if p.dim() < 2], 1e-2)
    loop = Loop([lr_scheduler.CosineAnnealingLR(rest, STEPS), lr_scheduler.StepLR(matrices, 3)])
    return model, functional.cross_entropy, [matrices, rest], loop, [matrices, rest, *loop.schedulers]


@pytest.mark.parametrize("made", [a_gan, two_at_once])
def test_steps_of_several_optimizers_have_the_bits_of_the_captured_program(made: Callable[[], Any]) -> None:
    """Also after a resumption in new objects."""
    model, losses, optimizers, loop, _ = made()
    captured = capture(model, losses, optimizers, (X, LABELS), ORDER, loop, seed=5, check=False)
    executor = CpuExecutor(captured.program, captured.constants, 2, list(captured.names.observed.values()))
    state, expected = captured.state, []
    for step in range(STEPS):
        state, observed = executor.advance(state, step)
        expected.append([float(words.view(np.float32).item()) for words in observed])
    slots = dict(zip(captured.names.slots, (words.tobytes() for words in state), strict=True))
    kept: list[Any] = []
    for first, last in ((0, 2), (2, STEPS)):
        model, losses, optimizers, loop, parts = made()
        exact = ExactStep(model, losses, optimizers, loop, steps=STEPS, seed=5, check=False)
        for part, known in zip((model, *parts, exact), kept, strict=False):
            part.load_state_dict(known)
        for batch, found in zip(list(batches())[first:last], expected[first:last], strict=True):
            assert exact(*batch).reshape(-1).tolist() == found
        kept = [copy.deepcopy(part.state_dict()) for part in (model, *parts, exact)]
    assert values(model) == {name: slots[name] for name in values(model)}
    with pytest.raises(UnsupportedError, match="a loss function and one optimizer"), exact.own_loop():
        pass


def test_what_changes_between_two_steps_is_followed() -> None:
    """Another batch size, an evaluation, a frozen layer, another learning rate: as in torch, up to rounding."""
    own, model = plain(), plain()
    eager, optimizer = (AdamW(each.parameters(), 1e-2) for each in (own, model))
    step = exact(model, optimizer)
    for number, batch in enumerate(batches()):
        x, y = (tensor[:5] if number == 2 else tensor for tensor in batch)
        for each, its in ((own, eager), (model, optimizer)):
            if number == 3:
                each.eval()
                each(x)
                each.train()
                each[0].requires_grad_(False)
            if number == 4:
                its.param_groups[0]["lr"] = 1e-4
            if number == 5:
                with torch.no_grad():
                    each[2].bias.zero_()
        eager.zero_grad()
        loss = functional.cross_entropy(own(x), y)
        loss.backward()
        eager.step()
        torch.testing.assert_close(step(x, y), loss.detach(), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(dict(model.state_dict()), dict(own.state_dict()), rtol=1e-3, atol=1e-5)


def test_what_the_user_does_to_the_objects_is_no_other_training() -> None:
    """A checkpoint of another step is loaded, a step of torch's own is taken, the weight of the loss changes."""
    weight = 1.0

    def loss(logits: Tensor, target: Tensor) -> Tensor:
        return weight * functional.cross_entropy(logits, target)

    own, model = plain(), plain()
    eager, optimizer = (AdamW(each.parameters(), 1e-2) for each in (own, model))
    step = ExactStep(model, loss, optimizer, steps=STEPS, check=False)

    def ordinary(each: nn.Module, its: Optimizer, x: Tensor, y: Tensor) -> Tensor:
        its.zero_grad()
        value = loss(each(x), y)
        value.backward()
        its.step()
        return value.detach()

    kept = None
    for number, (x, y) in enumerate(batches()):
        if number == 1:
            kept = copy.deepcopy((own.state_dict(), eager.state_dict()))
        if number == 3 and kept is not None:
            for each, its in ((own, eager), (model, optimizer)):
                each.load_state_dict(copy.deepcopy(kept[0]))
                its.load_state_dict(copy.deepcopy(kept[1]))
        if number == 4:
            for each, its in ((own, eager), (model, optimizer)):
                ordinary(each, its, x, y)
        if number == 5:
            weight = 0.5
        torch.testing.assert_close(step(x, y), ordinary(own, eager, x, y), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(dict(model.state_dict()), dict(own.state_dict()), rtol=1e-3, atol=1e-5)
    assert [int(state["step"]) for state in optimizer.state.values()] == [5] * 4


def test_a_rate_of_dropout_that_changes() -> None:
    model = network()
    step = exact(model, SGD(model.parameters(), 0.0))
    x, y = next(batches())
    with_dropout = [float(step(x, y)) for _ in range(2)]
    assert with_dropout[0] != with_dropout[1]
    model[3].p = 0.0
    without = [float(step(x, y)) for _ in range(2)]
    assert without[0] == without[1]


@pytest.mark.parametrize("threads", chosen_rows.first([1, 2], 1, others=pytest.mark.slow))
def test_threads_change_no_bit(threads: int) -> None:
    def trained(number: int) -> dict[str, bytes]:
        model = network()
        step = exact(model, Adam(model.parameters(), 1e-2), threads=number)
        for batch in batches():
            step(*batch)
        return values(model)

    assert trained(threads) == trained(3)


def test_a_bad_batch_changes_nothing() -> None:
    """The ignored class is none of the network's, and so far the only one below zero."""
    model = network()
    step = exact(model, SGD(model.parameters(), 0.1))
    x, y = next(batches())
    step(x, torch.where(y == 2, -100, y))
    before = values(model)
    for wrong in (-1, -50, 3):
        with pytest.raises(UnsupportedError, match=f"data.1 holds {wrong}, but there are 3 classes"):
            step(x, torch.where(y == 2, wrong, y))
    assert values(model) == before
    assert step.number == 1
    step(x, y)
    for batch in batches(2):
        step(*batch)
    with pytest.raises(ProtocolError, match="all 6 steps were taken"):
        step(x, y)


def test_integers_of_a_later_batch_have_to_fit() -> None:
    class Squares(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(()))

        def forward(self, numbers: Tensor) -> Tensor:
            return self.weight * (numbers * numbers).float()

    model = Squares()
    step = ExactStep(model, functional.mse_loss, SGD(model.parameters(), 1e-9), steps=9)
    y = torch.zeros(4)
    step(torch.arange(4), y)
    step(torch.arange(4) * 1000, y)
    with pytest.raises(UnsupportedError, match="64-bit integers"):
        step(torch.arange(4) * 100_000, y)
    assert step.number == 2


def test_a_recorded_exact_training_has_the_same_roots_everywhere(tmp_path: Path) -> None:
    """Recorded in one piece, and in two, with other numbers of threads."""

    def train(folder: str, steps: int, threads: int) -> list[bytes]:
        model = network()
        optimizer = AdamW(model.parameters(), 1e-2)
        scheduler = lr_scheduler.LinearLR(optimizer, total_iters=STEPS)
        step = exact(model, optimizer, Loop(scheduler), threads=threads)
        recorder = Recorder(
            f"file://{tmp_path}/{folder}", model, optimizer, every=2, scheduler=scheduler, parts={"exact": step}
        )
        recorder.resume()
        for batch in list(batches())[recorder.steps : steps]:
            step(*batch)
            recorder.step()
        return [checkpoint.root for checkpoint in recorder.close().checkpoints]

    whole = train("whole", STEPS, 1)
    assert train("parts", 4, 2) == whole[:3]
    assert train("parts", STEPS, 1) == whole
    assert len(set(whole)) == STEPS // 2 + 1


def test_models_that_share_weights_and_compute_in_bfloat16() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(9, 8), nn.Linear(8, 9, bias=False)).to(torch.bfloat16)
    model[1].weight = model[0].weight
    tokens = torch.randint(0, 9, (STEPS, 8))

    def loss(logits: Tensor, target: Tensor) -> Tensor:
        return functional.cross_entropy(logits.float(), target)

    twin = copy.deepcopy(model)
    optimizer = SGD(model.parameters(), 0.5, momentum=0.9)
    captured = capture(twin, loss, SGD(twin.parameters(), 0.5, momentum=0.9), (tokens.flatten(), tokens.flatten()),
                       torch.arange(STEPS * 8).reshape(STEPS, 8))  # fmt: skip
    executor, state = CpuExecutor(captured.program, captured.constants), captured.state
    step = ExactStep(model, loss, optimizer, steps=STEPS)
    for number in range(STEPS):
        state, _ = executor.advance(state, number)
        step(tokens[number], tokens[number])
    expected = state[0].view(np.float32)
    assert model[0].weight.dtype == torch.bfloat16
    assert np.array_equal(model[0].weight.detach().float().numpy(), expected)
    assert optimizer.state[model[0].weight]["momentum_buffer"].dtype == torch.bfloat16


@pytest.mark.parametrize("kind", chosen_rows.first(["exact", "half", "eager"], 2, others=pytest.mark.slow))
def test_the_proof_of_a_recorded_task_says_whether_it_is_exact(tmp_path: Path, kind: str) -> None:
    """And `verify` compares exactly if it does; a proof that lies about it is rejected."""
    store, interval = Store(f"file://{tmp_path}"), 2
    model = plain()
    captured = capture(
        model, functional.cross_entropy, AdamW(model.parameters(), 1e-2), (X, LABELS), ORDER, check=False
    )
    task = load(store, publish(store, captured, steps=STEPS, interval=interval)[0])
    own = plain()
    optimizer = AdamW(own.parameters(), 1e-2)
    step = ExactStep(own, functional.cross_entropy, optimizer, steps=STEPS, check=False)
    recorder = Recorder(store, own, optimizer, task=task, parts={"exact": step})
    recorder.resume()
    for number, (x, y) in enumerate(batches()):
        if kind == "exact" or (kind == "half" and number < 4):
            step(x, y)
        else:
            optimizer.zero_grad()
            functional.cross_entropy(own(x), y).backward()
            optimizer.step()
        recorder.step()
    recorder.close()
    digest, proof = recorder.learning_proof()
    assert proof.is_exact == (kind == "exact")
    everything = Sampling(everything=True)
    if kind == "exact":
        found = verify(store.url, digest, sampling=everything)
        assert found.is_exact
        assert found.verdict.outcome is Outcome.ACCEPTED
        return
    with pytest.raises(ProtocolError, match="doesn't say that its training is exact"):
        verify(store.url, digest, sampling=everything)
    lie = replace(proof, environment={**proof.environment, ARITHMETIC: CANONICAL})
    assert verify(store.url, store.put(lie.encode()), sampling=everything).verdict.outcome is Outcome.REJECTED


def test_what_is_given_wrongly_is_said(tmp_path: Path) -> None:
    model = plain()
    optimizer = SGD(model.parameters(), 0.1)
    for wrong, said in (
        ({"steps": 0}, "steps=0: give the number"),
        ({"steps": "5"}, "steps='5'"),
        ({"steps": True}, "steps=True"),
        ({"threads": -2}, "threads=-2"),
        (
            {"loop": lr_scheduler.StepLR(SGD(plain().parameters()), 2)},
            r"the loop is a StepLR: give pol.Loop\(scheduler\)",
        ),
    ):
        arguments: dict[str, Any] = {"loop": Loop(), "steps": STEPS, **wrong}
        with pytest.raises(UnsupportedError, match=said):
            ExactStep(model, functional.cross_entropy, optimizer, **arguments)
    step = exact(model, optimizer)
    x, y = next(batches())
    for batch, said in (((x.numpy(), y), "part 0 of the batch is a ndarray"), ((x, None), "part 1 .* NoneType"),
                        ((x.to_sparse(), y), "sparse_coo"), (((x, y),), "part 0 of the batch is a tuple")):  # fmt: skip
        with pytest.raises(UnsupportedError, match=said):
            step(*batch)
    step(x, y)
    with torch.autocast("cpu", torch.bfloat16), pytest.raises(UnsupportedError, match=r"torch\.autocast: leave it"):
        step(x, y)
    optimizer.register_step_post_hook(lambda *_: None)
    with pytest.raises(UnsupportedError, match="hook"):
        step(x, y)
    for state in ({}, {"number": -5, "averages": {}}, {"number": 10**9, "averages": {}}):
        with pytest.raises(ProtocolError, match="give what its state_dict"):
            step.load_state_dict(state)
    with pytest.raises(ProtocolError, match="another model"):
        step.load_state_dict({"number": 1, "averages": {"0.weight": torch.zeros(3)}})
    assert step.number == 1
    with pytest.raises(ProtocolError, match="give a loaded task"):
        Recorder(f"file://{tmp_path}", model, optimizer, task="a digest")  # type: ignore[arg-type]  # which is the point


def test_a_rate_that_is_set_by_hand_in_every_step_is_slow_and_said_to_be() -> None:
    model = nn.Linear(6, 3)
    optimizer = SGD(model.parameters(), 0.1)
    step = ExactStep(model, functional.cross_entropy, optimizer, steps=99, check=False)
    x, y = next(batches())

    def train() -> None:
        for number in range(16):
            optimizer.param_groups[0]["lr"] = 0.1 / (number + 1)
            step(x, y)

    with pytest.warns(UserWarning, match="16 programs were made for 15 steps"):
        train()


WEIGHTS = {"penalty": 0.0}


def test_objects_that_a_program_has_fixed_and_that_change_are_named() -> None:
    """Once each, by the next look or the next shape of a batch."""

    def loss(logits: Tensor, target: Tensor) -> Tensor:
        return criterion(logits, target) + WEIGHTS["penalty"] * logits.square().mean()

    model, criterion = plain(), nn.CrossEntropyLoss(torch.ones(3))
    step = ExactStep(model, loss, SGD(model.parameters(), 0.0), steps=99, check=False)
    x, y = next(batches())
    before = float(step(x, y))
    try:
        WEIGHTS["penalty"] = 5.0
        with pytest.warns(UserWarning, match="penalty.* has changed, and the programs of this exact step"):
            step(x[:5], y[:5])
        assert float(step(x, y)) == before
    finally:
        WEIGHTS["penalty"] = 0.0
    assert criterion.weight is not None
    criterion.weight.fill_(2.0)
    for number in range(step.number, 50):
        assert float(step(x, y)) == before, number
    with pytest.warns(UserWarning, match="weight has changed"):
        step(x, y)
    assert float(step(x, y)) == before


@pytest.mark.parametrize("name", chosen_rows.first(["adamw", "momentum"], 1, others=pytest.mark.slow))
def test_a_training_is_resumed_where_its_schedule_has_become_constant(name: str) -> None:
    """What changed before the resumption and not after it is still an entry of a table, and rounds like one."""

    def made() -> tuple[nn.Module, Optimizer, Any, ExactStep]:
        model = plain()
        optimizer = (
            SGD(model.parameters(), 0.13, momentum=0.9, weight_decay=0.1)
            if name == "momentum"
            else AdamW(model.parameters(), 0.013, weight_decay=0.17)
        )
        scheduler = lr_scheduler.LinearLR(optimizer, 0.1, total_iters=2)
        return model, optimizer, scheduler, exact(model, optimizer, Loop(scheduler))

    whole, first, again = made(), made(), made()
    for batch in batches():
        whole[3](*batch)
    for batch in list(batches())[:4]:
        first[3](*batch)
    for part, part_before in zip(again, first, strict=True):
        part.load_state_dict(copy.deepcopy(part_before.state_dict()))
    for batch in batches(4):
        again[3](*batch)
    assert values(again[0]) == values(whole[0])


def test_views_of_the_weights_follow_and_torch_knows_of_the_write() -> None:
    """A graph of before the step has no backward pass, as after a step of torch's own."""
    model = plain()
    weight = model[0].weight
    view, address, version = weight.detach().view(-1), weight.data_ptr(), weight._version
    before = model(X).square().sum()
    exact(model, SGD(model.parameters(), 0.1))(*next(batches()))
    assert torch.equal(view, weight.detach().view(-1))
    assert weight.data_ptr() == address
    assert weight._version > version
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        before.backward()


def test_views_of_the_optimizers_tensors_follow_and_frozen_weights_are_not_written() -> None:
    model = plain()
    model[2].weight.requires_grad_(False)
    frozen, version = model[2].weight, model[2].weight._version
    optimizer = AdamW([p for p in model.parameters() if p.requires_grad], 0.1)
    step = exact(model, optimizer)
    batch = next(batches())
    step(*batch)
    mean = optimizer.state[model[0].weight]["exp_avg"]
    view, before, address = mean.view(-1), mean.clone(), mean.data_ptr()
    step(*batch)
    assert mean.data_ptr() == address
    assert torch.equal(view, mean.view(-1))
    assert not torch.equal(view, before.view(-1))
    assert frozen._version == version
