"""Guards what tracing must not change: attributes of the model, the loss and the optimizer, and random generators.

A trace runs the user's Python. A write outside of the traced tensors would become a constant of the program, and would
stay in the user's objects. So everything reachable is recorded before, compared afterwards and restored.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from pol.errors import UnsupportedError
from pol.graph.capture.guards import user_state
from pol.graph.capture.guards.reachable_objects import ABSENT, ReachableObjects, form_of, is_plain, is_same
from pol.graph.refusals import Report, refuse

_GLOBAL_GENERATORS = {
    "Python's random": random._inst,
    "numpy.random": np.random.mtrand._rand,
    "torch's generator": torch.default_generator,
}


_HOOKS = "._forward_hooks["


class Snapshot:
    """The values of everything reachable from some objects, to compare with and to restore."""

    def __init__(self, roots: Mapping[str, object]) -> None:
        reachable = ReachableObjects(roots)
        self._objects, self._tensors = reachable.objects, reachable.tensors
        self._generators = _generators()
        self.made: dict[str, object] = {}
        """By the names of attributes that took tensors of the step: their forms."""

    def require_unchanged(self, first_run: bool, report: Report = refuse) -> None:
        """Raises UnsupportedError that names a change outside of the traced tensors.

        In a first run an attribute may take an immutable value, such as a size, and a module a hook: `settle` makes the
        next run keep it. In every run it may take tensors that the step has made, also in a new list: the loss may read
        them, and nothing else does (a step that reads those of the step before differs from run to run).
        """
        for name in self._changes(first_run):
            report(
                UnsupportedError(
                    f"attribute {name} changes during the step. Only parameters and buffers of the model are the state "
                    f"of a training: {way_out(name)}, or use a local variable"
                )
            )
        for name, (state, read, _) in self._generators.items():
            if read() != state:
                report(
                    UnsupportedError(
                        f"the model or the loss draws random numbers from {name}; they would be constants of the "
                        "program. Draw with torch's own operations (mixup: torch.distributions.Beta(a, a).sample()), "
                        "or draw before and put the numbers into the data set"
                    )
                )

    def settle(self) -> None:
        """Compare with the present values from now on; `restore` still goes back to the first ones."""
        for record in self._objects:
            record.parts = record.read()

    def name_of(self, tensor: Tensor) -> str:
        """The name of the recorded tensor with the same memory, or an empty string."""
        storage = tensor.untyped_storage()._cdata
        return next((kept.name for kept in self._tensors if kept.tensor.untyped_storage()._cdata == storage), "")

    def restore(self) -> None:
        """Put everything back."""
        for record in self._objects:
            record.restore()
        for tensor in self._tensors:
            tensor.restore()
        for _, _, put_back in self._generators.values():
            put_back()

    def _changes(self, first_run: bool) -> Iterator[str]:
        for record in self._objects:
            now = record.read()
            for name in [*record.parts, *(name for name in now if name not in record.parts)]:
                old, new = record.parts.get(name, ABSENT), now.get(name, ABSENT)
                is_settled = first_run and (is_plain(new) or (old is ABSENT and _HOOKS in name))
                if is_same(old, new) or is_settled:
                    continue
                form = form_of(new)
                if form is None or (not first_run and form != self.made.get(name)):
                    yield name
                self.made[name] = form
        yield from (kept.name for kept in self._tensors if kept.is_changed)


@contextmanager
def mutation_guard(roots: Mapping[str, object]) -> Iterator[Snapshot]:
    """A snapshot of everything reachable from `roots`; it is restored at the end, also after an exception."""
    snapshot = Snapshot(roots)
    try:
        yield snapshot
    finally:
        snapshot.restore()


def way_out(name: str) -> str:
    """Advice for state that is not part of the state of a training."""
    if name.startswith("optimizer"):
        return "keep it as a tensor in the optimizer's state of a parameter, self.state[p]"
    if name.startswith("model"):
        return "make it a buffer with register_buffer"
    return "move it into the model, as a buffer (register_buffer)"


def _generators() -> dict[str, tuple[object, Callable[[], object], Callable[[], object]]]:
    """The global random number generators by name: the present state, how to read it, and how to restore it."""
    found = {}
    for name, generator in _GLOBAL_GENERATORS.items():
        position = user_state.position(generator)
        assert position is not None, "every generator has a position"
        read, restore = position
        found[name] = read(), read, restore
    return found
