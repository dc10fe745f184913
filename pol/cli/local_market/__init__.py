"""A market on this machine, and tasks of one's own on any: up, submit, fetch."""
