"""Fused groups of rows stay within their memory: rows of the greatest length that is folded word by word (128)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import torch
from torch import nn
from pol.execution.cpu import CpuExecutor
from pol.graph.capture.functions import capture_function

width = {width}
norm = nn.LayerNorm(width)

def step(state, constants, number):
    given = state["x"] + 1
    return {{"x": given * torch.softmax(nn.functional.layer_norm(given, (width,)), -1) + given.square().sum(-1, True)}}

capture = capture_function(step, {{"x": torch.randn(512, width, generator=torch.Generator().manual_seed(0))}})
kept = [bytearray(size) for size in range(1, 4000, 7)]
executor = CpuExecutor(capture.program, capture.constants, threads=1)
for number in range(3):
    executor.advance(capture.state, number)
    kept = [bytearray(size) for size in range(1, 4000, 7)]
"""
CHECKED = Path("/usr/lib/x86_64-linux-gnu/libc_malloc_debug.so.0")
"""glibc's checks of the heap, where Debian puts them; without them a corrupted heap mostly ends the process anyway."""


@pytest.mark.parametrize("width", [127, 128, 129])
def test_rows_of_the_longest_sequence(width: int) -> None:
    environment = {**os.environ, "GLIBC_TUNABLES": "glibc.malloc.check=3"}
    if CHECKED.exists():
        environment["LD_PRELOAD"] = str(CHECKED)
    command = [sys.executable, "-c", PROGRAM.format(width=width)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-500:]
