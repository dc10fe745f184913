"""Parties that execute on a device: the same profile, proof, claims and money as those of the processor."""

from pathlib import Path

import numpy as np
import pytest
from all_parties import Verifier, Whistleblower
from role_market import STEPS, Town, awarded, conclude, seated, settle, submitted, verified

import small_task
from pol.chain.desks.task_registry import TaskOutcome
from pol.execution.device.device_executor import DeviceExecutor
from pol.execution.device.host import HostDevice
from pol.execution.device.open_device import executors_on
from pol.roles.party.evidence import AttentiveDevice
from pol.roles.party.role import Role
from pol.roles.solver.solver import Solver, train_canonically
from pol.training.task.learning_proof import load_checkpoint
from pol.training.task.task_recorder import TaskRecorder

pytestmark = pytest.mark.long

HOST = executors_on("host")


def test_a_verdict_of_a_device_stands(town: Town) -> None:
    """A verifier with a device, and parties without one that find the same."""
    verifier, solver, other = town.join(Verifier, "v"), town.join(Solver, "t"), town.join(Verifier, "o")
    watchers: list[Whistleblower] = [town.join(Whistleblower, name) for name in ("w", "x")]
    on_device: list[Role] = [verifier, watchers[0]]
    for role in on_device:
        role.times.executors = HOST
    task_id, submitter = submitted(town)
    seated(verifier, task_id)
    assert verifier.profile(task_id).encode() == other.measure(task_id).encode()
    conclude(verifier, task_id)
    awarded(solver, task_id)
    solver.train(task_id)
    executor = verifier.executor(task_id, verifier.task(task_id), 0)
    assert isinstance(executor, AttentiveDevice)
    assert isinstance(executor.executor, DeviceExecutor)
    verdicts = verified(verifier, task_id)
    assert [verdict.claim for verdict in verdicts] == [verdict.claim for verdict in other.replay(task_id)]
    here, there = (watcher.trace(task_id, 1) for watcher in watchers)
    assert [here.state_root(step) for step in (STEPS - 1, STEPS)] == [
        there.state_root(step) for step in (STEPS - 1, STEPS)
    ]
    assert here.node_roots(STEPS - 1) == there.node_roots(STEPS - 1)
    settle(submitter, task_id)
    assert submitter.market.registry.task(task_id).outcome is TaskOutcome.ACCEPTED


class CountingDevice(HostDevice):
    """It notes the words that leave it."""

    def __init__(self) -> None:
        super().__init__()
        self.left: list[int] = []

    def get(self, buffer: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        self.left.append(buffer.size)
        return super().get(buffer, shape)


def test_a_solver_copies_its_state_at_checkpoints_alone(tmp_path: Path) -> None:
    """Their roots are hashed on the device: a hash for each slot."""
    store, task = small_task.published(tmp_path)
    device, recorders = CountingDevice(), [TaskRecorder(store, task) for _ in range(2)]
    roots: list[bytes] = []

    def on_root(root: bytes) -> None:
        roots.append(root)
        recorders[0].expect(root)

    train_canonically(
        task,
        recorders[0],
        executors=lambda program, constants: DeviceExecutor(program, constants, device),
        on_root=on_root,
    )
    train_canonically(task, recorders[1])
    assert recorders[0].checkpoints == recorders[1].checkpoints
    assert roots == [entry.state_root for entry in recorders[1].checkpoints[1:]]
    slots = [slot.numel for slot in task.slot_types]
    assert device.left == [8 * len(slots), *slots] * task.document.segments


def test_a_resumed_training_on_a_device(tmp_path: Path) -> None:
    store, task = small_task.published(tmp_path)
    whole, rest = TaskRecorder(store, task), TaskRecorder(store, task)
    train_canonically(task, whole)
    rest.take_over(whole.checkpoints[:8])
    state = load_checkpoint(store, task, whole.checkpoints[7])
    train_canonically(task, rest, (7, state), HOST, rest.expect)
    assert rest.checkpoints == whole.checkpoints
