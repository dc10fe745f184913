"""Captures ordinary PyTorch training code as a step program. The only part of pol.graph that imports torch.

The names below are loaded when they are first used: an executor needs no tracer.
"""

from pol.extras import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
