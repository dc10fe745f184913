"""The game of one task: payoffs, best strategies, and parameters with which honesty pays best."""
