"""The bytecode of a verifier that EZKL generated."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pol
from pol.errors import OperationalError
from pol.zk.ezkl.keys import Keys

LARGEST = 24_576
"""The most bytes of code of a contract (EIP-170)."""


def compiler(given: str | None = None) -> str:
    """The Solidity compiler: the one given, else ``solc`` on the PATH, else that of a checkout that is set up.

    Raises OperationalError if there is none.
    """
    checkout = Path(pol.__file__).parent.parent / ".ci" / "solc"
    found = shutil.which(given or "solc") or (str(checkout) if given is None and checkout.is_file() else None)
    if found is None:
        raise OperationalError(f"there is no compiler {given or 'solc'}: name one of version 0.8 with --solc")
    return found


def bytecode(keys: Keys, solc: str) -> tuple[str, int]:
    """Creation code in hex, and the size of the code that stays on the chain.

    Raises OperationalError if the compiler refuses, or the contract is too large.
    """
    # The pragma of the generator names one compiler; every version 0.8 compiles the source.
    source = re.sub(r"pragma solidity [^;]+;", "pragma solidity ^0.8.0;", Path(keys.file("verifier.sol")).read_text())
    request = {
        "language": "Solidity",
        "sources": {"verifier.sol": {"content": source}},
        "settings": {
            "optimizer": {"enabled": True, "runs": 1},
            "evmVersion": "shanghai",
            "metadata": {"bytecodeHash": "none", "appendCBOR": False},
            "outputSelection": {"*": {"*": ["evm.bytecode.object", "evm.deployedBytecode.object"]}},
        },
    }
    command = [solc, "--standard-json"]
    done = subprocess.run(command, input=json.dumps(request), capture_output=True, text=True, check=False)
    try:
        made = json.loads(done.stdout)
        (contract,) = made["contracts"]["verifier.sol"].values()
    except (ValueError, KeyError) as error:
        raise OperationalError(f"{solc} did not compile the verifier: {(done.stdout + done.stderr)[:500]}") from error
    size = len(contract["evm"]["deployedBytecode"]["object"]) // 2
    if size > LARGEST:
        raise OperationalError(f"the verifier has {size} bytes; a chain takes {LARGEST}")
    return "0x" + contract["evm"]["bytecode"]["object"], size
