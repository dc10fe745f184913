"""Trainings of many workers as a graph of claims whose starts follow from other claims (docs/spec/rounds.md).

A store that fails raises OperationalError. Arguments and documents that are wrong raise ProtocolError, false evidence
EvidenceError.
"""

from pol.extras import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
