"""Exact proofs of a party's own training (docs/spec/zk.md): made from its log, in the store and on chain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from pol.arithmetic.primitives import Words
from pol.chain.desks.proven_steps import StepProof, context_of
from pol.commitments.checkpoint_log import CheckpointLog
from pol.errors import ProtocolError
from pol.roles.party.proof_pins import batches
from pol.roles.party.replaying_party import LogDisputant
from pol.training.task.learning_proof import load_checkpoint
from pol.zk.circuits import Circuit, load_circuit
from pol.zk.exact import exact_prover
from pol.zk.exact.exact_proof_file import ExactProofs
from pol.zk.exact.exact_prover import ExactKeys
from pol.zk.fixed_point import Integers, dequantize, quantize
from pol.zk.network import StepNetwork
from pol.zk.network_program import tensor_types

AT_ONCE = 16
"""Steps that one transaction shows: some 5 million gas."""
FILE_LIMIT = 1 << 27
"""Bytes of a file of proofs; a step takes about 1.2 kB."""


@dataclass(frozen=True)
class ProvableTask:
    """The circuit of a task that asks for exact proofs, this party's keys, and the log of the data's hashes."""

    circuit: Circuit
    keys: ExactKeys
    batches: CheckpointLog


def proofs_name(task_id: bytes, first_step: int) -> str:
    """The name in the store of the proofs of a segment: the context of its first step says which task and step."""
    return f"proofs-{context_of(task_id, first_step).hex()}.json"


class StepProver(LogDisputant):
    """A party that proves the segments of its own log, for tasks whose submitter has pinned a verifier."""

    proving_keys: Path | None = None
    """The folder of keys that `pol zk` commands use. Without one, tasks that ask for exact proofs are left alone."""

    @cached_property
    def unproved(self) -> dict[tuple[bytes, int], str]:
        """Segments that this process tries to prove no more, and why. The game decides about them."""
        return {}

    @cached_property
    def seconds_of_proofs(self) -> dict[bytes, float]:
        """Seconds that the last proofs of a segment took, by task."""
        return {}

    @cached_property
    def _provable(self) -> dict[bytes, ProvableTask]:
        return {}

    @cached_property
    def _published(self) -> set[tuple[bytes, int]]:
        return set()

    def forget(self, task_id: bytes) -> None:
        """As `LogDisputant.forget`, with all that is known about proofs."""
        super().forget(task_id)
        self._provable.pop(task_id, None)
        self.seconds_of_proofs.pop(task_id, None)
        for key in [key for key in (*self.unproved, *self._published) if key[0] == task_id]:
            self.unproved.pop(key, None)
            self._published.discard(key)

    def asks_for_proofs(self, task_id: bytes) -> bool:
        """Whether the submitter of a task has pinned a verifier of exact proofs."""
        return self.market.proven_steps.pinned(task_id).is_pinned

    def provable(self, task_id: bytes) -> ProvableTask:
        """What this party proves a task's steps with."""
        if task_id not in self._provable:
            trusted = self.policy.require_verifier(self.market.proven_steps.pinned(task_id).verifier)
            circuit = load_circuit(trusted.circuit)
            asked = f"this task asks for exact proofs of the circuit {circuit.name} with the key {trusted.digest.hex()}"
            keys = self.proving_keys and exact_prover.made_keys(circuit, self.proving_keys)
            if not keys or keys.verifying_key.digest != trusted.digest:
                what = f"{self.proving_keys} holds {'another key' if keys else 'no key'} of that circuit"
                raise ProtocolError(
                    f"{asked}, and {what if self.proving_keys else 'this party has no proving keys'}: bring the folder "
                    f"groth16-{circuit.network.digest.hex()} of the setup that made that key into a folder of keys, "
                    "and name it (`pol run solver --proving-keys DIR`), or leave the task alone"
                )
            task = self.task(task_id)
            log = batches(task.constants, task.document.steps, circuit.network)
            self._provable[task_id] = ProvableTask(circuit, keys, log)
        return self._provable[task_id]

    def require_prover(self, task_id: bytes) -> None:
        """Check, before a bid, that this party can prove a task's steps if its submitter asks for proofs.

        Raises as `provable`.
        """
        if self.asks_for_proofs(task_id):
            self.provable(task_id)

    def has_published(self, task_id: bytes, segment: int) -> bool:
        """Whether the store has the proofs of a segment, by this process or another.

        Raises as `provable`.
        """
        return (task_id, segment) in self._published or self._read(task_id, segment) is not None

    def proofs(self, task_id: bytes, segment: int, seconds: float) -> ExactProofs:
        """Proofs of a segment's steps: those in the store, or new ones, which are then published there.

        Args:
            task_id: the task; this party has committed a log of it.
            segment: the segment.
            seconds: that new proofs may take.
        """
        found = self._read(task_id, segment)
        if found is not None:
            return found
        task, given = self.task(task_id), self.provable(task_id)
        network, first = given.circuit.network, segment * task.document.interval
        steps = range(first, first + task.document.interval)
        contexts = tuple(context_of(task_id, step) for step in steps)
        data = [list(_data(network, task.constants, step)) for step in steps]
        start, end = self._ends(task_id, segment)
        run = exact_prover.prove(given.keys, _vector(network, start), data, contexts, seconds)
        self.seconds_of_proofs[task_id] = run.seconds
        if not np.array_equal(dequantize(run.last, network.scale).astype(np.float32).view(np.uint32), end):
            raise ProtocolError(f"segment {segment} is proved to end elsewhere than in the log of this party")
        made = ExactProofs(given.circuit.name, given.keys.verifying_key, contexts, run.steps)
        self.store.replace(proofs_name(task_id, first), made.to_json())
        self._published.add((task_id, segment))
        return made

    def show(self, task_id: bytes, segment: int, proofs: ExactProofs) -> bytes:
        """Bring proofs of a segment on chain and tie both of its ends, all but what is there; the root of its end.

        Raises:
            Reverted: a proof doesn't hold.
        """
        desk, given, first = self.market.proven_steps, self.provable(task_id), proofs.steps[0].before
        begin = segment * len(proofs.steps)
        steps = [
            StepProof(step.data, tuple(given.batches.inclusion(begin + place)), step.after, step.proof.encode())
            for place, step in enumerate(proofs.steps)
        ]
        # The ties come first: the start's says how many steps are shown, also after a restart (`missing_on_chain`).
        for root, words in zip(self._roots(task_id, segment), self._ends(task_id, segment), strict=True):
            if not any(desk.tied(task_id, root)):
                desk.tie(self.wallet, task_id, tensor_types(given.circuit.network), words.astype("<u4").tobytes())
        for before in range(desk.proved(task_id, segment, first)[0], len(steps), AT_ONCE):
            desk.prove(self.wallet, task_id, segment, first, steps[before : before + AT_ONCE], before)
        return self._roots(task_id, segment)[1]

    def missing_on_chain(self, task_id: bytes, segment: int) -> tuple[int, int]:
        """Of a segment's steps and of its ends, how many aren't shown on chain."""
        desk = self.market.proven_steps
        tied = [desk.tied(task_id, root) for root in self._roots(task_id, segment)]
        shown = desk.proved(task_id, segment, tied[0])[0] if any(tied[0]) else 0
        return self.task(task_id).document.interval - shown, sum(not any(vector) for vector in tied)

    def _roots(self, task_id: bytes, segment: int) -> list[bytes]:
        checkpoints = self.proof(task_id).checkpoints
        return [checkpoints[segment + place].state_root for place in range(2)]

    def _ends(self, task_id: bytes, segment: int) -> list[Words]:
        """The words of the vector at both ends of a segment of the log."""
        task, checkpoints = self.task(task_id), self.proof(task_id).checkpoints
        return [load_checkpoint(self.store, task, checkpoints[segment + place])[0] for place in range(2)]

    def _read(self, task_id: bytes, segment: int) -> ExactProofs | None:
        """The proofs of a segment in the store; None if there are none, or of something else."""
        interval, given = self.task(task_id).document.interval, self.provable(task_id)
        name = proofs_name(task_id, segment * interval)
        if not self.store.holds(name):
            return None
        try:
            found = ExactProofs.from_json(self.store.read(name, limit=FILE_LIMIT))
        except ProtocolError:
            return None
        contexts = tuple(context_of(task_id, segment * interval + place) for place in range(interval))
        if found.contexts != contexts or found.key != given.keys.verifying_key:
            return None
        self._published.add((task_id, segment))
        return found


def _vector(network: StepNetwork, words: Words) -> Integers:
    return quantize(words.view(np.float32), network.scale).reshape(network.nodes[0].shape)


def _data(network: StepNetwork, constants: Sequence[Words], step: int) -> Iterator[Integers]:
    """The data of a step: constant i holds input i + 1 of all steps, one after the other."""
    for words, node in zip(constants, network.nodes[1 : len(network.inputs)], strict=True):
        numbers = words.reshape(-1).view(np.float32)[step * node.size : (step + 1) * node.size]
        yield quantize(numbers, network.scale).reshape(node.shape)
