"""The program of batches of one shape: a step on the user's tensors, and what it asks of a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from pol.arithmetic.primitives import Words
from pol.errors import UnsupportedError
from pol.execution.device.device_executor import BegunStep, DeviceExecutor
from pol.execution.device.open_device import CPU, open_device
from pol.execution.in_place import InPlaceExecutor
from pol.graph.aten_graph import NARROW, AtenGraph, AtenInput, references
from pol.graph.capture.guards.index_ranges import lookups_of
from pol.graph.capture.guards.interval import Interval, interval_of
from pol.graph.capture.guards.number_ranges import require_intervals_fit
from pol.graph.capture.tracing.step_inputs import DATA
from pol.graph.captured_step import Capture
from pol.training.exact.training_tensors import TrainingTensors, words_of
from pol.training.task.task_training import to_tensor

FLOATS = frozenset({"float32", "bfloat16"})
PLACES = frozenset({"aten.argmax.default", "aten.argmin.default", "aten.max.dim", "aten.min.dim", "aten.topk.default"})
"""Operations whose integers are places, whatever the floats."""


class BatchProgram:
    """Executes the steps of batches of one shape.

    Args:
        captured: the step.
        tensors: the user's tensors that hold its state.
        device: where it is executed.
        threads: of the kernels of a processor.
        first, steps: the step from which it was captured, and the number of steps of the whole training.
    """

    def __init__(
        self, captured: Capture, tensors: TrainingTensors, device: str, threads: int, first: int, steps: int
    ) -> None:
        self._tensors, self._steps = tensors, steps - first
        self._uncounted = tensors.uncounted(first)
        self._graph = graph = captured.aten
        self._data = [entry for entry in graph.constants if entry.name.startswith(DATA)]
        self._rest = captured.constants[len(self._data) :]
        self._lookups = [lookup for lookup in lookups_of(graph) if lookup.constant.startswith(DATA)]
        self._fixed = _intervals(graph.constants, captured.constants)
        self._slots = _intervals(graph.slots, captured.state)
        self._bounded = {entry.name for entry in self._data if _is_bounded(graph, entry)}
        changing, observed = tensors.changing, list(captured.names.observed.values())
        self._executor: InPlaceExecutor | BegunStep
        if device == CPU:
            self._executor = InPlaceExecutor(captured.program, threads, changing, observed)
        else:
            on_device = DeviceExecutor(captured.program, captured.constants, open_device(device), observed)
            self._executor = BegunStep(on_device, changing)

    def begin(self, batch: Sequence[Tensor], step: int) -> Tensor:
        """The loss of a step, or of each phase; `finish` writes its state, and the batch has to stay until then.

        Raises:
            UnsupportedError: the batch's integers have no meaning in the step.
        """
        self._require_defined(batch)
        words = [words_of(entry.name, tensor) for entry, tensor in zip(self._data, batch, strict=True)]
        losses = self._executor.begin(self._tensors.words(), step, [*words, *self._rest])
        found = torch.from_numpy(np.concatenate([loss.reshape(1) for loss in losses]).view(np.float32))
        return found[0] if len(losses) == 1 else found

    def finish(self) -> None:
        """Write the state after the step into the user's tensors."""
        self._tensors.write(self._executor.finish())

    def is_counted(self, number: int) -> bool:
        """Whether the optimizer has counted the updates for which the program computes step ``number``."""
        return bool((self._tensors.uncounted(number) == self._uncounted).all())

    def _require_defined(self, batch: Sequence[Tensor]) -> None:
        """What a capture checks of a data set: indices that exist, and integers that stay within 32 bits."""
        named = {entry.name: tensor for entry, tensor in zip(self._data, batch, strict=True)}
        for lookup in self._lookups:
            lookup.require(named[lookup.constant])
        wider = {name: self._fixed[name] | interval_of(named[name]) for name in self._bounded}
        if any(self._fixed[name] != interval for name, interval in wider.items()):
            require_intervals_fit(self._graph, {**self._fixed, **wider}, self._slots, self._steps)
            self._fixed.update(wider)


def require_batch(batch: Mapping[str, object]) -> None:
    """Check the kinds of a batch, or of its inputs alone.

    Raises:
        UnsupportedError: a part is no tensor of numbers, or asks for a gradient; torch.autocast is on.
    """
    for place, item in batch.items():
        if not isinstance(item, Tensor):
            raise UnsupportedError(
                f"part {place} of the batch is a {type(item).__name__}: give tensors, the target last: step(x, y)"
            )
        if item.layout != torch.strided or item.device.type == "meta":
            raise UnsupportedError(f"part {place} of the batch is {item.layout} on {item.device}: give it as numbers")
        if item.requires_grad:
            raise UnsupportedError(
                f"part {place} of the batch requires a gradient, and an exact step computes none for it: put what it "
                "comes from into the model, trained by the same optimizer, or give part.detach()"
            )
    if torch.is_autocast_enabled("cpu"):
        raise UnsupportedError(
            "an exact step under torch.autocast: leave it, and give the step loop=pol.Loop(precision='bf16-mixed')"
        )


def _intervals(entries: Sequence[AtenInput], words: Sequence[Words]) -> dict[str, Interval]:
    return {entry.name: interval_of(to_tensor(entry.type, w)) for entry, w in zip(entries, words, strict=True)}


def _is_bounded(graph: AtenGraph, entry: AtenInput) -> bool:
    """Whether 64-bit integers of the step may depend on the size of this constant's numbers."""
    derived = {place for place, own in enumerate(graph.inputs) if own == entry}
    for place, node in enumerate(graph.nodes, len(graph.inputs)):
        used = [ref for ref in references(node.all_arguments) if ref.value in derived]
        if not used:
            continue
        derived.add(place)
        floats = all(graph.type_of(ref).dtype in FLOATS for ref in used)
        if any(type_.dtype in {"int64", *NARROW} for type_ in node.outputs) and not (
            floats and node.operation in PLACES
        ):
            return True
    return False
