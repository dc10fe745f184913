"""Tasks, learning records and proofs.

A store that fails raises OperationalError, wherever one is read or written. Arguments and documents that are wrong
raise ProtocolError, false evidence EvidenceError.
"""

from pol.extras import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
