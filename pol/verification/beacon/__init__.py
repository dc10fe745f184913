"""Public randomness of drand: rounds, times and BLS signatures."""
