"""Rules of reading, writing and sorting at addresses from data."""
