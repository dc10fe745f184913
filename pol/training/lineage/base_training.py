"""Initial weights from elsewhere: the end of a learning proof or record, a drawing, or a task."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor, nn

from pol.arithmetic.primitives import Words
from pol.commitments.canonical_json import Document
from pol.errors import ProtocolError
from pol.graph.capture import CapturedInitialization, capture_initialization
from pol.training.lineage import lineage, lineage_copy
from pol.training.record import learning_record
from pol.training.record.learning_record import LearningRecord
from pol.training.record.recorded_run import RecordedRun
from pol.training.state import plain_data, tensors
from pol.training.state.words import of_words
from pol.training.storage.checkpoint_tensors import CheckpointTensors
from pol.training.storage.store import Store
from pol.training.storage.stored_checkpoint import StoredCheckpoint
from pol.training.task import initialization
from pol.training.task.initial_state_check import load_end
from pol.training.task.published_task import load as load_task
from pol.training.task.task_document import LoadedTask
from pol.training.task.task_training import to_tensor


def take_over(model: nn.Module, store: Store, proof: str, new: Collection[str] = ()) -> dict[str, str]:
    """Give a model the final weights of a learning proof; the ``slots`` for the start of a task.

    Parameters and buffers are taken over by name, except those in ``new``.

    Raises:
        ProtocolError: the proof doesn't hold, or a tensor of the same name has another type.
    """
    task, end = load_end(store, proof, lambda digest: load_task(store, digest))
    known = {entry.name: to_tensor(entry.type, words) for entry, words in zip(task.aten.slots, end, strict=True)}
    taken = {}
    with torch.no_grad():
        for name, target in _tensors(model):
            if name in known and name not in new:
                _copy(name, target, known[name])
                taken[name] = name
    if not taken:
        raise ProtocolError(f"no parameter of the model has a name of proof {proof}: give the submodule")
    return taken


class StartOfRecord(Protocol):
    """The source of a run's initial weights, if not the model."""

    def begin(self, model: nn.Module, store: Store) -> Document:
        """Put the weights into the model and their evidence into the store; the ``start`` of the record."""
        ...


@dataclass
class FromRecord:
    """A start of a recorder: the weights in a checkpoint of a learning record.

    After the recorder's first `resume`, ``taken`` and ``new`` list the parameters and buffers that came from there, and
    those that the model made itself.
    """

    store: Store
    record: LearningRecord
    index: int
    saved: StoredCheckpoint
    left_out: frozenset[str]
    rename: Callable[[str], str]
    taken: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)

    def begin(self, model: nn.Module, store: Store) -> Document:
        """Load the weights into the model; the ``start`` of its record. The lineage's documents go into ``store``."""
        names = {}
        with torch.no_grad(), CheckpointTensors(self.store, self.saved) as arrays:
            for kind, name, target in _arrays(model):
                source = f"{kind}/{plain_data.segment(self.rename(name))}"
                if source in arrays and name not in self.left_out:
                    _copy(name, target, tensors.to_tensor(arrays[source]))
                    names[f"{kind}/{plain_data.segment(name)}"] = source
                    self.taken.append(name)
                else:
                    self.new.append(name)
        if not names:
            raise ProtocolError("no parameter of the model has a name of the base record: rename its modules")
        digest = lineage_copy.copy_record(self.store, store, self.record, self.index)
        return {"kind": "record", "record": digest, "index": self.index, "arrays": names}


def from_record(
    store: Store | str,
    digest: str | None = None,
    index: int = -1,
    new: Collection[str] = (),
    rename: Callable[[str], str] = str,
) -> FromRecord:
    """The start of a recorder that continues another training: ``Recorder(..., start=from_record("runs/base"))``.

    The record has this digest, or is the store's newest; a negative ``index`` counts checkpoints from the end. ``new``
    names parameters and buffers that stay as the model made them, e.g. a head of another shape. ``rename`` maps a name
    of the model to one of the base, e.g. for a base inside a wrapper with adapters.

    Raises:
        ProtocolError: no record, its own start is false, or no such checkpoint.
    """
    opened = store if isinstance(store, Store) else Store(store)
    record = learning_record.load_record(opened, digest)
    lineage.of_record(opened, record)
    run = RecordedRun(opened, record)
    place = index if index >= 0 else len(record.checkpoints) + index
    return FromRecord(opened, record, place, run.document(run.at(place)), frozenset(new), rename)


@dataclass(frozen=True)
class FromInitialization:
    """A start of a recorder: weights that anybody can draw again."""

    captured: CapturedInitialization

    def begin(self, model: nn.Module, store: Store) -> Document:
        """Draw the weights into the model; the ``start`` of its record."""
        drawing = initialization.publish_initialization(store, self.captured)
        own = dict(_tensors(model))
        drawn = initialization.run(store, drawing, {name: tuple(tensor.shape) for name, tensor in own.items()})
        with torch.no_grad():
            for name, (_, words) in drawn.items():
                _copy(name, own[name], _tensor(words, own[name]))
        return {"kind": "initialisation", "initialisation": drawing.document()}


def from_initialization(build: Callable[[], nn.Module], seed: int = 0) -> FromInitialization:
    """The start of a recorder whose weights ``build`` draws from a seed. Every reader of the record can check it.

    Raises:
        UnsupportedError: a draw or an operation without a definition.
    """
    return FromInitialization(capture_initialization(build, seed))


@dataclass(frozen=True)
class FromTask:
    """A start of a recorder: the initial state of a task."""

    task: LoadedTask

    def begin(self, model: nn.Module, store: Store) -> Document:
        """Give the model's parameters and buffers the initial values of the task."""
        state = dict(zip(self.task.names.slots, self.task.initial_state, strict=True))
        with torch.no_grad():
            for name, target in _tensors(model):
                if name not in state:
                    raise ProtocolError(f"the task has no slot {name}: train the model that was captured")
                _copy(name, target, _tensor(state[name], target))
        return {"kind": "task", "task": self.task.digest}


def _arrays(model: nn.Module) -> Iterator[tuple[str, str, Tensor]]:
    """Component, name and tensor of all parameters and buffers, each tensor once."""
    yield from (("parameters", name, tensor) for name, tensor in model.named_parameters())
    yield from (("buffers", name, tensor) for name, tensor in model.named_buffers())


def _tensors(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    yield from ((name, tensor) for _, name, tensor in _arrays(model))


def _copy(name: str, target: Tensor, value: Tensor) -> None:
    if value.dtype != target.dtype or value.shape != target.shape:
        raise ProtocolError(
            f"{name} is {target.dtype} of shape {tuple(target.shape)}, the base has {value.dtype} of shape "
            f"{tuple(value.shape)}: name it in new=[...] if it isn't to be taken over"
        )
    target.copy_(value)


def _tensor(words: Words, like: Tensor) -> Tensor:
    element = tensors.ELEMENT_TYPES.get(like.dtype)
    if element is None:
        raise ProtocolError(f"a tensor of {like.dtype} holds no words")
    return tensors.to_tensor(of_words(words, element))
