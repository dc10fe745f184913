"""The parties of the protocol.

They share the chain and the store, and nothing else: no object of one reaches another.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
