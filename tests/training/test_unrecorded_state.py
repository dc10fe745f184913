"""State that a recorder doesn't hold: what is found, and which variables a resumed loop reads."""

import collections
from types import FrameType
from typing import Any

import numpy as np
import torch
from torch import nn

from pol.training.recorder.unrecorded_state import ATTRIBUTE, NEVER, PLAIN, VALUE, unrecorded, users_frames
from pol.training.state.random_state import RandomSources
from pol.training.state.trainer_state import TrainerState

STATE = TrainerState(nn.Linear(2, 2), {}, RandomSources())


def found_in(loop: Any) -> dict[str, tuple[str, int]]:
    """What the loop finds in itself, as value and place among what is read, under the names of its variables."""
    return {name.partition(" (")[0]: (value, read) for name, (_, value, read) in loop().items() if " (loop in " in name}


def test_variables_come_in_the_order_in_which_the_loop_reads_them() -> None:
    draws: dict[FrameType, int | None] = {}

    def loop() -> Any:
        total, best, count, loss = 0.0, 9.0, 0, 0.0
        found: Any = {}
        for number in range(3):
            draws.update((frame, frame.f_lasti) for frame in users_frames())
            loss = number / (1 + count)
            total += loss
            found = unrecorded(STATE, draws)
            best = min(best, total)
            count += 2
        return found

    found = found_in(loop)
    order = sorted((read, name) for name, (_, read) in found.items() if read != NEVER)
    assert [name for _, name in order if name in ("count", "total", "best", "loss")] == ["count", "total", "best"]
    assert found["loss"][1] == NEVER
    assert found["count"][0] == "4"


def test_plain_values_are_found_in_whatever_holds_them() -> None:
    def loop() -> Any:
        window, seen, nothing = collections.deque([1.0, 2.0], maxlen=3), {"b", "a"}, None
        rate, names, mixed = np.float32(0.5), [1] * 5000, [{"rate": 1}, torch.ones(1)]
        found = unrecorded(STATE, dict.fromkeys(users_frames()))
        del window, seen, nothing, rate, names, mixed
        return found

    found = found_in(loop)
    assert found["window"][0].startswith("2 values, ")
    assert found["names"][0].startswith("5000 values, ")
    assert found["nothing"][0] == "None"
    assert "0.5" in found["rate"][0]
    assert {"seen", "mixed[0]", "mixed[1]"} <= found.keys()


class Part:
    """Gives one value of many."""

    def __init__(self) -> None:
        self.given, self.hidden, self.inner = 1, 2, {"a": [{"b": torch.ones(2)}]}

    def state_dict(self) -> dict[str, int]:
        return {"given": self.given}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.given = state["given"]


def test_attributes_of_parts_are_found_at_any_depth() -> None:
    teacher = nn.Linear(1, 1)
    teacher.calls = 3  # type: ignore[assignment]  # a plain attribute
    model = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    state = TrainerState(model, {"part": Part(), "teacher": teacher, "optimizer": optimizer}, RandomSources())
    found = unrecorded(state, {})
    assert found["attribute hidden of part"][:2] == (PLAIN, "2")
    assert found["attribute inner['a'][0]['b'] of part"][0] == ATTRIBUTE
    assert found["attribute calls of teacher"][:2] == (VALUE, "3")
    assert not [name for name in found if "param_groups" in name]
