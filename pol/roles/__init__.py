"""The parties of the protocol.

They share the chain and the store, and nothing else: no object of one reaches another.
"""
