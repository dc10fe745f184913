"""JSON-RPC over HTTP: deadlines, retries, a quorum of nodes, and answers that are kept."""
