"""A real Ethereum node for tests: anvil on a free loopback port, gone when the test is."""

import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ANVIL = Path(__file__).parent.parent / "node_modules" / "@foundry-rs" / "anvil-linux-amd64" / "bin" / "anvil"

_LISTENING = re.compile(r"Listening on (127\.0\.0\.1:\d+)")
_START_SECONDS = 120


@contextmanager
def anvil_node(*arguments: str, hardfork: str = "prague") -> Iterator[str]:
    """URL of a fresh node that keeps 256 states in memory, none on disk; `arguments` are further options of anvil."""
    if not ANVIL.exists():
        raise FileNotFoundError(f"{ANVIL} is missing: run `npm ci` in the project's root")
    options = f"--host 127.0.0.1 --port 0 --hardfork {hardfork} --prune-history 256".split()
    # A file and not a pipe: the node logs every request and would stop at a full pipe that nobody reads.
    with (
        tempfile.NamedTemporaryFile(mode="w+", suffix=".log") as log,
        subprocess.Popen([ANVIL, *options, *arguments], stdout=log, stderr=subprocess.STDOUT) as process,
    ):
        try:
            yield f"http://{_address(process, Path(log.name))}"
        finally:
            process.terminate()
            process.wait(timeout=60)


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if found := _LISTENING.search(log.read_text()):
            return found[1]
        time.sleep(0.01)
    raise RuntimeError(f"anvil did not start: {log.read_text()}")
