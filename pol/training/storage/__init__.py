"""Where checkpoints lie: content-addressed objects and files, whole, as updates, in parts or sealed."""
