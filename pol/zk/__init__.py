"""Zero-knowledge proofs of gradient steps: circuits in fixed point, their keys and proofs (docs/spec/zk.md)."""
