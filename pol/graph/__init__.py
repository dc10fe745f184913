"""The step program, its capture from PyTorch code, and its lowering."""

from pol.extras import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
