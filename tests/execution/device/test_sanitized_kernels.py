"""Kernels under AddressSanitizer and ThreadSanitizer: no read beyond a buffer, no race between blocks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

PROGRAM = Path(__file__).with_name("sanitized_kernels.py")


def run(what: str, sanitizer: str) -> tuple[int, str]:
    """In a process of its own: a sanitizer's runtime has to be loaded before everything else."""
    library = {"address": "libasan.so", "thread": "libtsan.so"}[sanitizer]
    found = subprocess.run(["g++", f"-print-file-name={library}"], capture_output=True, text=True, check=True)
    environment = {**os.environ, "LD_PRELOAD": found.stdout.strip(), "ASAN_OPTIONS": "detect_leaks=0"}
    environment["PYTHONPATH"] = str(PROGRAM.parents[2])
    command = [sys.executable, str(PROGRAM), what, f"-fsanitize={sanitizer}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=300)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("sanitizer", ["address", "thread"])
def test_kernels_of_every_class(sanitizer: str) -> None:
    assert run("good", sanitizer) == (0, "done\n")


@pytest.mark.parametrize(("sanitizer", "report"), [("address", "heap-buffer-overflow"), ("thread", "data race")])
def test_the_sanitizer_sees_faults(sanitizer: str, report: str) -> None:
    code, output = run("faulty", sanitizer)
    assert code != 0
    assert report in output
