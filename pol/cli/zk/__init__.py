"""``pol zk``: proofs of gradient steps."""
