"""``pol demo``: the whole protocol as one scenario, with parties that cheat.

A node or a store that fails raises OperationalError; an outcome that the protocol doesn't promise, ProtocolError.
"""

from pol.extras import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
