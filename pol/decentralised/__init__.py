"""Reference trainers of many workers, whose every claim can be proven, verified and disputed (docs/spec/rounds.md).

A store or a meeting that fails raises OperationalError, settings that are wrong ProtocolError.
"""

from pol.extras import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
