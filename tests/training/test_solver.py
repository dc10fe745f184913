"""Training natively, recording every checkpoint, and stopping when there is nothing left to prove."""

from collections.abc import Mapping

import numpy as np
import pytest
import torch
from torch import Tensor

from digits_training import checkpoints, honest, loaded, published
from pol.arithmetic.primitives import Words
from pol.demo import digits
from pol.errors import ProtocolError
from pol.execution.stock_torch.torch_executor import NativeExecutor
from pol.training.task.task_recorder import TaskRecorder
from pol.training.task.task_training import TrainingDivergedError, to_tensor, to_words, train


def test_it_learns() -> None:
    states = checkpoints(honest())
    model = digits.build_model(1)
    before = digits.accuracy(model)
    names = loaded().names.slots
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for name, words in zip(names, states[-1], strict=True):
            if name in parameters:
                parameters[name].copy_(torch.from_numpy(words.view(np.float32)))
    assert before < 0.3
    assert digits.accuracy(model) > 0.95


def test_it_trains_as_the_users_own_loop_does() -> None:
    model = digits.build_model(1)
    optimizer = digits.build_optimizer(model)
    images, labels = digits.dataset()
    for row in digits.order(1)[:50]:
        optimizer.zero_grad()
        digits.loss_function(model(images[row]), labels[row]).backward()
        optimizer.step()
    state = checkpoints(honest())[2]
    for parameter, words in zip(model.parameters(), state, strict=False):
        assert torch.allclose(parameter, torch.from_numpy(words.view(np.float32)), rtol=1e-4, atol=1e-6)


class Poisoned:
    """Trains honestly up to a step, then gives NaN."""

    def __init__(self, step: int, *, loss: bool):
        self._executor = NativeExecutor(loaded().aten)
        self._step = step
        self._loss = loss

    def run(self, state: list[Tensor], constants: list[Tensor], step: int) -> tuple[list[Tensor], Mapping[str, Tensor]]:
        state, observed = self._executor.run(state, constants, step)
        if step != self._step:
            return state, observed
        nan = torch.tensor(float("nan"))
        if self._loss:
            return state, {"loss": nan}
        return [state[0] * nan, *state[1:]], observed


@pytest.mark.parametrize(
    ("loss", "problem"),
    [(True, "loss is nan at step 30"), (False, "isn't finite after step 30|loss is nan at step 31")],
)
def test_divergence_stops_with_the_step_and_the_remedy(loss: bool, problem: str) -> None:
    recorded: list[int] = []

    def record(index: int, _: list[Words]) -> None:
        recorded.append(index)

    with pytest.raises(TrainingDivergedError, match=f"({problem}).*Lower the learning rate"):
        train(loaded(), Poisoned(30, loss=loss), record)
    assert recorded == [0, 1]


def test_checkpoints_are_recorded_in_order_and_completely() -> None:
    store, _ = published()
    task = loaded()
    recorder = TaskRecorder(store, task)
    recorder(0, task.initial_state)
    with pytest.raises(ProtocolError, match="in order"):
        recorder(2, task.initial_state)
    with pytest.raises(ProtocolError, match="needs checkpoints 0 to 12"):
        recorder.publish({})


def test_words_and_tensors_are_the_same_bits() -> None:
    task = loaded()
    for entry, words in zip(task.aten.constants, task.constants, strict=True):
        tensor = to_tensor(entry.type, words)
        assert np.array_equal(to_words(entry.type, tensor), words)
    with pytest.raises(ProtocolError, match="a step gave"):
        to_words(task.aten.slots[0].type, torch.zeros(3))
    special = np.array([0x7F800001, 0x80000000, 1], np.uint32)
    from pol.graph.aten_graph import AtenType

    assert np.array_equal(to_words(AtenType("float32", (3,)), to_tensor(AtenType("float32", (3,)), special)), special)
