"""A machine that fails in the middle of a step, for trainers of transformers."""

from typing import Any

from transformers import TrainerCallback


class Stop(Exception):
    pass


class StopAt(TrainerCallback):
    def __init__(self, step: int):
        self.step = step

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **others: Any) -> None:
        if state.global_step == self.step:
            raise Stop
