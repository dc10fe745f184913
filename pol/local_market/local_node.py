"""The node of a market on this machine: anvil where there is one, else the embedded chain behind a local port."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from importlib.util import find_spec
from pathlib import Path

from web3.types import RPCEndpoint

from pol.chain.node.connection import Connection
from pol.errors import OperationalError
from pol.local_market.market_folder import MarketFolder
from pol.local_market.market_processes import MarketProcesses

LOOPBACK = "127.0.0.1"
PORT = 8545
BLOCK_SECONDS = 12
"""Seconds of the chain between two blocks, as on Ethereum; a block is made every second of this machine's clock."""
STATE_SECONDS = 5
"""Seconds between two copies of anvil's state on disk; an ordinary end writes it as well."""
START_SECONDS = 60
NODE = "node"
_LISTENING = re.compile(r"[Ll]istening on (?:http://)?(127\.0\.0\.1:\d+)")


def find_anvil() -> Path | None:
    """The program anvil: of the PATH, or of ``node_modules`` here, above, or in pol's checkout; never others'."""
    found = shutil.which("anvil")
    if found is not None:
        return Path(found)
    here, checkout = Path.cwd(), Path(__file__).parents[2]
    for folder in (here, *here.parents, checkout):
        program = folder / "node_modules" / ".bin" / "anvil"
        if program.exists() and {program.stat().st_uid, program.lstat().st_uid} <= {os.geteuid(), 0}:
            return program.resolve()
    return None


def start_node(folder: MarketFolder, processes: MarketProcesses, port: int, embedded: bool) -> Connection:
    """A node that goes on where the one before it in this folder ended; each transaction gets a block at once."""
    log = folder.logs / f"{NODE}.log"
    for wanted in (port, 0):  # any port, if somebody else has this one
        log.unlink(missing_ok=True)
        processes.start(NODE, _command(folder, wanted, embedded), log)
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if found := _LISTENING.search(log.read_text(errors="replace")):
                return Connection.to(f"http://{found[1]}")
            if not processes.is_alive(NODE):
                break
            time.sleep(0.05)
        if "in use" not in log.read_text(errors="replace"):
            break
    said = [line for line in log.read_text(errors="replace").splitlines() if line.strip()][-1:]
    raise OperationalError(f"the node didn't start ({' '.join(said) or 'it said nothing'}): see {log}")


def _command(folder: MarketFolder, port: int, embedded: bool) -> list[str]:
    anvil, kept = find_anvil(), folder.chain / "anvil.json"
    journal = folder.chain / "embedded.journal"
    if not embedded and not journal.exists() and anvil is not None:
        # No page in a browser reads its answers. More states than 256 would go to the disk, and stay there.
        options = f"--host {LOOPBACK} --port {port} --hardfork prague --no-cors --prune-history 256".split()
        return [str(anvil), *options, "--state", str(kept), "--state-interval", str(STATE_SECONDS)]
    if kept.exists():
        raise OperationalError(
            f"the chain in {folder.path} is anvil's: put anvil on the PATH and leave --embedded out, or name another "
            "--folder"
        )
    if find_spec("eth_tester") is None:
        raise OperationalError(
            "there is no node: install the embedded one by pip install 'proof-of-learning[embedded]', or anvil by npm "
            "install @foundry-rs/anvil"
        )
    server = ["-P", "-m", "pol.chain.embedded.embedded_server"]
    return [sys.executable, *server, "--port", str(port), "--journal", str(journal)]


def let_time_pass(connection: Connection) -> None:
    """From now on a block is made every second, and counts as twelve: the chain's clock runs twelve times as fast."""
    orders: tuple[tuple[str, int | bool], ...] = (
        ("anvil_setBlockTimestampInterval", BLOCK_SECONDS),
        ("evm_setAutomine", False),
        ("evm_setIntervalMining", 1),
    )
    for method, value in orders:
        answer = connection.web3.provider.make_request(RPCEndpoint(method), [value])
        if "error" in answer:
            raise OperationalError(f"{connection.name} refuses {method}: {answer['error']}; update anvil")
