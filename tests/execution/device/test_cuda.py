"""What can be known of the device for GPUs without one: its refusals."""

import pytest
import torch

from pol.errors import OperationalError
from pol.execution.device.cuda import MOST_BLOCKS, CudaDevice, check_blocks, check_driver, torch_errors

without_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")


@without_gpu
@pytest.mark.skipif(torch.version.cuda is not None, reason="torch is built with CUDA")
def test_torch_without_cuda() -> None:
    with pytest.raises(OperationalError, match=r"built without CUDA: install a build with it"):
        CudaDevice()


@without_gpu
def test_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    with pytest.raises(OperationalError, match=r"torch finds no GPU.*nvidia-smi"):
        CudaDevice()


def test_driver_of_an_older_cuda() -> None:
    check_driver(13000, 13)
    check_driver(13050, 12)
    with pytest.raises(OperationalError, match=r"the driver knows CUDA 12\.8, .*CUDA 13: update .*\[gpu-cuda12\]"):
        check_driver(12080, 13)


def test_grids() -> None:
    check_blocks(1)
    check_blocks(MOST_BLOCKS)
    for count in (0, -1, MOST_BLOCKS + 1):
        with pytest.raises(OperationalError, match="1 to 2,147,483,647 blocks"):
            check_blocks(count)


def test_full_memory() -> None:
    with pytest.raises(OperationalError, match=r"memory is full \(4\.0 GB more"), torch_errors(10**9):
        raise torch.OutOfMemoryError("CUDA out of memory")


def test_a_failed_kernel() -> None:
    with pytest.raises(OperationalError, match=r"start the process again.*misaligned"), torch_errors(0):
        raise torch.AcceleratorError("CUDA error: misaligned address")


def test_other_errors_pass() -> None:
    with pytest.raises(ValueError, match="ours"), torch_errors(0):
        raise ValueError("ours")
