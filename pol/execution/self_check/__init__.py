"""A capture's self-check: the program against the user's own step."""
