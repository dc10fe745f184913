"""The base of every party: a key, a connection to the chain, and a store."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Self

from eth_typing import ChecksumAddress

from pol.chain.account.gas_fees import FEES, FeePolicy
from pol.chain.account.signers import LocalSigner, Signer
from pol.chain.account.wallet import Wallet
from pol.chain.beacon.drand_relays import RoundSource
from pol.chain.deployments.deployment import Deployment
from pol.chain.desks.proven_steps import PinnedProofs
from pol.chain.desks.task_registry import Terms
from pol.chain.desks.vault import StakeVault
from pol.chain.node.connection import Connection
from pol.claims.acceptance_rule import EXACT
from pol.claims.distance import require_distances
from pol.claims.segment_claim import Three
from pol.dispute.dispute_needs import DisputeNeeds
from pol.errors import OperationalError, ProtocolError
from pol.execution.cpu import on_all_cores
from pol.execution.executor import ExecutorFactory
from pol.roles.party.kept_store import KeptStore
from pol.roles.party.machine import FASTEST, FASTEST_DEVICE, MachineSpeeds
from pol.roles.party.party import Party
from pol.roles.party.policy import PUBLIC_CHAIN, Policy
from pol.roles.party.proof_pins import require_pin
from pol.training.storage.party_database import PartyDatabase
from pol.training.storage.store import Store
from pol.training.task import learning_proof
from pol.training.task.learning_proof import LearningProof
from pol.training.task.published_task import held_bytes
from pol.training.task.published_task import load as load_task
from pol.training.task.task_document import LoadedTask
from pol.verification.profile.profiling import rerun_programs, rerun_programs_root
from pol.zk.circuits import load_circuit
from pol.zk.network import StepNetwork


def require_terms(task: LoadedTask, terms: Terms) -> None:
    """Check that a published task is the one on chain.

    Raises:
        ProtocolError: it isn't; leave it alone.
    """
    require_distances(task.program, task.initial_state, task.names.slots)
    if task.is_circuit and not terms.is_exact:
        raise ProtocolError(
            "the task's steps are a circuit's, which have the same bits everywhere, and its terms admit a distance: "
            "leave it alone"
        )
    document = task.document
    published = (document.program_hash, document.constants_root, document.initial_state_root)
    if published != (terms.program, terms.constants, terms.initial_state):
        raise ProtocolError("the published task has another program, data or initial state than the terms on chain")
    if (document.steps, document.interval) != (terms.steps, terms.interval):
        raise ProtocolError("the published task has another number of steps than the terms on chain")
    if terms.work_units != document.work * document.steps:
        raise ProtocolError(
            f"the terms say {terms.work_units} work units, the task's steps are {document.work * document.steps}: its "
            "prices are for other work; don't stake on it"
        )
    if rerun_programs_root(rerun_programs(task.program, terms.rerun_count, terms.looks)) != terms.reruns:
        raise ProtocolError(
            "the terms name other programs for the reruns of a profile than the task's own, reordered: their author "
            "chooses how much honest runs diverge; don't stake on them"
        )


class Role(Party):
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
        self.connection = connection
        self.wallet = Wallet(connection, LocalSigner(key) if isinstance(key, bytes) else key, policy=fees)
        # Checked at the start: a signer that can't reproduce its secrets must not get a seat.
        self._secret_key = self.wallet.signer.secret_key(connection.chain_id)
        self.market = deployment.market(connection)
        self.beacon = deployment.beacon_on(connection)
        self.rounds = rounds
        self.store = Store(store_url) if evidence is None else KeptStore(store_url, PartyDatabase(evidence))
        self.policy = policy
        self.timer = timer
        self.executors = executors
        self.fastest = FASTEST if executors is on_all_cores else FASTEST_DEVICE
        self.paces: dict[bytes, float] = {}
        """Seconds of a canonical step by task (`pol.roles.process.work_time`)."""
        self.machine: MachineSpeeds | None = None
        """Speeds of this machine, once they are measured."""
        self.dispute_needs: dict[tuple[bytes, int], DisputeNeeds] = {}
        """By task in memory, and by the levels that a move of its dispute opens (`pol.roles.process.defence`)."""
        self.side_seconds: dict[tuple[bytes, int], float] = {}
        """Of all moves of one side, by task and by the steps before the first one."""
        self._tasks: dict[bytes, LoadedTask] = {}
        self._pins: set[tuple[bytes, PinnedProofs]] = set()
        self.probed: set[tuple[bytes, int, bool]] = set()
        """Trainings whose states could be read, before the draw or after (`data_availability.unavailable_state`)."""

    @classmethod
    def reader(
        cls, connection: Connection, deployment: Deployment, store_url: str, policy: Policy = PUBLIC_CHAIN
    ) -> Self:
        """A party with a random key: it only reads."""
        return cls(connection, deployment, secrets.token_bytes(32), store_url, policy)

    def task(self, task_id: bytes) -> LoadedTask:
        """A task with all its parts, each checked against what the chain says.

        Raises:
            ProtocolError: the published task isn't the one that the terms name, too large, or too much work to check.
        """
        task = self._tasks.pop(task_id, None)
        if task is None:
            most, terms = self.policy.max_task_bytes, self.market.registry.terms(task_id)
            self.policy.require_reruns(terms)
            task = load_task(self.store, terms.document.hex(), most=most)
            require_terms(task, terms)
            # The most recently used tasks stay in memory.
            room = 2 * most - held_bytes(task.program)
            while self._tasks and sum(held_bytes(each.program) for each in self._tasks.values()) > room:
                self._let_go(next(iter(self._tasks)))
        self._tasks[task_id] = task
        return task

    def require_proofs(self, task_id: bytes) -> None:
        """Check the pin of exact proofs of a task (docs/spec/zk.md), before anything is staked on it.

        Raises:
            ProtocolError: the policy doesn't trust the key, or the pin is of another step or other data.
        """
        pin = self.market.proven_steps.pinned(task_id)
        if int(pin.verifier, 16) == 0 or (task_id, pin) in self._pins:
            return
        network, task = self.trusted_network(pin.verifier), self.task(task_id)
        require_pin(pin, task.program, task.constants, task.document.steps, network)
        self._pins.add((task_id, pin))

    def trusted_network(self, verifier: ChecksumAddress) -> StepNetwork:
        """The network of the circuit whose proofs a verifier on chain checks.

        Raises:
            ProtocolError: the policy doesn't trust the verifier, or it has another key than the trusted one.
            OperationalError: the node failed, or the circuit's files are missing.
        """
        trusted = self.policy.require_verifier(verifier)
        if self.market.proven_steps.key_digest(verifier) != trusted.digest:
            raise ProtocolError(
                f"the verifier at {verifier} has another key than {trusted.digest.hex()}, which this party trusts: "
                "leave the task alone, or name the digest that `pol zk exact verify` prints for a setup that you trust"
            )
        return load_circuit(trusted.circuit).network

    def require_acceptable(self, task_id: bytes) -> None:
        """Check terms, exact proofs, answer window and memory of a task against this party's policy.

        Raises:
            ProtocolError: they break the policy; the message says which.
        """
        self.policy.require(self.market.registry.terms(task_id))
        self.require_proofs(task_id)
        self.policy.require_answer_window(self.market.demands.window())
        self.policy.require_step(self.task(task_id).program)

    def proof(self, task_id: bytes) -> LearningProof:
        """The learning proof that the solver committed to.

        Raises:
            ProtocolError: the published proof isn't the committed one.
            OperationalError: there is none yet, or the node or the store failed.
        """
        return self.published_proof(task_id, *self.committed(task_id))

    def committed(self, task_id: bytes) -> tuple[str, bytes]:
        """Digest and log root of the learning proof that the solver committed to. Raises as `proof`; reads no store."""
        committed = self.market.proofs.events("ProofCommitted", taskId=task_id)
        if not committed:
            raise OperationalError("the solver hasn't committed a learning proof yet; try again later")
        return bytes(committed[-1]["proofDigest"]).hex(), bytes(committed[-1]["logRoot"])

    def published_proof(self, task_id: bytes, digest: str, log_root: bytes) -> LearningProof:
        """The learning proof with this digest, of this log. Raises as `proof`."""
        proof = learning_proof.load(self.store, digest, self.task(task_id))
        if proof.log_root != log_root:
            raise ProtocolError("the published learning proof has another log root than the committed one")
        return proof

    def release(self, task_id: bytes) -> None:
        """Delete the evidence of a task that can't concern this party any more."""
        self.forget(task_id)
        super().release(task_id)

    def forget(self, task_id: bytes) -> None:
        """Drop the task and all executions for it."""
        self._let_go(task_id)

    def _let_go(self, task_id: bytes) -> None:
        self._tasks.pop(task_id, None)
        self.dispute_needs = {key: needs for key, needs in self.dispute_needs.items() if key[0] != task_id}

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

    def thresholds(self, task_id: bytes) -> Three:
        """The thresholds of a task: zeros in exact mode.

        Raises:
            OperationalError: there is no final profile yet, or the node failed.
        """
        if self.market.registry.terms(task_id).is_exact:
            return EXACT
        standing = self.market.profiles.standing(task_id)
        if not standing.concluded:
            raise OperationalError("the task has no final profile yet, so no thresholds; try again later")
        return standing.thresholds

    def secret(self, name: str, *parts: bytes) -> bytes:
        """32 secret bytes derived from this party's key, so that nothing needs to be stored."""
        message = b"\0".join((name.encode(), *parts))
        return hmac.new(self._secret_key, message, hashlib.sha256).digest()
