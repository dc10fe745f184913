"""``pol demo``: the whole protocol as one scenario, with parties that cheat."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
