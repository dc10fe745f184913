"""Tasks whose steps are a circuit's, with a pinned verifier of exact proofs, and parties that work on them.

A submitter publishes a captured graph, and no graph lowers to a circuit's program yet. So the parts of these tasks are
published by hand, and parties read them without a graph (`load_circuit_task`); everything else is as for any task.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import numpy as np
from role_market import OFFER, Town, awarded

from pol.arithmetic.primitives import Words
from pol.chain.account.wallet import Wallet
from pol.chain.court.step_verifiers import deploy_exact
from pol.chain.desks.proven_steps import PinnedProofs
from pol.chain.desks.task_registry import Terms
from pol.commitments import canonical_json
from pol.commitments.keccak import keccak256
from pol.commitments.program_hash import program_hash
from pol.commitments.tensor import constants_root, state_root
from pol.graph.aten_graph import AtenGraph, AtenInput, AtenType, InputRole
from pol.graph.node_names import NodeName, ProgramNames
from pol.graph.step_program import StepProgram
from pol.graph.work_estimate import step_work
from pol.roles.party.policy import PUBLIC_CHAIN, Policy, TrustedKey
from pol.roles.party.proof_pins import batches
from pol.roles.solver.solver import Solver
from pol.roles.submitter.submitter import GWEI, Submitter, terms_of
from pol.training.storage.store import Store
from pol.training.task import task_tensors
from pol.training.task.task_document import DOCUMENT_LIMIT, ORDER, LoadedTask, TaskDocument
from pol.training.task.task_start import GIVEN
from pol.zk.circuits import load_circuit
from pol.zk.exact import exact_prover
from pol.zk.exact.exact_prover import ExactKeys
from pol.zk.fixed_point import dequantize, integers
from pol.zk.network_program import step_program, tensor_types

CIRCUIT = "linear_regression"
SEGMENTS, INTERVAL = 4, 3
STEPS = SEGMENTS * INTERVAL
EXACT = replace(OFFER, steps=STEPS, interval=INTERVAL, margin=0, looks=0, rerun_count=0, wei_per_work_unit=2000 * GWEI)


@dataclass(frozen=True)
class ProvenTown:
    """A town on a node, the folder of a circuit's keys, and its verifier, which the town's parties trust."""

    town: Town
    url: str
    root: Path
    keys: ExactKeys
    policy: Policy

    @classmethod
    def of(cls, town: Town, url: str, root: Path) -> ProvenTown:
        keys = exact_prover.setup(load_circuit(CIRCUIT), root)
        deployer = Wallet.create(town.connection, keccak256(b"deployer"))
        verifier = deploy_exact(deployer, keys.verifying_key.encode())
        trusted = {verifier: TrustedKey(CIRCUIT, keys.verifying_key.digest)}
        return cls(town, url, root, keys, replace(PUBLIC_CHAIN, trusted_verifiers=trusted))

    def solver(self, proving_keys: Path | None = None) -> Solver:
        solver = self.town.join(Solver, "t", self.policy)
        solver.proving_keys = proving_keys or self.root
        return solver

    def submitted(self, size: float = 1.0) -> bytes:
        """A pinned task whose data and first weights are below ``size``; returns its id."""
        network, random = load_circuit(CIRCUIT).network, Random(1)
        most = int(size * (1 << network.scale))

        def drawn(count: int, shape: tuple[int, ...]) -> Words:
            numbers = [random.randrange(-most, most) for _ in range(count * int(np.prod(shape)))]
            found = dequantize(integers(numbers, (count * shape[0], *shape[1:])), network.scale)
            return found.astype(np.float32).view(np.uint32)

        first, *data = (node.shape for node in network.nodes[: len(network.inputs)])
        state, constants = [drawn(1, first)], [drawn(STEPS, shape) for shape in data]
        submitter = self.town.join(Submitter, "s")
        terms = published(submitter.store, step_program(network, STEPS), constants, state)
        (verifier,) = self.policy.trusted_verifiers
        layout = keccak256(tensor_types(network))
        pin = PinnedProofs(
            self.town.connection.web3.to_checksum_address(verifier),
            batches(constants, STEPS, network).root(),
            layout,
            network.scale,
        )
        nonce = int(submitter.market.registry.read("nonces", submitter.wallet.address))
        task_id = submitter.market.proven_steps.pin(submitter.wallet, nonce, terms, pin)
        assert submitter.market.registry.submit(submitter.wallet, terms) == task_id
        return task_id

    def trained(self, size: float = 1.0) -> bytes:
        """A pinned task whose solver ``t`` has committed an honest log, and published no proof."""
        task_id, solver = self.submitted(size), self.solver()
        awarded(solver, task_id)
        solver.train(task_id)
        return task_id


def published(store: Store, program: StepProgram, constants: list[Words], state: list[Words]) -> Terms:
    """The parts of a task in a store, and terms that name them."""
    slot_types = [slot.type for slot in program.slots]
    nodes = tuple(NodeName(f"node_{place}", "", "") for place in range(len(program.nodes)))
    # The first data of each step stand for the order table: a circuit's steps read their data in order.
    names = ProgramNames(("theta",), (ORDER, *(f"data.{i}" for i in range(1, len(constants)))), nodes, {})
    document = TaskDocument(
        program=store.put(program.to_bytes()),
        program_hash=program_hash(program),
        names=store.put(canonical_json.encode(names.to_dict())),
        aten=store.put(b"none"),
        constants=store.put(task_tensors.encode(names.constants, program.constants, constants)),
        constants_root=constants_root(program.constants, constants),
        initial_state=store.put(task_tensors.encode(names.slots, slot_types, state)),
        initial_state_root=state_root(slot_types, state),
        start=GIVEN,
        steps=STEPS,
        interval=INTERVAL,
        work=step_work(program),
        model="",
        optimizer="",
    )
    return replace(
        terms_of(document.work, EXACT),
        program=document.program_hash,
        constants=document.constants_root,
        initial_state=document.initial_state_root,
        document=bytes.fromhex(store.put(document.encode())),
    )


def load_circuit_task(store: Store, digest: str, *, most: int | None = None) -> LoadedTask:
    """A task of `published`, as `pol.training.task.published_task.load` gives one with a graph."""
    document = TaskDocument.decode(store.get(digest, limit=DOCUMENT_LIMIT))
    program = StepProgram.from_bytes(store.get(document.program))
    names = ProgramNames.from_dict(canonical_json.decode(store.get(document.names), "the names"))
    constants = task_tensors.load(store, document.constants, names.constants, program.constants)
    state = task_tensors.load(store, document.initial_state, names.slots, [slot.type for slot in program.slots])
    none = AtenGraph((AtenInput(InputRole.STEP, "step", AtenType("int64", ())),), (), (), ())
    return LoadedTask(digest, document, program, names, none, constants, state, ())
