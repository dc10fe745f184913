"""What machine code and a roofline let one expect of a GPU: `PYTHONPATH=tests python -m lab.benchmarks.gpu_model`.

Nothing here is a measurement. The document is docs/gpu.md.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from lab.benchmarks.figure import Figure
from lab.benchmarks.measured_models import GPT, GPTSize, next_token_loss
from lab.kernels import audited_kernels
from lab.kernels.device_nodes import contraction
from lab.kernels.machine_code import Instruction, MachineCode, disassembled
from pol.execution.device.contraction_source import TILES, contraction_kernel, contraction_of
from pol.execution.device.keyed_source import keyed_fold_of
from pol.execution.device.loops import loops_of
from pol.execution.device.nvrtc import Compiler, cache_folder
from pol.graph.capture import capture_shapes
from pol.graph.node import Node

NOT_RUN = "not yet run on hardware"
LAUNCH_SECONDS = 3e-6
"""Of one kernel in a queue of them."""
INSTRUCTIONS_OF_A_TERM = 8
"""Of an address, a load and a loop, beside the scalar program's."""
PERMUTATIONS, LEAF_BYTES, ROUNDS = 3, 256, 24


@dataclass(frozen=True)
class Gpu:
    """Figures of a data sheet; lanes are per multiprocessor and cycle."""

    name: str
    arch: str
    multiprocessors: int
    gigahertz: float
    float_lanes: int
    integer_lanes: int
    gigabytes_per_second: float
    shared_bytes: int
    warps: int

    @property
    def flops(self) -> float:
        """Of fused products and sums in binary32, at the boost clock."""
        return self.multiprocessors * self.float_lanes * 2 * self.gigahertz * 1e9

    def occupancy(self, code: MachineCode, threads: int) -> float:
        """The share of warps that a multiprocessor holds at once, by registers and shared memory."""
        warps = threads // 32
        by_registers = 65_536 // (-(-max(code.registers, 1) // 8) * 8 * 32 * warps)
        by_memory = self.shared_bytes // code.shared_bytes if code.shared_bytes else by_registers
        return min(by_registers, by_memory, self.warps // warps) * warps / self.warps

    def share_of_peak(self, loop: Sequence[Instruction]) -> float:
        """Of the fused products and sums in a loop: a scheduler issues one instruction a cycle."""
        products = sum(i.base == "FFMA" for i in loop)
        pipe = products * 128 / self.float_lanes
        shared = sum(i.base == "LDS" for i in loop) * 4 * 2  # four schedulers share it; half of the words are the same
        return pipe / max(pipe, len(loop), shared)


GPUS = (
    Gpu("H100 SXM", "sm_90", 132, 1.98, 128, 64, 3_350, 228 * 1024, 64),
    Gpu("H200 SXM", "sm_90", 132, 1.98, 128, 64, 4_800, 228 * 1024, 64),
    Gpu("A100 SXM", "sm_80", 108, 1.41, 64, 64, 2_039, 164 * 1024, 64),
    Gpu("RTX 4090", "sm_89", 128, 2.52, 128, 64, 1_008, 100 * 1024, 48),
    Gpu("T4", "sm_75", 40, 1.59, 64, 64, 320, 64 * 1024, 32),
)
SIZES = {
    "GPT-2, 124 million parameters, 8 x 1,024 tokens": (GPTSize(50_257, 1024, 12, 12, 768), 8),
    "GPT-2 XL, 1.6 billion parameters, 8 x 1,024 tokens": (GPTSize(50_257, 1024, 48, 25, 1600), 8),
}


@dataclass(frozen=True)
class Demand:
    """What a node asks of a GPU: fused products and sums of contractions, other instructions, bytes of memory."""

    flops: float
    instructions: float
    bytes: float
    kernels: int


def demand(node: Node) -> Demand:
    """Of one node, by its kernels. Tensors are read once and written once."""
    loops = loops_of(node)
    work, body = node.type.numel * node.terms, len(node.body.instructions)
    moved = 4 * (node.type.numel + sum(operand.type.numel for operand in node.operands))
    if contraction_of(node, loops) is not None:
        return Demand(2 * work, 0, moved, 1)
    if keyed_fold_of(node, loops) is not None:
        terms = math.prod(loops.fold)
        return Demand(0, 32 * (node.type.numel + terms) * (body + INSTRUCTIONS_OF_A_TERM), moved + 100 * terms, 3)
    return Demand(0, work * (body + INSTRUCTIONS_OF_A_TERM), moved, 1)


def step_seconds(nodes: Iterable[Node], gpu: Gpu, share: float) -> float:
    """A step's time by the roofline: each node takes as long as the scarcest of what it needs."""
    issued = gpu.multiprocessors * 128 * gpu.gigahertz * 1e9
    total = 0.0
    for needed in map(demand, nodes):
        compute = needed.flops / (gpu.flops * share) + needed.instructions / issued
        total += max(compute, needed.bytes / (gpu.gigabytes_per_second * 1e9)) + LAUNCH_SECONDS * needed.kernels
    return total


def hashing_bytes_per_second(code: MachineCode, gpu: Gpu) -> float:
    """Of leaves and the nodes over them, by the integer instructions of the permutation's rounds."""
    loop = max(code.loops(), key=len)
    a_round = sum(i.base in ("LOP3", "SHF") for i in loop) / 2  # two rounds are one turn of the loop
    turns = PERMUTATIONS * ROUNDS * a_round / LEAF_BYTES
    return gpu.multiprocessors * gpu.integer_lanes * gpu.gigahertz * 1e9 / turns


def tiles(compiler: Compiler) -> list[tuple[str, int, MachineCode]]:
    """The name, the threads and the code of each tile, for matrices whose sizes it divides."""
    node = contraction(1, 1024, 1024, 1024, ("bmk", "bkn"), False)
    loops = loops_of(node)
    found = contraction_of(node, loops)
    assert found is not None
    kernels = [contraction_kernel(node, loops, found, tile) for tile in TILES]
    codes = {name: code for _, cubin in compiler.units(kernels) for name, code in disassembled(cubin).items()}
    names = [f"{tile.rows} x {tile.columns}, {tile.depth} terms" for tile in TILES]
    return [(name, kernel.threads, codes[kernel.name]) for name, kernel in zip(names, kernels, strict=True)]


def products_loop(code: MachineCode) -> tuple[Instruction, ...]:
    """The loop with the most fused products and sums."""
    return max(code.loops(), key=lambda loop: sum(i.base == "FFMA" for i in loop))


def captured_nodes(size: GPTSize, batch: int) -> Sequence[Node]:
    """The nodes of a training step with AdamW; no memory is taken for the model."""
    with torch.device("meta"):
        model = GPT(size)
    tokens = torch.zeros(batch, size.block, dtype=torch.int64)
    order = torch.zeros(2, batch, dtype=torch.int64)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    return capture_shapes(model, next_token_loss, optimizer, (tokens, tokens), order).program.nodes


def document(folder: Path) -> Iterator[str]:
    """The lines of docs/gpu.md."""
    yield from _HEAD.splitlines()
    yield "| kernel | registers | shared memory | occupancy, H100 | inner loop | products, share | measured |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    compiled = {gpu.arch: tiles(Compiler(gpu.arch, folder)) for gpu in GPUS}
    hashing = {gpu.arch: audited_kernels.keccak(Compiler(gpu.arch, folder)) for gpu in GPUS}
    first = GPUS[0]
    for name, threads, code in compiled[first.arch]:
        loop = products_loop(code)
        mix = Counter(i.base for i in loop)
        parts = f"{mix['FFMA']} FFMA, {mix['LDS']} LDS.128, {len(loop) - mix['FFMA'] - mix['LDS']} others"
        yield _row(f"contraction {name}", code, first.occupancy(code, threads), parts, f"{mix['FFMA'] / len(loop):.0%}")
    for name, code in hashing[first.arch].items():
        loop = max(code.loops(), key=len)
        mix = Counter(i.base for i in loop)
        parts = f"{mix['LOP3']} LOP3, {mix['SHF']} SHF, {len(loop) - mix['LOP3'] - mix['SHF']} others (two rounds)"
        yield _row(name.replace("_", " "), code, first.occupancy(code, 256), parts, "")
    yield from ["", "## Bounds by GPU", ""]
    yield "| GPU | FFMA peak, TFLOP/s | largest tile, of peak | maps, GB/s | hashing, GB/s | measured |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for gpu in GPUS:
        share = gpu.share_of_peak(products_loop(compiled[gpu.arch][0][2]))
        speed = hashing_bytes_per_second(hashing[gpu.arch]["hash_leaf_trees"], gpu) / 1e9
        yield (
            f"| {gpu.name} | {gpu.flops / 1e12:.1f} | {share:.0%} | {gpu.gigabytes_per_second:,.0f} | "
            f"{min(speed, gpu.gigabytes_per_second):,.0f} | {NOT_RUN} |"
        )
    yield from ["", "## Training steps", "", "Seconds of one step by the same model, kernel after kernel.", ""]
    yield "| step | nodes | contractions, TFLOP | " + " | ".join(gpu.name for gpu in GPUS) + " | measured |"
    yield "| --- | --- | --- |" + " --- |" * (len(GPUS) + 1)
    for name, (size, batch) in SIZES.items():
        nodes = captured_nodes(size, batch)
        flops = sum(demand(node).flops for node in nodes)
        seconds = [step_seconds(nodes, gpu, gpu.share_of_peak(products_loop(compiled[gpu.arch][0][2]))) for gpu in GPUS]
        cells = " | ".join(f"{value:.2f}" for value in seconds)
        yield f"| {name} | {len(nodes):,} | {flops / 1e12:.1f} | {cells} | {NOT_RUN} |"


def gpu_figures() -> dict[str, Figure]:
    """Machine code of the kernels for an H100, and bounds that follow from it; nothing of it is measured."""
    compiler, gpu = Compiler("sm_90", cache_folder()), GPUS[0]
    figures = {}
    for name, _, code in tiles(compiler):
        loop, tile = products_loop(code), name.partition(",")[0].replace(" ", "")
        figures[f"registers_of_tile_{tile}"] = Figure(code.registers, "registers a thread")
        figures[f"share_of_peak_of_tile_{tile}"] = Figure(gpu.share_of_peak(loop), "of FFMA peak, model")
    code = audited_kernels.keccak(compiler)["hash_leaf_trees"]
    figures["hashing_bound"] = Figure(hashing_bytes_per_second(code, gpu) / 1e9, "GB/s, model")
    return figures


def _row(name: str, code: MachineCode, occupancy: float, parts: str, share: str) -> str:
    spilled = f" ({code.local_bytes} bytes spilled)" if code.local_bytes else ""
    return (
        f"| {name} | {code.registers}{spilled} | {code.shared_bytes:,} bytes | {occupancy:.0%} | {parts} | {share} | "
        f"{NOT_RUN} |"
    )


_HEAD = """# GPUs: what machine code and a roofline say

Written by `PYTHONPATH=tests python -m lab.benchmarks.gpu_model > docs/gpu.md`, without a GPU. Nothing here is a
measurement: registers and instructions are read from machine code that NVRTC makes; times are bounds from data sheets.
A kernel can't be faster; how near it comes, only hardware can say. [Why these tools](adr/0047-gpus-through-nvrtc.md).

- **Contractions**: a scheduler issues one instruction a cycle, so the share of FFMA in the loop bounds the speed where
  a multiprocessor has 128 lanes. With 64 lanes (A100, T4) the lanes are the bound.
- **Maps** move bytes: each tensor once.
- **Hashing**: three permutations for 256 bytes, each 24 rounds of LOP3 and SHF on 64 lanes a multiprocessor.
- **Steps**: per node the greater of its instructions and its bytes, and 3 microseconds for the launch.

## Kernels

"""

if __name__ == "__main__":
    sys.stdout.write("\n".join([*document(cache_folder()), ""]))
