"""The parties of the protocol.

They share the chain and the store, and nothing else: no object of one reaches another. Whatever reads a node or the
store raises OperationalError if that fails.
"""

from pol.extras import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
