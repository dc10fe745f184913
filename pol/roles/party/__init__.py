"""Common to all parties: keys, terms, disputes, demands, public calls."""
