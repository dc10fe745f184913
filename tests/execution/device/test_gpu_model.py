"""The bounds of docs/gpu.md: what they are made of."""

import re
from pathlib import Path

import pytest

from lab.benchmarks.figure import ROOT
from lab.benchmarks.gpu_model import (
    GPUS,
    NOT_RUN,
    captured_nodes,
    demand,
    gpu_figures,
    products_loop,
    step_seconds,
    tiles,
)
from lab.benchmarks.measured_models import GPTSize
from lab.kernels.device_nodes import contraction, table_gradient
from pol.execution.device.nvrtc import Compiler

SMALL = GPTSize(vocabulary=65, block=32, layers=2, heads=2, width=32)


def test_data_sheets() -> None:
    peaks = {gpu.name: round(gpu.flops / 1e12, 1) for gpu in GPUS}
    assert peaks == {"H100 SXM": 66.9, "H200 SXM": 66.9, "A100 SXM": 19.5, "RTX 4090": 82.6, "T4": 8.1}


def test_demand_of_nodes() -> None:
    product = demand(contraction(2, 64, 32, 16, ("bmk", "bkn"), False))
    assert product.flops == 2 * 2 * 64 * 32 * 16
    assert product.bytes == 4 * 2 * (64 * 32 + 64 * 16 + 16 * 32)
    assert demand(table_gradient(0)[0]).kernels == 3


def test_a_step_takes_longer_on_a_smaller_gpu() -> None:
    nodes = captured_nodes(SMALL, 2)
    parameters = 2 * 12 * SMALL.width**2 + SMALL.vocabulary * SMALL.width
    tokens = 2 * SMALL.block
    assert sum(demand(node).flops for node in nodes) > 6 * parameters * tokens
    seconds = [step_seconds(nodes, gpu, 1.0) for gpu in GPUS]
    assert seconds[-1] == max(seconds)
    assert step_seconds(nodes, GPUS[-1], 1e-3) > seconds[-1]


def test_tiles_fit(nvrtc: None, tmp_path: Path) -> None:
    gpu = GPUS[0]
    shares = []
    for _, threads, code in tiles(Compiler(gpu.arch, tmp_path)):
        assert 0.25 <= gpu.occupancy(code, threads) <= 1
        shares.append(gpu.share_of_peak(products_loop(code)))
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.7


def test_area(nvrtc: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    figures = gpu_figures()
    assert figures["registers_of_tile_128x128"].value <= 128
    assert figures["hashing_bound"].value > 20


def test_the_page_claims_no_measurement() -> None:
    page = (ROOT / "docs" / "gpu.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if re.match(r"\| (?!---)", line) and "measured |" not in line]
    assert len(rows) >= 12
    assert all(row.endswith(f"| {NOT_RUN} |") for row in rows)
