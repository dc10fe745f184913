"""What an installation brings: the page about it is true, and the core stays small."""

import subprocess
import sys
from pathlib import Path

from bare_environment import brought
from ended_process import ran
from pol.extras import EXTRAS

ROOT = Path(__file__).parents[2]


def test_the_page_is_that_of_what_is_installed() -> None:
    """Each distribution with its licence and its reason; a direct one without a reason is a KeyError."""
    script = ROOT / ".ci" / "dependencies.py"
    ran([sys.executable, script, "--check"])


def test_no_page_and_no_message_leads_to_a_stranger_s_package() -> None:
    """`pol` on the index is a password manager of somebody else."""
    other = r"pip3? (install|download) ([-a-zA-Z]+ )*['\"]?pol([^-/._a-z]|$)|\bpol\[[a-z]"
    listed = subprocess.run(["git", "grep", "-nIE", other], cwd=ROOT, capture_output=True, text=True, check=False)
    assert listed.stdout == ""


def test_the_core_brings_nothing_large() -> None:
    core = brought(()) - {"proof-of-learning"}
    assert len(core) <= 24
    assert not core & {"torch", "web3", "pydantic", "requests", "safe-pysha3", "safetensors"}


def test_every_name_of_a_role_brings_the_modules_that_it_works_with() -> None:
    for role in ("whistleblower", "verifier"):
        assert {"web3", "eth-keys", "py-ecc"} <= brought((role,))
        assert "torch" not in brought((role,))
    for role in ("solver", "submitter", "demo"):
        assert {"web3", "torch"} <= brought((role,))
    assert "eth-tester" in brought(("demo",))


def test_an_error_names_an_extra_that_brings_the_module() -> None:
    """A module of an extra isn't one of the core."""
    core = brought(())
    named = {"web3", "eth_account", "eth_keys", "prometheus_client", "tomlkit", "torch", "requests"}
    for module in sorted(named):
        assert module.replace("_", "-") not in core
        assert module.replace("_", "-") in brought((EXTRAS[module],)), module
