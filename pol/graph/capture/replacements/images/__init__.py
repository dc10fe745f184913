"""Images: windows, resizing, sampling, pooling."""
