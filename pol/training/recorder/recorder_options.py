"""Options of a recorder: how checkpoints are taken, who can open them, and what they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from torch import nn
from torch.optim import Optimizer

from pol.errors import ProtocolError, UnsupportedError
from pol.execution.device.open_device import CPU, require_device_name
from pol.training.record.recorded_run import COMPONENT, PROGRESS
from pol.training.state.random_state import Generator, RandomSources
from pol.training.state.trainer_state import Stateful, TrainerState
from pol.training.storage import stored_checkpoint
from pol.training.storage.key_file import load_opening_key
from pol.training.storage.sealing import SealedStore
from pol.training.storage.store import Store
from pol.training.task.task_document import LoadedTask


@dataclass(frozen=True)
class Checkpoints:
    """How checkpoints are taken and stored.

    background: a checkpoint is copied, then hashed and stored beside the training. False keeps no second copy of the
    state, and the training waits.
    updates: a checkpoint holds only the changes since the one before, and every ``full_every``-th is stored in full.
    This keeps the state in memory twice beside the training.
    gradients: gradients are part of the state: a checkpoint may fall between backward passes that add up.
    device: ``cuda`` hashes tensors on the GPU that holds them, not here; ``host`` is for tests.

    Raises:
        ProtocolError: ``full_every`` is out of its range, or there is no such device.
    """

    background: bool = True
    updates: bool = False
    full_every: int = 10
    gradients: bool = False
    device: str = CPU

    def __post_init__(self) -> None:
        require_device_name(self.device)
        if not 1 <= self.full_every <= stored_checkpoint.MAX_UPDATES:
            raise ProtocolError(
                f"one checkpoint in {self.full_every} in full: give 1 to {stored_checkpoint.MAX_UPDATES}"
            )


@dataclass(frozen=True)
class Sealing:
    """Checkpoints that only chosen keys open.

    recipients: X25519 public keys of 32 bytes. opening_key: the recorder's own key, which resumes a sealed run and can
    open its checkpoints too; a key or its PEM file.
    """

    recipients: Sequence[bytes] = ()
    opening_key: X25519PrivateKey | str | Path | None = None

    def over(self, store: Store) -> SealedStore:
        """The store that seals whatever it is given.

        Raises:
            ProtocolError: the PEM file holds no X25519 key.
            OperationalError: it can't be read.
        """
        opening = None if self.opening_key is None else load_opening_key(self.opening_key)
        return SealedStore(store, self.recipients, opening)


DEFAULT = Checkpoints()


def interval(every: int | None, task: LoadedTask | None) -> int:
    """Steps between two checkpoints."""
    if task is not None and every not in (None, task.document.interval):
        raise ProtocolError(
            f"the task asks for a checkpoint every {task.document.interval} steps, not every {every}: leave it out"
        )
    if every is None:
        every = 100 if task is None else task.document.interval
    if every < 1:
        raise ProtocolError(f"a checkpoint every {every} steps makes no sense: give 1 or more")
    return every


def trainer_state(
    model: nn.Module,
    optimizer: Optimizer | None,
    scheduler: Stateful | None,
    scaler: Stateful | None,
    parts: Mapping[str, Stateful | Generator],
    gradients: bool,
) -> TrainerState:
    """The state of the objects that a recorder is given.

    Raises:
        UnsupportedError: a part without a state, or with a name that is taken.
    """
    generators = {name: part for name, part in parts.items() if isinstance(part, Generator)}
    named: dict[str, Stateful | None] = {"optimizer": optimizer, "scheduler": scheduler, "scaler": scaler}
    named |= {name: part for name, part in parts.items() if not isinstance(part, Generator)}
    if reserved := named.keys() & {PROGRESS, COMPONENT}:
        raise UnsupportedError(f"{sorted(reserved)[0]!r} can't be the name of a part: choose another identifier")
    stateful = {name: part for name, part in named.items() if part is not None}
    return TrainerState(model, stateful, RandomSources(generators), gradients=gradients)
