"""The step program, its capture from PyTorch code, and its lowering."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
