"""Published rounds of drand verify, nothing else does, and the fast verifier says what the reference says."""

import random
from dataclasses import replace
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from py_arkworks_bls12381 import G1Point, G2Point, Scalar
from py_ecc.bls.g2_primitives import G1_to_pubkey, G2_to_signature
from py_ecc.bls.hash_to_curve import hash_to_G1, hash_to_G2
from py_ecc.optimized_bls12_381 import field_modulus

from drand_relay import ROUNDS, VECTORS
from pol.errors import ProtocolError
from pol.verification.beacon import bls_arkworks, bls_reference, drand
from pol.verification.beacon.drand import DEFAULT, LAST_ROUND, NETWORKS, QUICKNET, DrandNetwork, Round, verify_round

pytestmark = pytest.mark.rules

BOTH = pytest.mark.parametrize("verifier", [bls_arkworks.verify_signature, bls_reference.verify_signature])
ALL = [(NETWORKS[name], published) for name, rounds in ROUNDS.items() for published in rounds]
COMPRESSED, INFINITY, LARGER_Y = 0x80, 0x40, 0x20


def randomness(network: DrandNetwork, number: int) -> str:
    return str(VECTORS["networks"][network.name]["rounds"][str(number)]["randomness"])


def test_networks_are_what_their_hashes_say() -> None:
    """drand's chain hash covers period, genesis, key, seed, and the name of all networks but the default."""
    for network in (QUICKNET, DEFAULT):
        info = VECTORS["networks"][network.name]["info"]
        text = network.period.to_bytes(4, "big") + network.genesis.to_bytes(8, "big") + network.public_key
        text += bytes.fromhex(info["groupHash"]) + (b"" if network.name == "default" else network.name.encode())
        assert sha256(text).digest() == network.chain_hash == bytes.fromhex(info["hash"])
        assert info["public_key"] == network.public_key.hex()


def test_published_rounds_verify() -> None:
    assert len(ALL) == 15
    for network, published in ALL:
        assert verify_round(network, published).hex() == randomness(network, published.number)


@pytest.mark.parametrize("name", ["quicknet", "default"])
def test_the_reference_agrees_on_a_published_round(name: str) -> None:
    published = ROUNDS[name][1]
    seed = verify_round(NETWORKS[name], published, bls_reference.verify_signature)
    assert seed.hex() == randomness(NETWORKS[name], published.number)


def test_hashes_to_the_curves_are_those_of_rfc_9380() -> None:
    cases = VECTORS["hash_to_curve"]
    for case in cases["g1"]["cases"]:
        text, dst = case["message"].encode(), cases["g1"]["dst"].encode()
        point = G1Point.hash_to_curve(text, dst)
        assert bytes(point.to_xy_bytes_be()).hex() == case["x"] + case["y"]
        assert G1_to_pubkey(hash_to_G1(text, dst, sha256)) == bytes(point.to_compressed_bytes())
    for case in cases["g2"]["cases"]:
        text, dst = case["message"].encode(), cases["g2"]["dst"].encode()
        assert bytes(G2Point.hash_to_curve(text, dst).to_compressed_bytes()).hex() == case["compressed"]
        assert G2_to_signature(hash_to_G2(text, dst, sha256)).hex() == case["compressed"]


@BOTH
def test_a_round_has_no_other_number(verifier: drand.SignatureVerifier) -> None:
    published = ROUNDS["quicknet"][2]
    with pytest.raises(ProtocolError, match="round 4 of quicknet: the signature is not the network's"):
        verify_round(QUICKNET, replace(published, number=4), verifier)


def test_no_neighbour_and_no_other_round_verifies() -> None:
    for network, published in ALL:
        for number in {published.number - 1, published.number + 1, published.number ^ 1 << 40} - {0}:
            with pytest.raises(ProtocolError):
                verify_round(network, replace(published, number=number))


@BOTH
def test_the_negated_signature_is_another(verifier: drand.SignatureVerifier) -> None:
    """The one that differs in a bit and is a point of the right group all the same."""
    published = ROUNDS["quicknet"][0]
    negated = bytes([published.signature[0] ^ LARGER_Y]) + published.signature[1:]
    with pytest.raises(ProtocolError, match="not the network's"):
        verify_round(QUICKNET, replace(published, signature=negated), verifier)


def test_no_bit_can_be_flipped() -> None:
    for name in ("quicknet", "default"):
        published = ROUNDS[name][-1]
        for bit in range(8 * len(published.signature)):
            flipped = int.from_bytes(published.signature, "big") ^ 1 << bit
            with pytest.raises(ProtocolError):
                verify_round(
                    NETWORKS[name], replace(published, signature=flipped.to_bytes(len(published.signature), "big"))
                )


def test_the_reference_refuses_flipped_bits_too() -> None:
    generator = random.Random(9380)
    for name, count in (("quicknet", 12), ("default", 4)):
        published = ROUNDS[name][-1]
        for bit in generator.sample(range(8 * len(published.signature) - 3), count):
            flipped = int.from_bytes(published.signature, "big") ^ 1 << bit
            signature = flipped.to_bytes(len(published.signature), "big")
            with pytest.raises(ProtocolError, match=r"no point|subgroup"):
                verify_round(NETWORKS[name], replace(published, signature=signature), bls_reference.verify_signature)


def on_g1(x: int) -> bool:
    return pow(x**3 + 4, (field_modulus - 1) // 2, field_modulus) == 1


def bad_points() -> dict[str, bytes]:
    """Bytes that no signature on G1 has: by name, what is wrong with them."""
    size = drand.G1_BYTES
    off_curve = next(x for x in range(1, 100) if not on_g1(x))
    outside = next(x for x in range(1, 100) if on_g1(x))
    multiples = (bytes((G1Point() * Scalar(k)).to_compressed_bytes()) for k in range(1, 100))
    small = next(p for p in multiples if coordinate(p) + field_modulus < 2**381)
    unreduced = coordinate(small) + field_modulus
    good = ROUNDS["quicknet"][0].signature
    return {
        "off the curve": flags(off_curve, COMPRESSED),
        "out of the subgroup": flags(outside, COMPRESSED),
        "not reduced": flags(unreduced, small[0] & 0xE0),
        "the modulus itself": flags(field_modulus, COMPRESSED),
        "infinity": flags(0, COMPRESSED | INFINITY),
        "infinity with a sign": flags(0, COMPRESSED | INFINITY | LARGER_Y),
        "infinity with a coordinate": flags(7, COMPRESSED | INFINITY),
        "a good one that says infinity": bytes([good[0] | INFINITY]) + good[1:],
        "not said to be compressed": bytes([good[0] & ~COMPRESSED]) + good[1:],
        "zeros": bytes(size),
        "ones": b"\xff" * size,
    }


def coordinate(point: bytes) -> int:
    return int.from_bytes(bytes([point[0] & 0x1F]) + point[1:], "big")


def flags(x: int, bits: int) -> bytes:
    encoded = x.to_bytes(drand.G1_BYTES, "big")
    return bytes([encoded[0] | bits]) + encoded[1:]


@BOTH
@pytest.mark.parametrize("wrong", bad_points())
def test_what_is_no_point_of_g1_is_refused(wrong: str, verifier: drand.SignatureVerifier) -> None:
    with pytest.raises(ProtocolError, match=r"no point of G1|at infinity|subgroup"):
        verify_round(QUICKNET, Round(1, bad_points()[wrong]), verifier)


@BOTH
@pytest.mark.parametrize("wrong", ["infinity", "zeros", "not said to be compressed", "out of the curve or subgroup"])
def test_what_is_no_point_of_g2_is_refused(wrong: str, verifier: drand.SignatureVerifier) -> None:
    published = ROUNDS["default"][0]
    signature = {
        "infinity": bytes([COMPRESSED | INFINITY]) + bytes(95),
        "zeros": bytes(96),
        "not said to be compressed": bytes([published.signature[0] & ~COMPRESSED]) + published.signature[1:],
        "out of the curve or subgroup": bytes([COMPRESSED]) + bytes(94) + b"\x05",
    }[wrong]
    with pytest.raises(ProtocolError, match=r"no point of G2|at infinity|subgroup"):
        verify_round(DEFAULT, replace(published, signature=signature), verifier)


@BOTH
@pytest.mark.parametrize("public_key", [b"", bytes(95), bytes([COMPRESSED | INFINITY]) + bytes(95)])
def test_a_key_that_is_no_point_signs_nothing(public_key: bytes, verifier: drand.SignatureVerifier) -> None:
    """The key at infinity would make every pairing one."""
    signature = ROUNDS["quicknet"][0].signature
    with pytest.raises(ProtocolError, match="public key"):
        verifier(public_key, bytes(32), signature)


@pytest.mark.parametrize("name", ["quicknet", "default"])
@pytest.mark.parametrize("change", [{"number": 0}, {"number": LAST_ROUND + 1}, {"number": -1}, {"signature": b""}])
def test_rounds_that_no_network_has(name: str, change: dict[str, object]) -> None:
    published = replace(ROUNDS[name][0], **change)  # type: ignore[arg-type]  # each is a field's type
    with pytest.raises(ProtocolError, match=r"there is no round|bytes"):
        verify_round(NETWORKS[name], published)


def test_the_chained_network_signs_the_round_before() -> None:
    first, second = ROUNDS["default"][:2]
    assert second.previous == first.signature
    for previous in (b"", first.previous, ROUNDS["default"][2].previous):
        with pytest.raises(ProtocolError):
            verify_round(DEFAULT, replace(second, previous=previous))
    with pytest.raises(ProtocolError, match="signs 0 bytes"):
        verify_round(QUICKNET, replace(ROUNDS["quicknet"][0], previous=bytes(48)))


def test_a_round_of_one_network_is_none_of_another() -> None:
    with pytest.raises(ProtocolError, match="has 48 bytes, not 96"):
        verify_round(QUICKNET, ROUNDS["default"][0])
    other = replace(QUICKNET, name="other", public_key=bytes(G2Point().to_compressed_bytes()))
    with pytest.raises(ProtocolError, match="of other: the signature is not"):
        verify_round(other, ROUNDS["quicknet"][0])


def test_rounds_are_due_when_the_network_says() -> None:
    """Round 1000 of quicknet: 2023-08-23 15:59:24 UTC, as published."""
    assert QUICKNET.time_of(1000) == 1692806364
    assert QUICKNET.round_at(1692806363) == 999
    assert QUICKNET.round_at(1692806364) == 1000
    assert QUICKNET.round_at(0) == 0
    with pytest.raises(ProtocolError, match="no round 0"):
        QUICKNET.time_of(0)


@given(st.integers(0, 2**40), st.integers(0, 2**20), st.sampled_from([QUICKNET, DEFAULT]))
def test_a_claim_is_bound_to_the_first_round_past_its_delay(time: int, delay: int, network: DrandNetwork) -> None:
    number = network.round_after(time, delay)
    assert network.time_of(number) > time + delay
    assert number == 1 or network.time_of(number - 1) <= time + delay
    assert network.round_at(time + delay) == number - 1


def test_a_round_before_the_claim_can_not_be_asked_for() -> None:
    with pytest.raises(ProtocolError, match="delay of -1"):
        QUICKNET.round_after(1692806364, -1)
