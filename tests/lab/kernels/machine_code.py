"""Machine code of kernels, disassembled, and what it may hold: nothing that gives other bits than the program's."""

import re
import struct
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pol.arithmetic.primitives import Op
from pol.errors import OperationalError

_INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]+)\*/\s+(?:(@!?U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;")
_LABEL = re.compile(r"^([.$\w]+):")
_TARGET = re.compile(r"`\(([.$\w]+)\)")
_SECTION = "//--------------------- .text."
_SUBROUTINES = re.compile(r"\$__cuda_sm\w+_(div_rn_noftz_f32_slowpath|sqrt_rn_f32_slowpath)$")
_REGISTERS, _FRAME = 0x2F, 0x11
"""Attributes of a kernel in .nv.info: its registers, and the bytes of its local memory."""
_SECTION_HEADER = struct.Struct("<IIQQQQIIQQ")

FMA_OF_DIVISION, FMA_OF_ROOT = 5, 3
"""Of the sequences that the compiler puts in place of a division and of a root; rare operands go to subroutines."""


@dataclass(frozen=True)
class Instruction:
    """One instruction at its address."""

    address: int
    opcode: str
    operands: str

    @property
    def base(self) -> str:
        """The opcode without its modifiers."""
        return self.opcode.partition(".")[0]


@dataclass(frozen=True)
class MachineCode:
    """One kernel: its own instructions, and those of subroutines that the compiler added."""

    name: str
    registers: int
    local_bytes: int
    main: tuple[Instruction, ...]
    subroutines: dict[str, tuple[Instruction, ...]]
    labels: dict[str, int]

    @cached_property
    def counts(self) -> Counter[str]:
        """Instructions of the kernel itself, by opcode without modifiers."""
        return Counter(instruction.base for instruction in self.main)

    def loops(self) -> list[tuple[Instruction, ...]]:
        """The bodies of loops, innermost ones only."""
        ranges = set()
        for instruction in self.main:
            target = _TARGET.search(instruction.operands)
            start = self.labels.get(target[1], 1 << 62) if target and instruction.base == "BRA" else 1 << 62
            if start < instruction.address:
                ranges.add((start, instruction.address))
        inner = [r for r in ranges if not any(o != r and r[0] <= o[0] and o[1] <= r[1] for o in ranges)]
        return [tuple(i for i in self.main if first <= i.address <= last) for first, last in sorted(inner)]


def disassembled(cubin: bytes) -> dict[str, MachineCode]:
    """The kernels of a cubin by name. OperationalError if the disassembler is not installed or fails."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run([_disassembler(), "-c", file.name], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OperationalError(f"nvdisasm failed: {done.stderr[:500]}")
    elf = _Elf(cubin)
    registers, frames = elf.attribute(_REGISTERS), elf.attribute(_FRAME)
    kernels = {}
    for text in done.stdout.split(_SECTION)[1:]:
        name = text.split(None, 1)[0]
        parts, labels = _parts(name, text)
        kernels[name] = MachineCode(name, registers[name], frames[name], parts.pop(name), parts, labels)
    return kernels


def violations(code: MachineCode, ops: Sequence[Op], straight: bool = False) -> list[str]:
    """What a kernel's machine code holds that its scalar program doesn't ask for; one sentence each.

    ``ops`` are the program's primitives; ``straight`` says that they are executed once, so that counts are bounds.
    """
    counts, found = code.counts, []
    asked = Counter(ops)
    divisions, roots = counts["FCHK"], sum(i.opcode == "MUFU.RSQ" for i in code.main)
    if (divisions and not asked[Op.FDIV]) or (roots and not asked[Op.FSQRT]):
        found.append(f"{divisions} divisions and {roots} roots for {asked[Op.FDIV]} and {asked[Op.FSQRT]}")
    fused = sum(i.base in ("FFMA", "FFMA32I") for i in code.main) + 2 * counts["FFMA2"]
    own = fused - FMA_OF_DIVISION * divisions - FMA_OF_ROOT * roots
    if own > 0 and (not asked[Op.FFMA] or (straight and own > asked[Op.FFMA])):
        found.append(f"{own} fused products and sums, the program has {asked[Op.FFMA]}")
    flushing = [i.opcode for i in code.main if ".FTZ" in i.opcode]
    if any(opcode != "FMUL.FTZ" for opcode in flushing) or len(flushing) > 2 * roots:
        found.append(f"subnormals flushed: {sorted(set(flushing))}")
    approximate = Counter(i.opcode for i in code.main if i.base == "MUFU")
    if set(approximate) - {"MUFU.RCP", "MUFU.RSQ"} or approximate["MUFU.RCP"] > divisions:
        found.append(f"approximations outside of divisions and roots: {dict(approximate)}")
    directed = {i.opcode for i in code.main if i.base in ("FFMA", "FADD", "FMUL") and re.search(r"\.R[MPZ]", i.opcode)}
    if directed:
        found.append(f"directed rounding: {sorted(directed)}")
    halves = [i for i in code.main if i.base in ("HFMA2", "HADD2", "HMUL2") and not _moves(i)]
    if halves:
        found.append(f"binary16 arithmetic: {halves[0].opcode} {halves[0].operands}")
    foreign = set(counts) & _FOREIGN - (_EXACT_PRODUCTS if asked[Op.MUL] and asked[Op.ADD] else frozenset())
    if foreign:
        found.append(f"instructions that no primitive needs: {sorted(foreign)}")
    unknown = [name for name in code.subroutines if not _SUBROUTINES.search(name)]
    if unknown:
        found.append(f"subroutines: {unknown}")
    return found


_PRODUCTS = "HMMA IMMA BMMA DMMA QMMA OMMA HGMMA IGMMA QGMMA BGMMA UTCHMMA UTCIMMA UTCQMMA".split()  # noqa: SIM905 - one word for each
_OTHERS = "RED REDG REDUX ATOM ATOMG ATOMS FMNMX FMNMX3 DADD DMUL DFMA FSWZADD FRND F2F".split()  # noqa: SIM905 - one word for each
_FOREIGN = frozenset([*_PRODUCTS, *_OTHERS])
"""Products of matrices, atomics and reductions of a warp, the other minimum, binary64, other roundings."""
_EXACT_PRODUCTS = frozenset(["IMMA"])
"""Products of matrices of bytes, whose sums wrap: the same in any order."""


def _moves(instruction: Instruction) -> bool:
    """Whether it only moves a constant: 0 times 0 plus two halves."""
    return bool(re.match(r"U?R\d+, -?U?RZ, -?U?RZ, ", instruction.operands))


def _parts(name: str, text: str) -> tuple[dict[str, tuple[Instruction, ...]], dict[str, int]]:
    """The instructions of a section by the symbol that they follow, and the addresses of labels."""
    parts: dict[str, list[Instruction]] = {name: []}
    labels: dict[str, int] = {}
    waiting: list[str] = []
    current = name
    for line in text.splitlines():
        label, match = _LABEL.match(line), _INSTRUCTION.match(line)
        if label:
            waiting.append(label[1])
            if label[1].startswith("$"):
                current = label[1]
                parts[current] = []
        elif match:
            labels |= dict.fromkeys(waiting, int(match[1], 16))
            waiting = []
            if match[3] != "NOP":
                parts[current].append(Instruction(int(match[1], 16), match[3], match[4].replace(".reuse", "")))
    return {key: tuple(value) for key, value in parts.items()}, labels


class _Elf:
    """The parts of a 64-bit ELF file that tell what a kernel needs."""

    def __init__(self, data: bytes) -> None:
        (offset,) = struct.unpack_from("<Q", data, 40)
        entry, count, names = struct.unpack_from("<HHH", data, 58)
        headers = [_SECTION_HEADER.unpack_from(data, offset + entry * i) for i in range(count)]

        def text(table: int, at: int) -> str:
            start = headers[table][4] + at
            return data[start : data.index(0, start)].decode()

        self._data = data
        self._sections = {text(names, header[0]): header for header in headers}
        symbols = self._section(".symtab")
        strings = self._sections[".symtab"][6]
        self._symbols = [text(strings, struct.unpack_from("<I", symbols, at)[0]) for at in range(0, len(symbols), 24)]

    def _section(self, name: str) -> bytes:
        header = self._sections[name]
        return self._data[header[4] : header[4] + header[5]]

    def attribute(self, number: int) -> dict[str, int]:
        """An attribute of .nv.info by symbol: a format, a number, then (with format 4) a size, a symbol and a value."""
        info, at, found = self._section(".nv.info"), 0, {}
        while at < len(info):
            form, attribute, size = struct.unpack_from("<BBH", info, at)
            if form == 4 and attribute == number:
                symbol, value = struct.unpack_from("<II", info, at + 4)
                found[self._symbols[symbol]] = value
            at += 4 + (size if form == 4 else 0)
        return found


def _disassembler() -> str:
    """The path of nvdisasm."""
    try:
        from cuda.pathfinder import find_nvidia_binary_utility
    except ModuleNotFoundError as error:
        raise OperationalError("there is no disassembler: pip install 'proof-of-learning[dev]'") from error
    path = find_nvidia_binary_utility("nvdisasm")
    if path is None or not Path(path).is_file():
        raise OperationalError("there is no disassembler: pip install nvidia-cuda-nvdisasm")
    return str(path)
