"""Hashes and roots of what parties commit to. Values that have no such form raise ProtocolError."""
