"""The recorder in a loop of torchft, in which replicas may fail and join: each replica has a record of its own.

recorder = FaultTolerantRecorder("runs/replica0", manager, model, optimizer, every=100)
recorder.resume()
while recorder.steps < steps:
    ...  # torchft's optimizer steps, if the replicas agree to commit
    recorder.step()
recorder.close()
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch.distributed as dist
from torch import nn

from pol.errors import ProtocolError, UnsupportedError
from pol.training.recorder.recorder import Recorder
from pol.training.storage.store import Store


class FaultTolerantRecorder(Recorder):
    """A recorder whose steps are those that a torchft Manager has committed; the others don't count.

    A replica that joins late takes the state of another one and goes on at its step. The record then has a gap, and
    says in every later checkpoint which steps were taken over: nobody can check them from this record, but from that
    of the replica which did them.

    store, parts, options: those of `Recorder`. manager: its callbacks for the user's state are the user's own.
    optimizer: torchft's wrapper, or the one inside.

    Raises:
        UnsupportedError: a replica of several processes.
    """

    def __init__(
        self,
        store: Store | str,
        manager: Any,
        model: nn.Module,
        optimizer: Any = None,
        *,
        parts: Mapping[str, Any] | None = None,
        **options: Any,
    ):
        if dist.is_initialized() and dist.get_world_size() > 1:
            raise UnsupportedError(
                "the replica has several processes: record it with DistributedRecorder(group=) and parts={'torchft': "
                "manager}, and call step() when the manager has committed"
            )
        self._manager, self._progress = manager, _ManagerProgress(manager)
        given = {"torchft": self._progress, **(parts or {})}
        super().__init__(store, model, getattr(optimizer, "optim", optimizer), parts=given, **options)

    def step(self) -> None:
        """End a step; it counts if the replicas have committed it.

        Raises:
            ProtocolError: the manager is behind the record, as one that was made anew after `resume`.
        """
        done = self._manager.current_step()
        if self._progress.is_taken:
            self._progress.taken.append([self.steps, done - 1])
            self._progress.is_taken, self._steps = False, done - 1
        if done == self.steps:
            return
        if done != self.steps + 1:
            raise ProtocolError(
                f"the manager is at step {done}, the record at {self.steps}: call resume() before the first quorum "
                "and step() once after each optimizer step"
            )
        super().step()


class _ManagerProgress:
    """A Manager's counts, and the steps that this replica has taken over from others."""

    def __init__(self, manager: Any):
        self._manager = manager
        self.taken: list[list[int]] = []
        self.is_taken = False
        manager.register_state_dict_fn("pol", self._note_taken, self._mark)

    def state_dict(self) -> dict[str, Any]:
        """Counts, and for each state taken over the step before and the step of that state."""
        return {"counts": dict(self._manager.state_dict()), "taken": [list(pair) for pair in self.taken]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Set the manager to the recorded step."""
        self._manager.load_state_dict(state["counts"])
        self.taken = [list(pair) for pair in state["taken"]]

    def _mark(self) -> dict[str, int]:
        """What goes to a replica that takes this one's state: nothing but a sign of it."""
        return {}

    def _note_taken(self, mark: Mapping[str, int]) -> None:
        self.is_taken = True
