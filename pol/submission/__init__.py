"""A submitter's own training on a market: from a model in PyTorch to its trained weights.

A node or a store that fails raises OperationalError, a wrong argument ProtocolError.
"""

from pol.extras import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
