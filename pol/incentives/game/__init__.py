"""The game of one task: payoffs, best strategies, and parameters that make honesty pay best."""
