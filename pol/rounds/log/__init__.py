"""One append-only log of signed claims, rosters and messages, and each worker's journal."""
