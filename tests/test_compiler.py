"""What `.ci/solc` keeps: only what it would say again, whole or not at all, and no more than has room."""

import gzip
import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.long

SOLC = Path(__file__).parent.parent / ".ci" / "solc"
KEPT_BYTES = 512 * 1024 * 1024


def request(source: str, runs: int = 200) -> str:
    selection = {"*": {"*": ["abi", "evm.bytecode.object"]}}
    settings = {"optimizer": {"enabled": True, "runs": runs}, "outputSelection": selection}
    sources = {"A.sol": {"content": f"pragma solidity 0.8.37; {source}"}}
    return json.dumps({"language": "Solidity", "sources": sources, "settings": settings})


A = request("contract A { function f() public pure returns (uint256) { return 1; } }")


def said(folder: Path | str, text: str = A, *options: str | Path) -> str:
    environment = os.environ | {"POL_SOLC_CACHE": str(folder)}
    command = [SOLC, "--standard-json", *options]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True, env=environment)
    return done.stdout


def entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.exists() else []


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A cache with the output of one request, which four processes have asked for at once, and the output."""
    folder = tmp_path_factory.mktemp("caches") / "deep" / "solc"
    with ThreadPoolExecutor(4) as pool:
        outputs = set(pool.map(lambda _: said(folder), range(4)))
    (output,) = outputs
    assert len(entries(folder)) == 1
    return folder, output


def test_what_was_said_is_said_again_without_compiling(filled: tuple[Path, str]) -> None:
    """What is marked in the entry comes out, until the entry is damaged: then it is compiled, and kept again."""
    folder, output = filled
    (entry,) = entries(folder)
    right = entry.read_bytes()
    assert gzip.decompress(right).decode() == output == said("off")
    entry.write_bytes(gzip.compress(b"marked"))
    assert said(folder) == "marked"
    entry.write_bytes(right[:-9])
    assert said(folder) == output
    assert entries(folder) == [entry]
    assert gzip.decompress(entry.read_bytes()).decode() == output


def test_other_settings_are_another_entry_and_what_is_old_makes_room(filled: tuple[Path, str]) -> None:
    folder, _ = filled
    (entry,) = entries(folder)
    old = folder / "old.gz"
    with old.open("wb") as file:
        file.truncate(KEPT_BYTES)  # a file of holes
    os.utime(old, (0, 0))
    said(folder, A.replace("200", "201"))
    left = entries(folder)
    assert len(left) == 2
    assert entry in left
    assert old not in left


def test_a_request_that_does_not_hold_its_sources_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / "B.sol").write_text("pragma solidity 0.8.37; library B { uint256 internal constant C = 1; }")
    text = request('import {B} from "B.sol"; contract A { uint256 public a = B.C; }')
    output: dict[str, Any] = json.loads(said(tmp_path / "cache", text, "--base-path", tmp_path))
    assert "A" in output["contracts"]["A.sol"]
    assert entries(tmp_path / "cache") == []


@pytest.mark.parametrize("folder", ["off", "/dev/null/none"])
def test_without_a_cache_everything_is_compiled_and_errors_never_kept(folder: str, tmp_path: Path) -> None:
    assert '"errors"' in said(tmp_path / "cache", request("contract A { nonsense }"))
    assert entries(tmp_path / "cache") == []
    assert '"contracts"' in said(folder)
