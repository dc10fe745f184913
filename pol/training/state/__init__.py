"""The complete state of a training: what the next step depends on, as arrays and documents."""
