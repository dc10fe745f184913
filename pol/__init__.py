"""pol: a verification and proof-of-learning protocol.

The names below are the public interface, loaded when they are first used; docs/api.md lists them with their signatures.
docs/architecture.md shows the packages, in the order in which data flows.
"""

from pol.extras import lazy_names
from pol.release import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
