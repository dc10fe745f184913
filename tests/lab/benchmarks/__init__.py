"""Step and operation timings of `pol bench`."""
