"""Exact steps on a device and tensors that are hashed where they lie: the bits and roots of the processor."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import AdamW

import chosen_rows
import small_task
from pol import Loop, Recorder, exact
from pol.commitments.array import Array, array_root, array_tree
from pol.errors import ProtocolError
from pol.execution.device.host import HostDevice
from pol.execution.device.roots import DeviceRoots
from pol.execution.device.tensor_words import buffer_of
from pol.execution.stock_torch.torch_executor import NativeExecutor
from pol.training.recorder.recorded_training import hashed_on
from pol.training.recorder.recorder_options import Checkpoints
from pol.training.state import tensors
from pol.training.task.task_recorder import TaskRecorder
from pol.training.task.task_training import train

STEPS, ROWS = 4, 8


def trained(**options: Any) -> tuple[list[float], dict[str, bytes]]:
    """Losses of each step; parameters, buffers and optimizer state at the end. The last batch is a smaller one."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Dropout(0.2), nn.Linear(16, 3))
    optimizer = AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    step = exact(
        model, functional.cross_entropy, optimizer, Loop(scheduler=schedule), steps=STEPS, check=False, **options
    )
    losses = []
    for number in range(STEPS):
        rows = ROWS if number < STEPS - 1 else ROWS // 2
        generator = torch.Generator().manual_seed(number)
        losses.append(float(step(torch.randn(rows, 6, generator=generator), torch.arange(rows) % 3)))
    tensors = {
        **model.state_dict(),
        **{f"{i}.{key}": t for i, own in optimizer.state_dict()["state"].items() for key, t in own.items()},
    }
    return losses, {name: tensor.numpy().tobytes() for name, tensor in tensors.items()}


@pytest.mark.long
def test_the_bytes_of_the_processor() -> None:
    assert trained(device="host") == trained(threads=1)


def test_names() -> None:
    with pytest.raises(ProtocolError, match="there is no device 'gpu'"):
        trained(device="gpu")


@pytest.fixture(scope="module")
def roots() -> DeviceRoots:
    return DeviceRoots(HostDevice())


def drawn(dtype: torch.dtype, *shape: int) -> Tensor:
    numbers = torch.randint(0, 2, shape, generator=torch.Generator().manual_seed(sum(shape)))
    return numbers.to(dtype)


@pytest.mark.parametrize("dtype", tensors.ELEMENT_TYPES, ids=str)
def test_every_element_type(roots: DeviceRoots, dtype: torch.dtype) -> None:
    """Of sizes whose last word is not full, too, and of parts, turned and scalar tensors."""
    whole = drawn(dtype, 130, 7)
    for tensor in (whole, whole[3], whole[1:, 2:5], whole.T, whole.reshape(-1)[5:10], drawn(dtype)):
        array = tensors.of_tensor(tensor, "x")
        buffer = buffer_of(tensor)
        assert roots.tensor_trees([buffer.size], [buffer]) == [array_tree(array.data)]


def test_taken_arrays_know_their_trees() -> None:
    take = hashed_on("host", least=100)
    large, small, empty = (take(tensor, "x") for tensor in (torch.randn(30, 9), torch.randn(3), torch.empty(0)))
    assert large.tree == array_tree(large.data)
    assert array_root(large) == array_root(Array(large.type, large.data))
    assert (small.tree, empty.tree) == (None, None)


@pytest.mark.parametrize(
    "options",
    chosen_rows.first([{"updates": True, "full_every": 2}, {}, {"background": False}], 1, others=pytest.mark.long),
)
def test_a_record_has_the_same_roots(tmp_path: Path, options: dict[str, bool]) -> None:
    def recorded(device: str) -> list[tuple[int, bytes]]:
        torch.manual_seed(3)
        model = nn.Linear(200, 100)
        optimizer = torch.optim.Adam(model.parameters())
        recorder = Recorder(
            f"file://{tmp_path}/{device}", model, optimizer, every=1, checkpoints=Checkpoints(device=device, **options)
        )
        recorder.resume()
        for step in range(3):
            optimizer.zero_grad()
            model(torch.full((4, 200), 1.0 + step)).square().mean().backward()
            optimizer.step()
            recorder.step()
        return [(each.step, each.root) for each in recorder.close().checkpoints]

    assert recorded("host") == recorded("cpu")


def test_a_copy_that_is_not_the_tensor_is_found(tmp_path: Path) -> None:
    """The hash is of the tensor: a checkpoint of other bytes doesn't open."""
    torch.manual_seed(3)
    model = nn.Linear(200, 100)
    recorder = Recorder(f"file://{tmp_path}", model, every=1, checkpoints=Checkpoints(background=False, device="host"))
    own = recorder._bytes_of

    def corrupted(tensor: Tensor, path: str) -> object:
        array = own(tensor, path)
        if array.tree is not None:
            array.data[0] ^= 1
        return array

    recorder._bytes_of = corrupted  # type: ignore[assignment]  # a copy that went wrong on its way
    recorder.resume()
    with pytest.raises(ProtocolError, match="isn't the one that the checkpoint commits to"):
        Recorder(f"file://{tmp_path}", nn.Linear(200, 100), every=1).resume()


def test_a_native_training_commits_by_the_roots_of_the_device(tmp_path: Path) -> None:
    store, task = small_task.published(tmp_path)
    here, there = TaskRecorder(store, task), TaskRecorder(store, task)
    roots: list[bytes] = []

    def on_root(root: bytes) -> None:
        roots.append(root)
        there.expect(root)

    train(task, NativeExecutor(task.aten), here)
    train(task, NativeExecutor(task.aten), there, device="host", on_root=on_root)
    assert there.checkpoints == here.checkpoints
    assert roots == [entry.state_root for entry in here.checkpoints[1:]]


def test_names_of_devices_that_hash() -> None:
    with pytest.raises(ProtocolError, match="there is no device 'gpu'"):
        Checkpoints(device="gpu")
