"""The command line: one verb per protocol move, plain words or ``--json``.

Input that is wrong raises ProtocolError, a file, node or store that fails OperationalError: each has its exit code.
"""
