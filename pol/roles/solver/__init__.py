"""The solver: actions and decisions."""
