"""The verifier: actions and decisions."""
