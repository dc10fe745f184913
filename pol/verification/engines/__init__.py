"""Engines that replay segments: in this process, on all cores, on many machines. To add one, implement `Engine`."""
