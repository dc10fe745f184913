"""``pol econ``: parameters with which honesty pays best."""
