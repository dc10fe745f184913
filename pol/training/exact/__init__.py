"""Exact training in the user's own loop: one call in place of forward, backward and update."""
