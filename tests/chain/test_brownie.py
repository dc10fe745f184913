"""The Brownie project in an environment of its own: compile, deploy, test, on a real node."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from anvil_node import anvil_node
from cli_runner import Said, pol
from ended_process import ran

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_brownie_compiles_deploys_and_tests(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    # Not its compiled wheel: that has bugs of types which its source hasn't.
    plain = {"BROWNIE_LIB": "1", "BROWNIE_NOCOMPILE": "1", "PIP_CONSTRAINT": str(ROOT / ".ci" / "brownie.txt")}
    _run(tmp_path / "venv" / "bin" / "pip", "install", "-q", "--no-binary", "eth-brownie", f"{ROOT}[brownie]", **plain)
    # What Brownie remembers of chains that are gone.
    shutil.rmtree(ROOT / "build" / "brownie" / "deployments", ignore_errors=True)
    (tmp_path / "solcx").mkdir()
    (tmp_path / "solcx" / "solc-v0.8.37").symlink_to(ROOT / ".ci" / "solc")
    environment = {"HOME": str(tmp_path), "SOLCX_BINARY_PATH": str(tmp_path / "solcx")}

    def brownie(*arguments: str) -> str:
        return _run(tmp_path / "venv" / "bin" / "brownie", *arguments, **environment)

    with anvil_node() as url:
        brownie("networks", "add", "Ethereum", "node", f"host={url}", "chainid=31337")
        folder = str(tmp_path / "deployments")
        assert "assertions hold" in brownie("run", "deploy", "main", "0", "", folder, "--network", "node")
        assert "0 transactions" in brownie("run", "deploy", "main", "0", "", folder, "--network", "node")
        # What Brownie has deployed is what `pol deploy` knows.
        assert pol("deploy", "--check", "--rpc", url, "--out", folder) == Said(0, match="hold")
        assert json.loads((tmp_path / "deployments" / "31337.json").read_text())["chain_id"] == 31337
        assert "3 passed" in brownie("test", "tests/brownie", "--network", "node")


def _run(*command: str | Path, **environment: str) -> str:
    # What this process was told about pip isn't meant for others.
    inherited = {k: v for k, v in os.environ.items() if k != "PIP_CONSTRAINT"}
    done = ran(command, cwd=ROOT, env=inherited | environment, timeout=1800)
    return done.stdout
