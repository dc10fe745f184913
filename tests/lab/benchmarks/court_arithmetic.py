"""Gas of the court's arithmetic on a local node: normal deviates, operations with their internal call."""

from __future__ import annotations

import numpy as np
from web3 import HTTPProvider, Web3

from lab.benchmarks.local_node import local_node
from pol.chain.artifacts import artifact

OPERATIONS = ("add", "mul", "div", "sqrt", "fma")
_PAIRS = 2_000
_CHUNK = 64
_CHUNKS = 25
_SEED = 4


def arithmetic_gas() -> dict[str, float]:
    """Mean gas of an operation on normal deviates (roots: of their magnitudes), and of an fma in a chunk of 64.

    Raises:
        OperationalError: anvil isn't installed, or doesn't start.
    """
    words = np.random.default_rng(_SEED).standard_normal(2 * _PAIRS).astype("<f4")
    figures = {}
    with local_node("osaka") as url:
        web3 = Web3(HTTPProvider(url))
        document = artifact("ArithmeticGas")
        deployed = web3.eth.contract(abi=document["abi"], bytecode=document["bytecode"]).constructor()
        receipt = web3.eth.wait_for_transaction_receipt(deployed.transact({"from": web3.eth.accounts[0]}))
        contract = web3.eth.contract(address=receipt["contractAddress"], abi=document["abi"])
        for operation in OPERATIONS:
            operands = np.abs(words) if operation == "sqrt" else words
            gas, _ = contract.functions[operation](operands.view("<u4").tolist()).call()
            figures[f"{operation}_gas"] = gas / _PAIRS
        chunks = words[: 2 * _CHUNK * _CHUNKS].reshape(_CHUNKS, 2, _CHUNK)
        used = [contract.functions.chunk(a.tobytes(), b.tobytes()).call()[0] for a, b in chunks]
        figures["chunk_fma_gas"] = sum(used) / len(used) / _CHUNK
    return figures
