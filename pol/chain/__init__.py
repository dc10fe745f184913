"""The only user of web3: connections, wallets, deployment, and typed bindings of the contracts."""

import os

# The keccak of safe-pysha3 is seven times faster than the default; it has to be named before web3 is imported.
os.environ.setdefault("ETH_HASH_BACKEND", "pysha3")
