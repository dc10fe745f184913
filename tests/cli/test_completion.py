"""The tab key."""

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli_runner import Said, pol
from pol.cli.commands import commands

POL = Path(sys.executable).parent / "pol"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_for_each_shell(shell: str) -> None:
    assert pol("completion", shell) == Said(0, match="_POL_COMPLETE")


def test_another_shell() -> None:
    assert pol("completion", "cmd") == Said(2, match="bash")


@pytest.mark.parametrize(
    ("words", "expected"), [("pol expl", {"explain", "explore"}), ("pol run verifier --fee", {"--fee-cap"})]
)
def test_bash_completes(words: str, expected: set[str]) -> None:
    asked = {"_POL_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    said = CliRunner().invoke(commands, env=asked, prog_name="pol")
    assert said.exit_code == 0
    assert {line.split(",")[1] for line in said.stdout.splitlines()} == expected


def test_bash_itself(tmp_path: Path) -> None:
    """The script is sourced, and the function that it defines fills in what bash then offers."""
    program = f"""
    eval "$({POL} completion bash)"
    COMP_WORDS=(pol mon); COMP_CWORD=1
    PATH={POL.parent}:$PATH
    _pol_completion pol
    echo "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.split() == ["monitor"]
