"""Where segments are replayed: in this process, on all cores, on many machines. To add one, write an `Engine`."""
