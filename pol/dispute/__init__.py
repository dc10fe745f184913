"""The dispute game as pure functions: positions, moves, rules and the players that make them.

docs/spec/dispute.md is the definition; `contracts/dispute` is the same game on chain.
Bytes and positions that are wrong raise ProtocolError, evidence that is missing OperationalError.
"""
