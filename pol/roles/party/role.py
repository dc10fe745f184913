"""The base of every party of a market: a key, money in the vault, and tasks as it reads them."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pol.chain.account.gas_fees import FEES, FeePolicy
from pol.chain.account.signers import LocalSigner, Signer
from pol.chain.account.wallet import Wallet
from pol.chain.beacon.drand_relays import RoundSource
from pol.chain.deployments.deployment import Deployment
from pol.chain.desks.vault import StakeVault
from pol.chain.node.connection import Connection
from pol.execution.cpu import on_all_cores
from pol.execution.executor import ExecutorFactory
from pol.roles.party.decisions import Action, Mode
from pol.roles.party.kept_store import KeptStore
from pol.roles.party.machine import WorkTimes
from pol.roles.party.party import Party
from pol.roles.party.policy import PUBLIC_CHAIN, Policy
from pol.roles.party.task_reader import TaskReader
from pol.training.storage.party_database import PartyDatabase
from pol.training.storage.store import Store


class Role(TaskReader, Party):
    """A party. It reads all that it knows from the chain and from the store.

    Args:
        connection: the party's own connection to the chain.
        deployment: the deployed contracts.
        key: 32-byte private key, or a signer.
        store_url: fsspec URL of the store.
        policy: the terms that the party accepts.
        rounds: source of drand rounds, needed if the deployment draws by drand and nobody else submits them.
        fees: limits on the cost of transactions.
        evidence: the party's folder: its database (`pol.training.storage.party_database`), and all that it reads of the
            store (`pol.roles.party.kept_store`). A party that stakes needs one.
        timer: clock in seconds that times a step before the party stakes.
        executors: what executes steps canonically: all cores, or a device (`pol.execution.device.open_device`).
    """

    def __init__(
        self,
        connection: Connection,
        deployment: Deployment,
        key: bytes | Signer,
        store_url: str,
        policy: Policy = PUBLIC_CHAIN,
        rounds: RoundSource | None = None,
        fees: FeePolicy = FEES,
        evidence: Path | None = None,
        timer: Callable[[], float] = time.perf_counter,
        executors: ExecutorFactory = on_all_cores,
    ) -> None:
        store = Store(store_url) if evidence is None else KeptStore(store_url, PartyDatabase(evidence))
        TaskReader.__init__(self, connection, deployment, store, policy, WorkTimes(executors, timer))
        self.wallet = Wallet(connection, LocalSigner(key) if isinstance(key, bytes) else key, policy=fees)
        # Checked at the start: a signer that can't reproduce its secrets must not get a seat.
        self._secret_key = self.wallet.signer.secret_key(connection.chain_id)
        self.rounds = rounds

    def release(self, task_id: bytes) -> None:
        """Delete the evidence of a task that can't concern this party any more."""
        self.forget(task_id)
        super().release(task_id)

    def examined(self) -> Iterable[bytes]:
        """Tasks about which this party may keep a finding secret."""
        return ()

    def unsaid_until(self, task_id: bytes) -> int | None:
        """The last second to publish a finding that this party still keeps secret; None if there is none."""
        return None

    def watches(self) -> Mapping[bytes, int]:
        """The last second of each open watch for which it is drawn, and whose verdict it hasn't looked at."""
        return {}

    def bring(self, number: int) -> None:
        """Bring the seed of a beacon round on chain.

        Raises:
            OperationalError: nobody has submitted the drand round, and no relays are named.
        """
        self.beacon.bring(self.wallet, number, self.rounds)
        if not self.beacon.recorded(number):
            self.beacon.record(self.wallet, number)

    @property
    def vault(self) -> StakeVault:
        """The vault of the market."""
        return self.market.vault

    def tickets(self) -> int:
        """By which this party is drawn."""
        return self.market.sortition.tickets_now(self.wallet.address)

    def deposit(self, amount: int) -> None:
        """Deposit into the vault, from which stakes, escrows and bonds are locked."""
        self.market.vault.deposit(self.wallet, amount)

    def withdraw(self) -> None:
        """Withdraw all free money from the vault, if any."""
        amount = self.market.vault.free(self.wallet.address)
        if amount:
            self.market.vault.withdraw(self.wallet, amount)

    def secret(self, name: str, *parts: bytes) -> bytes:
        """32 secret bytes derived from this party's key, so that nothing needs to be stored."""
        message = b"\0".join((name.encode(), *parts))
        return hmac.new(self._secret_key, message, hashlib.sha256).digest()


@dataclass(frozen=True)
class PublicCall:
    """A call that anybody may make, so that no task stops; `by` makes it an action of one party."""

    task_id: bytes
    verb: str
    why: str
    make: Callable[[Role], object]
    mode: Mode = Mode.RESOLVE
    for_takers: bool = False
    """Another round of a seat or a task that nobody has taken: it gains only who would take it."""

    def by(self, role: Role) -> Action:
        """The call as this party's action."""
        return Action(self.task_id, self.verb, self.why, self.mode, partial(self.make, role))
