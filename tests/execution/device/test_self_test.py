"""The self-test of devices: its constants are the reference's, and it finds a device that is wrong.

Kernels are compiled for GPUs without one, once, and errors say what to do.
"""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from lab.kernels import self_test_digests
from pol.arithmetic.primitives import Op
from pol.errors import OperationalError, ProtocolError
from pol.execution.device import host, nvrtc
from pol.execution.device.contraction_source import contraction_of
from pol.execution.device.device import Device, Kernel
from pol.execution.device.host import HostDevice
from pol.execution.device.keyed_source import keyed_fold_of
from pol.execution.device.loops import loops_of
from pol.execution.device.nvrtc import Compiler, architecture, supported_architectures
from pol.execution.device.open_device import executors_on, open_device, require_device_name
from pol.execution.device.planned_kernels import byte_kernels
from pol.execution.device.self_test import first_use
from pol.execution.device.self_test.first_use import require_tested, source_digest
from pol.execution.device.self_test.known_digests import CLASSES, PRIMITIVES, TRAININGS, TREES
from pol.execution.device.self_test.self_test import TREE_SIZES, self_test, trainings
from pol.execution.device.self_test.subjects import CpuSubject, DeviceSubject
from pol.execution.device.self_test.tested_nodes import SHORT, classes
from pol.execution.device.sources import translation_unit

pytestmark = pytest.mark.long

UNFUSED = "-D__builtin_fmaf(a,b,c)=((a)*(b)+(c))"


@pytest.fixture(scope="module")
def unfused_device() -> HostDevice:
    """It rounds the product of a fused multiply-add, as a shading language may."""
    return HostDevice(["-O0", UNFUSED])


@pytest.mark.parametrize("op", Op)
def test_constants_of_primitives(op: Op) -> None:
    assert self_test_digests.primitive_digest(op, SHORT) == PRIMITIVES[op.name][0]


def test_constants_of_classes() -> None:
    assert {tested.name: self_test_digests.node_digest(tested) for tested in classes()} == CLASSES


def test_constants_of_trees() -> None:
    assert {size: self_test_digests.tree_digest(size) for size in TREE_SIZES} == TREES


@pytest.mark.slow
def test_constants_of_trainings_and_of_the_full_form() -> None:
    assert {each.name: self_test_digests.training_digests(each) for each in trainings()} == TRAININGS
    assert all(check.passed for check in self_test(CpuSubject(), short=False))


def test_nodes_are_of_their_classes() -> None:
    """A change of the planner must not leave a class of kernels without a test."""
    contractions, keyed = set(), set()
    for tested in classes():
        loops = loops_of(tested.node)
        if contraction_of(tested.node, loops) is not None:
            contractions.add(tested.name)
        elif keyed_fold_of(tested.node, loops) is not None:
            keyed.add(tested.name)
    assert contractions == {name for name in CLASSES if name.startswith(("contraction", "convolution"))}
    assert keyed == {"keyed fold"}
    (of_bytes,) = (tested for tested in classes() if tested.name == "contraction of bytes")
    loops = loops_of(of_bytes.node)
    found = contraction_of(of_bytes.node, loops)
    assert found is not None
    assert byte_kernels(of_bytes.node, loops, found) is not None
    assert all((tensor + 128 < 256).all() for tensor in of_bytes.tensors)


def test_processor() -> None:
    assert [check for check in self_test(CpuSubject(), short=True) if not check.passed] == []


def test_device(device: Device) -> None:
    shown = []
    checks = self_test(DeviceSubject(device), short=True, seen=shown.append)
    assert shown == checks
    assert [check for check in checks if not check.passed] == []
    names = {check.name for check in checks}
    assert {*PRIMITIVES, *CLASSES} <= names
    assert "convolution, tile 128 x 128" in names


def test_a_product_that_is_rounded_is_found(unfused_device: HostDevice) -> None:
    failed = {check.name: check.detail for check in self_test(DeviceSubject(unfused_device), True) if not check.passed}
    assert {"FFMA", "convolution", "contraction of numbers 2 x 137 x 67 x 130", "training of gpt"} <= set(failed)
    assert not {"FADD", "FMUL", "row sums in 32 lanes", "tree of 65 words"} & set(failed)
    assert "of 65536 words differ: [" in failed["FFMA"]
    assert failed["training of gpt"].startswith("node ")


def test_units_that_multiply_bytes_otherwise_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but the class of bytes runs on them: other integers are no bytes."""

    def without_signs(kernels: Sequence[Kernel]) -> str:
        return translation_unit(kernels).replace("signed char", "unsigned char")

    monkeypatch.setattr(host, "translation_unit", without_signs)
    failed = [check.name for check in self_test(DeviceSubject(HostDevice(["-O0"])), True) if not check.passed]
    assert failed == ["contraction of bytes"]


@pytest.mark.slow
def test_first_use(
    host_device: HostDevice, unfused_device: HostDevice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test that was passed isn't repeated with the same device, packages, driver and sources, but with any other."""
    with pytest.raises(OperationalError, match="host does not give the defined bits: FFMA"):
        require_tested(unfused_device, "1.0", tmp_path)
    assert list(tmp_path.iterdir()) == []
    require_tested(host_device, "1.0", tmp_path)
    (passed,) = tmp_path.iterdir()
    assert passed.read_text() == f"host\n{host_device.packages}\n1.0\n{source_digest()}\n"
    require_tested(unfused_device, "1.0", tmp_path)  # of the same name: nothing runs
    with pytest.raises(OperationalError, match="defined bits"):
        require_tested(unfused_device, "1.1", tmp_path)
    with pytest.raises(OperationalError, match="defined bits"):
        require_tested(unfused_device, "", tmp_path)  # a driver of no known version may be any
    monkeypatch.setattr(HostDevice, "packages", "numpy 0.1")
    with pytest.raises(OperationalError, match="defined bits"):
        require_tested(unfused_device, "1.0", tmp_path)
    monkeypatch.undo()
    passed.write_text("host\n1.0\n")
    with pytest.raises(OperationalError, match="defined bits"):
        require_tested(unfused_device, "1.0", tmp_path)


def test_a_folder_that_can_not_be_written_to(host_device: HostDevice, tmp_path: Path) -> None:
    """The device was tested; the next process tests it again."""
    (tmp_path / "file").touch()
    require_tested(host_device, "1.0", tmp_path / "file" / "devices")


def test_the_cache_folder_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Never the working directory: what lies in the folder of kernels is executed."""
    for named, folder in (("", Path.home() / ".cache"), (str(tmp_path), tmp_path)):
        monkeypatch.setenv("XDG_CACHE_HOME", named)
        assert first_use.cache_folder() == folder / "pol" / "devices"
        assert nvrtc.cache_folder() == folder / "pol" / "kernels"


def test_names() -> None:
    for name in ("gpu", "cuda:", "cuda:-1", "cuda:1000", "CUDA", "cpu:0", ""):
        with pytest.raises(ProtocolError, match="there is no device"):
            require_device_name(name)
        with pytest.raises(ProtocolError, match="there is no device"):
            executors_on(name)
    assert isinstance(open_device("host"), HostDevice)
    assert open_device("host") is open_device("host")
    with pytest.raises(ProtocolError, match="no device"):
        open_device("cpu")


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
