"""Collectives with a defined order: reductions over processes whose every bit is defined (docs/spec/collectives.md).

Tensors and groups that don't fit raise ProtocolError.
"""

from pol.extras import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
