"""Compile Solidity sources and put a contract on a node, with the settings of foundry.toml."""

import functools
import importlib.util
from pathlib import Path
from typing import Any

from web3 import HTTPProvider, Web3
from web3.contract import Contract

_ROOT = Path(__file__).parent.parent


@functools.cache
def compiled(path: str, name: str, profile: str = "default") -> dict[str, Any]:
    """What forge makes of a contract in a source file, named relative to the root, under a profile of foundry.toml.

    In a folder of builds that all test processes share, and not that of the forge tests: nobody waits for those.
    """
    spec = importlib.util.spec_from_file_location("artifacts", _ROOT / ".ci" / "artifacts.py")
    assert spec is not None
    assert spec.loader is not None
    artifacts = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(artifacts)
    folder = artifacts.build([path], profile, f"build/deployed-{profile}")
    contract: dict[str, Any] = artifacts.compiled(folder, path, name)
    return contract


def deploy(url: str, path: str, name: str, profile: str = "default") -> Contract:
    """A contract of the source file `path`, deployed without arguments from the node's first account."""
    artifact = compiled(path, name, profile)
    web3 = Web3(HTTPProvider(url, request_kwargs={"timeout": 300}))
    factory = web3.eth.contract(abi=artifact["abi"], bytecode=artifact["bytecode"]["object"])
    transaction = factory.constructor().transact({"from": web3.eth.accounts[0]})
    address = web3.eth.wait_for_transaction_receipt(transaction)["contractAddress"]
    return web3.eth.contract(address=address, abi=artifact["abi"])
