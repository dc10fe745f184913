"""Gas of the court's arithmetic on a local node: both builds, normal deviates, operations with their internal call."""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from web3 import HTTPProvider, Web3

from pol.chain.artifacts import artifact
from pol.errors import OperationalError

ROOT = Path(__file__).resolve().parent.parent.parent.parent
ANVIL = ROOT / "node_modules" / "@foundry-rs" / "anvil-linux-amd64" / "bin" / "anvil"
BUILDS = {"": ("ArithmeticGasOsaka", "osaka"), "prague_": ("ArithmeticGas", "prague")}
"""Prefix of the figures: artefact and hard fork. Without a prefix: chains that have the opcode CLZ."""

OPERATIONS = ("add", "mul", "div", "sqrt", "fma")
_PAIRS = 2_000
_CHAIN = 64
_CHAINS = 25
_SEED = 4
_START_SECONDS = 30


def arithmetic_gas() -> dict[str, float]:
    """Mean gas of an operation on normal deviates (roots: of their magnitudes), and of an fma in a chain of 64.

    Raises:
        OperationalError: anvil isn't installed, or doesn't start.
    """
    words = np.random.default_rng(_SEED).standard_normal(2 * _PAIRS).astype("<f4")
    figures = {}
    for prefix, (name, hardfork) in BUILDS.items():
        with _node(hardfork) as url:
            web3 = Web3(HTTPProvider(url))
            document = artifact(name)
            deployed = web3.eth.contract(abi=document["abi"], bytecode=document["bytecode"]).constructor()
            receipt = web3.eth.wait_for_transaction_receipt(deployed.transact({"from": web3.eth.accounts[0]}))
            contract = web3.eth.contract(address=receipt["contractAddress"], abi=document["abi"])
            for operation in OPERATIONS:
                operands = np.abs(words) if operation == "sqrt" else words
                gas, _ = contract.functions[operation](operands.view("<u4").tolist()).call()
                figures[f"{prefix}{operation}_gas"] = gas / _PAIRS
            chains = words[: 2 * _CHAIN * _CHAINS].reshape(_CHAINS, 2, _CHAIN)
            used = [contract.functions.chain(a.tobytes(), b.tobytes()).call()[0] for a, b in chains]
            figures[f"{prefix}chunk_fma_gas"] = sum(used) / len(used) / _CHAIN
    return figures


@contextmanager
def _node(hardfork: str) -> Iterator[str]:
    if not ANVIL.exists():
        raise OperationalError(f"{ANVIL} is missing: run `npm ci` in a checkout")
    command = [ANVIL, "--host", "127.0.0.1", "--port", "0", "--hardfork", hardfork]
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
