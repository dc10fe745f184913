"""The areas of `pol bench`."""
