"""The submitter: actions and decisions."""
