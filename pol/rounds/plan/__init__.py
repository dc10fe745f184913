"""The plan of rounds: phases, their programs, and the rules of their sources."""
