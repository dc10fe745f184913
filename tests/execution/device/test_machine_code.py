"""The machine code of kernels holds nothing that gives other bits; without a GPU, for every architecture."""

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import pytest

import chosen_rows
from lab.kernels import audited_kernels
from lab.kernels.audited_kernels import Audited, audit
from lab.kernels.machine_code import disassembled, violations
from pol.arithmetic.primitives import Op
from pol.execution.device.nvrtc import Compiler
from pol.execution.device.sources import headers

ARCHITECTURES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")
MOST_REGISTERS = 128
"""Of a contraction: of 65,536 registers, 128 leave room for two of its largest blocks."""

pytestmark = [pytest.mark.usefixtures("nvrtc"), pytest.mark.long]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


def check(compiler: Compiler, audited: Iterable[Audited]) -> None:
    found = audit(compiler, audited)
    assert not found, next(iter(found.values()))


@pytest.mark.parametrize("arch", chosen_rows.named(ARCHITECTURES, "sm_90", others=pytest.mark.slow))
def test_a_sample_on_each_architecture(folder: Path, arch: str) -> None:
    every = [*audited_kernels.primitives(), *audited_kernels.contractions(), *audited_kernels.drawn(6)]
    check(Compiler(arch, folder), every[:: len(every) // 40])


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_kernel(folder: Path, arch: str) -> None:
    every = audited_kernels.primitives(), audited_kernels.contractions(), audited_kernels.drawn(100)
    check(Compiler(arch, folder), chain(*every, audited_kernels.models()))


@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
def test_contractions_stay_in_registers(folder: Path, arch: str) -> None:
    """The inner loop of the largest tile multiplies 64 pairs for each four loads of four words."""
    largest = next(iter(audited_kernels.contractions()))
    ((_, cubin),) = Compiler(arch, folder).units([largest.kernel])
    (code,) = disassembled(cubin).values()
    assert code.registers <= MOST_REGISTERS
    assert code.local_bytes == 0
    loop = max(code.loops(), key=lambda body: sum(i.base == "FFMA" for i in body))
    products = sum(i.base == "FFMA" for i in loop)
    loads = sum(i.base == "LDS" for i in loop)
    assert products == 512
    assert products == 16 * loads


@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
def test_hashing_stays_in_registers(folder: Path, arch: str) -> None:
    for code in audited_kernels.keccak(Compiler(arch, folder)).values():
        assert violations(code, []) == []
        assert code.local_bytes == 0
        assert code.counts["LDL"] + code.counts["STL"] == 0


FORBIDDEN = {
    "fused": ("number(a) * number(b) + number(c)", True, "fused products"),
    "flushed": ("__fdividef(number(a), number(b))", False, "approximations|flushed"),
    "approximate": ("__expf(number(a))", False, "approximations|flushed|fused"),
    "library": ("expf(number(a))", False, "approximations|flushed|fused"),
    "directed": ("__fadd_rz(number(a), number(b))", False, "directed"),
    "minimum": ("fminf(number(a), number(b))", False, "FMNMX"),
    "wide": ("float(double(number(a)) * double(number(b)) + double(number(c)))", False, "DFMA|DADD|DMUL|F2F"),
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_what_the_audit_finds(folder: Path, name: str) -> None:
    """Each forbidden thing, written on purpose."""
    expression, fused, message = FORBIDDEN[name]
    cubin = _compiled(folder, f"__float_as_uint({expression})", fused)
    assert any(part in sentence for sentence in _sentences(cubin, []) for part in message.split("|"))


def test_integer_division_by_a_variable_is_found(folder: Path) -> None:
    assert any("approximations" in sentence for sentence in _sentences(_compiled(folder, "a / b", False), []))


def test_an_atomic_addition_is_found(folder: Path) -> None:
    assert any("RED" in sentence for sentence in _sentences(_compiled(folder, "atomicAdd(out + b, a), c", False), []))


def test_a_selection_in_cudas_own_words_is_found(folder: Path) -> None:
    """Of a NaN it would keep no bit: the reason for `select` in words.h."""
    cubin = _compiled(folder, "number(a) < 1.0f ? 0x3f800000u : a", False)
    assert any("FMNMX" in sentence for sentence in _sentences(cubin, [Op.FLT, Op.SELECT]))
    assert not list(_sentences(_compiled(folder, "select(flt(a, 0x3f800000u), 0x3f800000u, a)", False), []))


def _sentences(cubin: bytes, ops: list[Op]) -> Iterator[str]:
    (code,) = disassembled(cubin).values()
    yield from violations(code, ops)


def _compiled(folder: Path, expression: str, fused: bool) -> bytes:
    source = f"""{headers()}
namespace pol {{
POL_KERNEL(audited, 64, Word* out, const Word* x, Long step) {{
    POL_ALONE(t) {{
        const Word a = x[t], b = x[t + 64], c = x[t + 128];
        (void)b, (void)c;
        out[t] = ({expression});
    }}
}}
POL_END
}}
"""
    if not fused:
        return Compiler("sm_90", folder).machine_code(source)
    from cuda.core import Program, ProgramOptions

    return bytes(Program(source, "c++", ProgramOptions(arch="sm_90", fma=True)).compile("cubin").code)
