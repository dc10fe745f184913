"""A real Ethereum node for measurements: anvil, which the development set-up installs."""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pol.errors import OperationalError

ROOT = Path(__file__).resolve().parents[3]
ANVIL = ROOT / "node_modules" / "@foundry-rs" / "anvil-linux-amd64" / "bin" / "anvil"
_START_SECONDS = 30


@contextmanager
def local_node(hardfork: str) -> Iterator[str]:
    """URL of a fresh anvil by the rules of ``hardfork``, gone afterwards.

    Raises:
        OperationalError: anvil isn't installed, or doesn't start.
    """
    if not ANVIL.exists():
        raise OperationalError(f"{ANVIL} is missing: run `npm ci` in a checkout")
    command = [str(ANVIL), "--host", "127.0.0.1", "--port", "0", "--hardfork", hardfork]
    with (
        tempfile.NamedTemporaryFile(mode="w+", suffix=".log") as log,
        subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT) as process,
    ):
        try:
            deadline = time.monotonic() + _START_SECONDS
            while not (found := re.search(r"Listening on (127\.0\.0\.1:\d+)", Path(log.name).read_text())):
                if time.monotonic() > deadline or process.poll() is not None:
                    raise OperationalError(f"anvil did not start: {Path(log.name).read_text()}")
                time.sleep(0.01)
            yield f"http://{found[1]}"
        finally:
            process.terminate()
            process.wait(timeout=10)
