"""Kernels are compiled for GPUs without one, once, and errors say what to do."""

import subprocess
import sys
from pathlib import Path

import pytest

from pol.errors import OperationalError
from pol.execution.device.kernel import Kernel
from pol.execution.device.nvrtc import Compiler, architecture, supported_architectures
from pol.execution.device.sources import translation_unit

ELF = b"\x7fELF"


def kernel(number: int) -> Kernel:
    body = f"POL_ALONE(t) {{ out[t] = x[t] + {number}u; }}"
    return Kernel(f"POL_KERNEL(KERNEL_NAME, 64, Word* out, const Word* x, Long step) {{ {body} }} POL_END\n", 64, 1)


def test_what_was_compiled_is_read_from_the_folder(nvrtc: None, tmp_path: Path) -> None:
    kernels = [kernel(number) for number in range(20)]
    first = Compiler("sm_80", tmp_path)
    units = first.units(kernels)
    assert [len(group) for group, _ in units] == [16, 4]
    assert all(code.startswith(ELF) for _, code in units)
    assert first.compiled == 2
    second = Compiler("sm_80", tmp_path)
    assert second.units(kernels) == units
    assert second.compiled == 0
    other = Compiler("sm_90", tmp_path)
    assert other.units(kernels) != units
    assert other.compiled == 2


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty"])
def test_a_damaged_file_is_compiled_again(nvrtc: None, tmp_path: Path, damage: str) -> None:
    source = translation_unit([kernel(1)])
    code = Compiler("sm_80", tmp_path).machine_code(source)
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    kept = file.read_bytes()
    file.write_bytes({"cut": kept[:-1], "flipped": kept[:-1] + bytes([kept[-1] ^ 1]), "empty": b""}[damage])
    again = Compiler("sm_80", tmp_path)
    assert again.machine_code(source) == code
    assert again.compiled == 1
    last = Compiler("sm_80", tmp_path)
    assert last.machine_code(source) == code
    assert last.compiled == 0


def test_only_the_user_may_write_to_the_folder(nvrtc: None, tmp_path: Path) -> None:
    Compiler("sm_80", tmp_path / "kernels")
    assert (tmp_path / "kernels").stat().st_mode & 0o777 == 0o700


def test_a_folder_that_cannot_be_made_costs_time_only(nvrtc: None, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert Compiler("sm_80", tmp_path / "file" / "kernels").machine_code(translation_unit([kernel(1)]))[:4] == ELF


def test_a_refused_source_says_why(nvrtc: None, tmp_path: Path) -> None:
    with pytest.raises(OperationalError, match="undefined_name"):
        Compiler("sm_80", tmp_path).machine_code("__device__ int x = undefined_name;")
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_architectures() -> None:
    supported = [75, 80, 86, 89, 90, 100, 120]
    expected = {
        (7, 5): "sm_75",
        (8, 0): "sm_80",
        (8, 7): "sm_86",
        (9, 0): "sm_90",
        (10, 3): "sm_100",
        (12, 1): "sm_120",
    }
    assert {capability: architecture(capability, supported) for capability in expected} == expected
    with pytest.raises(OperationalError, match=r"compute capability 7\.0, kernels need 7\.5"):
        architecture((7, 0), supported)
    with pytest.raises(OperationalError, match=r"no code for compute capability 11\.0.*newer"):
        architecture((11, 0), supported)


def test_the_installed_compiler_knows_the_architectures_of_the_audit(nvrtc: None) -> None:
    assert {75, 80, 86, 89, 90, 100, 120} <= set(supported_architectures())


@pytest.mark.parametrize("package", ["cuda.core", "cuda.bindings", "cuda"])
def test_what_is_not_installed_is_named(package: str) -> None:
    """In a process of its own, in which the package can't be imported."""
    program = f"""
import sys
sys.modules["{package}"] = None
from pol.errors import OperationalError
from pol.execution.device.nvrtc import Compiler, supported_architectures
try:
    supported_architectures(), Compiler("sm_80")
except OperationalError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install 'proof-of-learning[gpu]'" in done.stdout
