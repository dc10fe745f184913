"""From a learning proof to a verdict.

A store that fails raises OperationalError; arguments and documents that are wrong raise ProtocolError, false evidence
EvidenceError.
"""

from pol.extras import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
