"""Playing a dispute: evidence from one's own execution, and the honest players."""
