"""The only user of web3: connections, wallets, deployment, and typed bindings of the contracts.

All that asks a node raises OperationalError if the node fails.
"""

import os
from importlib.util import find_spec

from pol.extras import lazy_names

# The keccak of safe-pysha3 is seven times faster than the default, which is felt on an embedded chain. It has to be
# named before web3 is imported.
if find_spec("sha3") is not None:
    os.environ.setdefault("ETH_HASH_BACKEND", "pysha3")

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
