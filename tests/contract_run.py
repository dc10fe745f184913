"""forge tests the contracts beside pytest, from the first second: its compiler isn't native and takes minutes."""

import os
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from ended_process import ran

ROOT = Path(__file__).parent.parent
FORGE = "node_modules/@foundry-rs/forge-linux-amd64/bin/forge"
RESULTS = "POL_CONTRACT_RESULTS"
"""In the environment of test processes: the file that will hold what forge says, once it has said all."""

# The lock of .ci/artifacts.py: what one process compiles, another one finds.
_SCRIPT = f"""
mkdir -p build
flock build/forge.lock {FORGE} test --json > "$0.said" 2> "$0.errors" || cat "$0.errors" >> "$0.said"
mv "$0.said" "$0"
"""
_run = pytest.StashKey["subprocess.Popen[bytes]"]()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Begins if the tests that ask for the results are among those that were named."""
    config = session.config
    named = {str(argument).partition("::")[0].rstrip("/") for argument in config.args}
    asked = named & {"tests", "tests/test_repository_checks.py", str(ROOT / "tests")}
    if "PYTEST_XDIST_WORKER" in os.environ or config.option.collectonly or config.option.keyword or not asked:
        return
    if not config.option.markexpr.startswith("not"):
        return  # a tier that has to be marked
    file = Path(tempfile.mkdtemp(prefix="pol-contracts-")) / "results"
    config.stash[_run] = subprocess.Popen(["sh", "-c", _SCRIPT, file], cwd=ROOT, start_new_session=True)
    os.environ[RESULTS] = str(file)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A run that nobody waits for any more is ended."""
    run = session.config.stash.get(_run, None)
    if run is not None and run.poll() is None:
        os.killpg(run.pid, 15)
        run.wait()


def contract_results() -> str:
    """What `forge test --json` says of all fast tests: of the run that has begun, or of one of its own."""
    if RESULTS not in os.environ:
        done = ran(["flock", "build/forge.lock", FORGE, "test", "--json"], code=None, cwd=ROOT)
        return done.stdout + done.stderr
    file = Path(os.environ[RESULTS])
    while not file.exists():
        time.sleep(0.2)
    return file.read_text()
