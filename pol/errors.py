"""Two families of errors: bad evidence can lead to a rejection, a failed look never can (design law 5)."""


class PolError(Exception):
    """Base of every error that pol raises on purpose; its message says what to do."""


class ProtocolError(PolError):
    """The evidence is bad: wrong bytes, wrong shape, wrong proof, an illegal move."""


class OperationalError(PolError):
    """We could not look: a node is down, a disk is full. Yields INCONCLUSIVE and never slashes anyone."""


class UnsupportedError(PolError):
    """The user's program uses something that pol has no definition for."""
