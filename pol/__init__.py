"""pol: a verification and proof-of-learning protocol.

The protocol stands in the package names, in the order in which data flows: arithmetic, graph, execution, commitments,
training, verification, dispute, incentives, chain, roles, cli. docs/spec/ says what every byte means.
"""

__version__ = "0.1.0"
