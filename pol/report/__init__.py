"""Pages and pictures for people. Strangers' input is always escaped text in them.

Documents that are wrong raise ProtocolError.
"""
