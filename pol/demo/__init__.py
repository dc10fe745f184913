"""``pol demo``: the whole protocol as one scenario, with parties that cheat."""

from pol.extras import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
