"""BLS signatures on BLS12-381 by py-ecc, in plain Python: the reference for tests of `bls_arkworks`."""

from __future__ import annotations

from hashlib import sha256

from eth_typing import BLSPubkey, BLSSignature
from py_ecc.bls.g2_primitives import pubkey_to_G1, signature_to_G2, subgroup_check
from py_ecc.bls.hash_to_curve import hash_to_G1, hash_to_G2
from py_ecc.bls.typing import G1Uncompressed, G2Uncompressed
from py_ecc.fields import optimized_bls12_381_FQ12 as FQ12
from py_ecc.optimized_bls12_381.optimized_curve import G1, G2, is_inf, neg
from py_ecc.optimized_bls12_381.optimized_pairing import final_exponentiate, pairing

from pol.errors import ProtocolError
from pol.verification.beacon.bls_ciphersuite import DST_G1, DST_G2, G1_BYTES, G2_BYTES


def verify_signature(public_key: bytes, message: bytes, signature: bytes) -> None:
    """As `bls_arkworks.verify_signature`: the same arguments, the same errors, other words in them."""
    if len(signature) == G1_BYTES:
        left = pairing(G2, _g1(signature, "signature"), final_exponentiate=False)
        hashed1 = hash_to_G1(message, DST_G1, sha256)
        right = pairing(_g2(public_key, "public key"), neg(hashed1), final_exponentiate=False)
    else:
        left = pairing(_g2(signature, "signature"), G1, final_exponentiate=False)
        hashed2 = hash_to_G2(message, DST_G2, sha256)
        right = pairing(hashed2, neg(_g1(public_key, "public key")), final_exponentiate=False)
    if final_exponentiate(left * right) != FQ12.one():
        raise ProtocolError("the signature is not the network's for this message")


def _g1(data: bytes, name: str) -> G1Uncompressed:
    if len(data) != G1_BYTES:
        raise ProtocolError(f"the {name} has {len(data)} bytes, a point of G1 {G1_BYTES}")
    try:
        point = pubkey_to_G1(BLSPubkey(data))
    except ValueError as error:
        raise ProtocolError(f"the {name} is no point of G1: {error}") from error
    if is_inf(point) or not subgroup_check(point):
        raise ProtocolError(f"the {name} is at infinity, or not in the subgroup")
    return point


def _g2(data: bytes, name: str) -> G2Uncompressed:
    if len(data) != G2_BYTES:
        raise ProtocolError(f"the {name} has {len(data)} bytes, a point of G2 {G2_BYTES}")
    try:
        point = signature_to_G2(BLSSignature(data))
    except ValueError as error:
        raise ProtocolError(f"the {name} is no point of G2: {error}") from error
    if is_inf(point) or not subgroup_check(point):
        raise ProtocolError(f"the {name} is at infinity, or not in the subgroup")
    return point
