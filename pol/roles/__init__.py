"""The parties of the protocol.

They share the chain and the store, and nothing else: no object of one reaches another. A node or a store that fails
raises OperationalError. What a party must not stake on raises ProtocolError, as do documents and evidence that are
wrong: the message says why, and what to do.
"""

from pol.extras import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
