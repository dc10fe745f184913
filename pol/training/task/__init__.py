"""The task and its learning proof: documents, initial state, checkpoints."""
