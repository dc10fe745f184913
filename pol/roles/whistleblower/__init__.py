"""The whistleblower: actions and decisions."""
