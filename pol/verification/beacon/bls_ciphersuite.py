"""The ciphersuite of drand's BLS signatures: sizes of points, domains of hashing, and the type of a verifier."""

from collections.abc import Callable

G1_BYTES, G2_BYTES = 48, 96
"""Length of a compressed point; it says which group a point belongs to."""
DST_G1 = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_"
DST_G2 = b"BLS_SIG_BLS12381G2_XMD:SHA-256_SSWU_RO_NUL_"

SignatureVerifier = Callable[[bytes, bytes, bytes], None]
"""Checks public key, message and signature; raises ProtocolError if the key has not signed the message."""
