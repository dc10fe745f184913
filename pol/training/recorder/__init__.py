"""The recorder: checkpoints, resumption and learning proofs from inside a training loop."""
