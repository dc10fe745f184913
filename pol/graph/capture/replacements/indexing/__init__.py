"""Reading and writing at places, by masks and in bags."""
