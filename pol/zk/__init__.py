"""Zero-knowledge proofs of gradient steps: circuits in fixed point, their keys and proofs (docs/spec/zk.md)."""

from pol.extras import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
