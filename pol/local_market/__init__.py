"""A whole market on this machine, as `pol up` runs it: a node, the contracts, and parties that are processes.

A node that fails raises OperationalError.
"""
