"""A market whose task is a circuit's training in fixed point, executed exactly, with a proof of every step."""

from dataclasses import dataclass

import numpy as np

import toy_market
from pol.arithmetic.primitives import Words
from pol.chain.contract.binding import deploy_contract as create
from pol.chain.desks.proven_steps import PinnedProofs, StepProof, batch_entry, context_of
from pol.chain.desks.task_registry import Terms
from pol.commitments.checkpoint_log import CheckpointLog
from pol.commitments.keccak import keccak256
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.execution.reference import ReferenceExecutor
from pol.zk.circuits import example_vectors, load_circuit
from pol.zk.exact import exact_prover
from pol.zk.exact.exact_prover import ExactRun
from pol.zk.fixed_point import Integers, dequantize
from pol.zk.network import StepNetwork
from pol.zk.network_program import step_program, tensor_types
from pol.zk.poseidon import vector_hash
from toy_market import Ground

STEPS, INTERVAL = 10, 5


def words(vector: Integers, scale: int) -> Words:
    """The float32 words of a vector."""
    return dequantize(vector, scale).astype(np.float32).view(np.uint32)


@dataclass(frozen=True)
class Training:
    """Ten steps of a circuit: the network, the vectors' data, and honest executions of both segments."""

    network: StepNetwork
    first: Integers
    data: list[tuple[Integers, ...]]
    traces: list[SegmentTrace]

    @property
    def batches(self) -> CheckpointLog:
        """The log of the hashes of each step's data."""
        entries = [batch_entry([hash_of(tensor) for tensor in tensors]) for tensors in self.data]
        return CheckpointLog(entries)


def hash_of(vector: Integers) -> bytes:
    return vector_hash([int(x) for x in vector.ravel()]).to_bytes(32)


def training(seed: int = 1, name: str = "linear_regression") -> Training:
    circuit = load_circuit(name)
    network = circuit.network
    first, *_ = example_vectors(circuit, seed)
    data = [tuple(example_vectors(circuit, 100 * seed + step)[1:]) for step in range(STEPS)]
    program = step_program(network, STEPS)
    constants = [words(np.concatenate(tensors), network.scale) for tensors in zip(*data, strict=True)]
    executor = ReferenceExecutor(program, constants)
    start = SegmentTrace(program, constants, executor, [words(first, network.scale)], 0, INTERVAL)
    after = SegmentTrace(program, constants, executor, start.state(INTERVAL), INTERVAL, INTERVAL)
    return Training(network, first, data, [start, after])


def terms_of(given: Training) -> Terms:
    return toy_market.terms_of(given.traces[0], STEPS, INTERVAL)


def pinned(ground: Ground, given: Training, keys: exact_prover.ExactKeys) -> bytes:
    """The submitter's next task takes proofs for these keys; returns its id."""
    submitter = ground.wallets["submitter"]
    verifier = create(ground.wallets["deployer"], "Groth16Verifier", keys.verifying_key.encode())
    layout = keccak256(tensor_types(given.network))
    pin = PinnedProofs(verifier, given.batches.root(), layout, given.network.scale)
    nonce = ground.market.registry.nonce(submitter.address)
    return ground.market.proven_steps.pin(submitter, nonce, terms_of(given), pin)


def proofs(given: Training, keys: exact_prover.ExactKeys, task_id: bytes) -> ExactRun:
    """Of all steps, each bound to the task."""
    contexts = [context_of(task_id, step) for step in range(STEPS)]
    return exact_prover.prove(keys, given.first, given.data, contexts)


def for_chain(given: Training, run: ExactRun) -> list[StepProof]:
    log = given.batches
    return [
        StepProof(step.data, tuple(log.inclusion(place)), step.after, step.proof.encode())
        for place, step in enumerate(run.steps)
    ]


def state_bytes(given: Training, step: int) -> bytes:
    """All words of the state before a step, as the chain takes them."""
    trace = given.traces[0] if step <= INTERVAL else given.traces[1]
    (tensor,) = trace.state(step)
    return tensor.astype("<u4").tobytes()
