"""The version of this release, where nothing else is imported with it."""

__version__ = "0.1.0"
