"""Executors of step programs: the same bits on every machine.

States and constants that don't fit a program raise ProtocolError, a device that fails OperationalError.
"""

from pol.extras import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
