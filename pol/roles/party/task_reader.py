"""Tasks of a market as a party, a monitor or a page reads them: each part checked against the chain, without a key."""

from __future__ import annotations

from eth_typing import ChecksumAddress

from pol.chain.deployments.deployment import Deployment
from pol.chain.desks.proven_steps import PinnedProofs
from pol.chain.desks.task_registry import Terms
from pol.chain.node.connection import Connection
from pol.claims.acceptance_rule import EXACT
from pol.claims.distance import require_distances
from pol.claims.segment_claim import Three
from pol.errors import OperationalError, ProtocolError
from pol.roles.party.machine import WorkTimes
from pol.roles.party.policy import PUBLIC_CHAIN, Policy
from pol.roles.party.proof_pins import require_pin
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
    """Check that a published task is the one on chain. Raises ProtocolError: it isn't; leave it alone."""
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


class TaskReader:
    """Reads a market and its tasks.

    Args:
        connection: the connection to the chain.
        deployment: the deployed contracts.
        store: where tasks, proofs and states are published.
        policy: limits on what is read, and the circuits that are trusted.
        times: what work takes this machine, and what executes it.
    """

    def __init__(
        self,
        connection: Connection,
        deployment: Deployment,
        store: Store,
        policy: Policy = PUBLIC_CHAIN,
        times: WorkTimes | None = None,
    ) -> None:
        self.connection, self.store, self.policy = connection, store, policy
        self.market = deployment.market(connection)
        self.beacon = deployment.beacon_on(connection)
        self.times = WorkTimes() if times is None else times
        self._tasks: dict[bytes, LoadedTask] = {}
        self._pins: set[tuple[bytes, PinnedProofs]] = set()

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

    def forget(self, task_id: bytes) -> None:
        """Drop the task and all executions for it."""
        self._let_go(task_id)

    def _let_go(self, task_id: bytes) -> None:
        self._tasks.pop(task_id, None)
        self.times.let_go(task_id)
