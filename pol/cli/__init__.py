"""The command line: one verb per protocol move, plain words or ``--json``."""
