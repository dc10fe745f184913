"""``pol econ``: parameters and populations."""
