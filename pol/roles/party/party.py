"""What any party has: an account on a chain, and its own copies of what it answers with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from pol.chain.account.wallet import Wallet
from pol.chain.desks.vault import StakeVault
from pol.chain.node.connection import Connection
from pol.roles.party.decisions import Mode
from pol.roles.party.kept_store import KeptStore
from pol.training.storage.store import Store


class Party(ABC):
    """An account, and a store that keeps what it reads if it stakes."""

    connection: Connection
    wallet: Wallet
    store: Store
    mode = Mode.PROPOSE
    """How much its process does on its own."""

    @property
    @abstractmethod
    def vault(self) -> StakeVault:
        """The vault with this party's stakes."""

    def tickets(self) -> int:
        """By which this party is drawn; none where nobody is."""
        return 0

    def state(self) -> dict[str, Any]:
        """What people want to know of it besides, for /health."""
        return {}

    def require_kept(self) -> None:
        """Check that the evidence lies on this party's disk, before it signs anything that it may have to prove.

        Raises:
            OperationalError: the disk fails; stake nothing new.
        """
        if isinstance(self.store, KeptStore):
            self.store.require_kept()

    def keep(self) -> None:
        """As `require_kept` for a party that already sits: what the disk refuses is reported, and held in memory.

        An idle seat loses its stake for certain; without evidence it loses only if somebody disputes.
        """
        if isinstance(self.store, KeptStore):
            self.store.keep()

    def unkept(self) -> str:
        """The evidence of the current task that isn't on disk, and why; empty if all of it is."""
        return self.store.unkept() if isinstance(self.store, KeptStore) else ""

    def about(self, task_id: bytes) -> AbstractContextManager[None]:
        """A context: all that is read inside is evidence for this task, kept until `release`."""
        return self.store.about(task_id.hex()) if isinstance(self.store, KeptStore) else nullcontext()

    def release(self, task_id: bytes) -> None:
        """Delete the evidence of a task that can't concern this party any more."""
        if isinstance(self.store, KeptStore):
            self.store.release(task_id.hex())

    def forget(self, task_id: bytes) -> None:
        """Drop what is in memory of a task; by itself a party has nothing."""
        return

    def rest(self) -> None:
        """An action is done: let go of large things that can be had again; by itself a party has none."""
        return
