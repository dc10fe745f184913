"""Options of a recorder: how checkpoints are taken, and who can open them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from pol.errors import ProtocolError
from pol.execution.device.open_device import CPU, require_device_name
from pol.training.storage import stored_checkpoint
from pol.training.storage.key_file import load_opening_key
from pol.training.storage.sealing import SealedStore
from pol.training.storage.store import Store


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
