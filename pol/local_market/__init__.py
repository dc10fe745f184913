"""A whole market on this machine, as `pol up` runs it: a node, the contracts, and parties that are processes.

A node, a process or a folder that fails raises OperationalError.
"""
