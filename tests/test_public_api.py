"""The public interface: frozen with its signatures, loaded lazily, and the only one that guides use."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lab.public_api import PACKAGES, document, public_names

ROOT = Path(__file__).parent.parent
GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
# To add an operation is to change pol itself.
DOCUMENTS = [ROOT / "README.md", *(guide for guide in GUIDES if guide.stem != "add_operation")]


def test_the_interface_is_the_documented_one() -> None:
    """To change it on purpose, write the document anew and tell of it in the changelog."""
    message = "run: PYTHONPATH=tests python -m lab.public_api > docs/api.md"
    assert (ROOT / "docs" / "api.md").read_text() == document(), message


@pytest.mark.parametrize("package", PACKAGES)
def test_names_load_when_they_are_used(package: str) -> None:
    heavy = "('torch', 'web3', 'eth_tester', 'pol.execution._kernels')"
    check = f"import sys, {package}; sys.exit(any(m in sys.modules for m in {heavy}))"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_what_needs_no_torch_loads_none() -> None:
    check = "import sys, pol; pol.Store, pol.load, pol.verify, pol.sample, pol.replay; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
def test_guides_use_public_names_alone(path: Path) -> None:
    program = "\n".join(re.findall(r"```python\n(.*?)```", path.read_text(), re.S))
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "pol":
            if node.module.startswith("pol.integrations."):
                continue
            assert node.module in PACKAGES, f"{path.name}: {node.module} is no public package"
            private = {alias.name for alias in node.names} - set(public_names(node.module))
            assert not private, f"{path.name}: {node.module} has no public {', '.join(sorted(private))}"
