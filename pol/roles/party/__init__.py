"""What all parties share: keys, terms, disputes, demands, public calls."""
