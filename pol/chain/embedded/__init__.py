"""An Ethereum chain in this process, and one behind a local port with a journal."""
