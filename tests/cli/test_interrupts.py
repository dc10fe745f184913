"""An interrupt ends a command, whoever takes it for something else, and what cleans up behind it is left alone."""

import subprocess
import sys
from pathlib import Path

import pytest

PROLOGUE = """
import os, signal, time
import pol.cli.main as entry

def interrupt():
    os.kill(os.getpid(), {number})
    time.sleep(0.01)
"""
SWALLOWED = """
def run():
    for _ in range(2):
        try:
            interrupt()
        except BaseException:
            pass
    time.sleep(300)
    return 0
"""
DISGUISED = """
import click

class Field:
    def __set_name__(self, owner, name):
        interrupt()

@click.command()
def command():
    class Owner:
        field = Field()

import pol.cli.commands
pol.cli.commands.commands = command
run = entry._run
"""
LOST = """
import click

def half_import():
    try:
        interrupt()
    except BaseException:
        pass
    raise ImportError("a module without a part of itself")

@click.command()
def command():
    half_import()

import pol.cli.commands
pol.cli.commands.commands = command
run = entry._run
"""
LOST_EARLY = LOST + "run = half_import"
CLEANING_UP = """
def run():
    try:
        interrupt()
    finally:
        time.sleep(1.5)
        interrupt()
        open("clean", "w").close()
"""


@pytest.mark.parametrize(
    "program",
    [SWALLOWED, DISGUISED, LOST, LOST_EARLY, CLEANING_UP],
    ids=["swallowed", "disguised", "lost", "lost early", "cleaning up"],
)
@pytest.mark.parametrize("number", ["signal.SIGINT", pytest.param("signal.SIGTERM", marks=pytest.mark.long)])
def test_interrupts(tmp_path: Path, program: str, number: str) -> None:
    text = PROLOGUE.format(number=number) + program + "\nentry._run = run\nentry.main()\n"
    done = subprocess.run([sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "pol: interrupted; nothing was left half-written\n")
    assert (tmp_path / "clean").exists() == (program is CLEANING_UP)
