"""Zero-knowledge proofs of gradient steps: circuits in fixed point, their keys and proofs (docs/spec/zk.md)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
