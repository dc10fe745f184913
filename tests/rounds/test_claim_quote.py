"""Quotes of SEV-SNP for claims, with a chain of certificates of its own: RSA-PSS, RSA-PSS, P-384, as AMD's."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
from cryptography.hazmat.primitives.hashes import SHA384
from cryptography.hazmat.primitives.serialization import Encoding

from pol.errors import ProtocolError
from pol.rounds.log.log_entries import ClaimEntry, QuoteEntry, decode_entry, encode_entry
from pol.rounds.log.logged_rounds import LoggedRounds
from pol.rounds.plan.rounds_plan import RoundsPlan
from pol.rounds.quotes.claim_quote import (
    SIGNED,
    SIZE,
    ClaimQuote,
    TrustedMachines,
    quoted_claims,
    quoted_data,
    require_quote,
    require_report,
)
from pol.rounds.roster import Member, Roster
from pol.rounds.round_claim import RoundClaim
from pol.rounds.worker_key import WorkerKey
from pol.training.storage.store import Store

pytestmark = pytest.mark.rules
NOW = datetime(2026, 6, 1, tzinfo=UTC)
PLAN, CHIP, MEASUREMENT = b"\x01" * 32, b"\xc1" * 64, b"\x3e" * 48
TCB = bytes([3, 0, 0, 0, 0, 0, 20, 200])
KEY = WorkerKey(b"\x07" * 32)
NOTHING: Mapping[str, bytes] = MappingProxyType({})
AMD = "1.3.6.1.4.1.3704.1."
FIRMWARE = {1: 3, 2: 0, 3: 20, 8: 200}
"""The versions in a certificate: those of TCB, each under its number."""


@dataclass(frozen=True)
class Vendor:
    root: bytes
    chain: tuple[bytes, ...]
    chip_key: ec.EllipticCurvePrivateKey

    @property
    def trusted(self) -> TrustedMachines:
        return TrustedMachines(self.root, {MEASUREMENT}, bytes([3, 0, 0, 0, 0, 0, 20, 100]))

    def report(self, data: bytes, policy: int = 0x30000, chip: bytes = CHIP, measurement: bytes = MEASUREMENT) -> bytes:
        """A report as a chip of this vendor signs it."""
        body = bytearray(SIGNED)
        body[0:4], body[0x34:0x38] = (2).to_bytes(4, "little"), (1).to_bytes(4, "little")
        body[0x08:0x10], body[0x50:0x90], body[0x90:0xC0] = policy.to_bytes(8, "little"), data, measurement
        body[0x180:0x188], body[0x1A0:0x1E0] = TCB, chip
        r, s = utils.decode_dss_signature(self.chip_key.sign(bytes(body), ec.ECDSA(SHA384())))
        return bytes(body) + r.to_bytes(72, "little") + s.to_bytes(72, "little") + bytes(SIZE - SIGNED - 144)


def _certificate(
    name: str,
    key: Any,
    issuer: str,
    issuer_key: rsa.RSAPrivateKey,
    is_authority: bool,
    more: Mapping[str, bytes] = NOTHING,
) -> bytes:
    subject, by = (x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)]) for text in (name, issuer))
    builder = (
        x509.CertificateBuilder(by, subject, key.public_key(), 1000)
        .not_valid_before(NOW - timedelta(days=10))
        .not_valid_after(NOW + timedelta(days=10))
    )
    if is_authority:
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    for number, value in more.items():
        oid = x509.ObjectIdentifier(AMD + number)
        builder = builder.add_extension(x509.UnrecognizedExtension(oid, value), critical=False)
    pss = padding.PSS(padding.MGF1(SHA384()), SHA384.digest_size)
    return builder.sign(issuer_key, SHA384(), rsa_padding=pss).public_bytes(Encoding.DER)


def _vendor(intermediate_is_authority: bool = True, firmware: dict[int, int] = FIRMWARE) -> Vendor:
    ark, ask = (rsa.generate_private_key(65537, 2048) for _ in range(2))
    chip_key = ec.generate_private_key(ec.SECP384R1())
    root = _certificate("ARK", ark, "ARK", ark, True)
    middle = _certificate("ASK", ask, "ARK", ark, intermediate_is_authority)
    versions = {f"3.{part}": bytes([2, 1, number]) for part, number in firmware.items()}
    leaf = _certificate("VCEK", chip_key, "ASK", ask, False, {"4": CHIP, **versions})
    return Vendor(root, (leaf, middle), chip_key)


def _other_version(certificate: bytes) -> bytes:
    """X.509 of version 6: the byte behind [0] INTEGER."""
    place = certificate.index(bytes.fromhex("a003020102")) + 4
    return certificate[:place] + b"\x05" + certificate[place + 1 :]


@pytest.fixture(scope="module")
def vendor() -> Vendor:
    return _vendor()


def roster(round_: int) -> Roster:
    return Roster(PLAN, round_, (Member(KEY.name, 0),), beacon=bytes([round_ + 1]) * 32)


def claim(round_: int) -> ClaimEntry:
    made = RoundClaim(PLAN, KEY.name, round_, 0, 0, roster(round_).document, *([b"\x05" * 32] * 2), 0, 1, *[PLAN] * 3)
    return ClaimEntry(made, KEY.sign(made.digest), "aa" * 32, "bb" * 32)


def quote(vendor: Vendor, round_: int, data: bytes | None = None, **given: Any) -> ClaimQuote:
    digest = claim(round_).claim.digest
    said = quoted_data(digest, roster(round_).beacon) if data is None else data
    return ClaimQuote(PLAN, digest, vendor.report(said, **given), vendor.chain)


def test_a_fresh_quote_is_taken(vendor: Vendor) -> None:
    made = quote(vendor, 3)
    require_quote(made, claim(3), roster(3), vendor.trusted, NOW)
    assert ClaimQuote.decode(made.encode()) == made


def test_a_stale_quote_is_refused(vendor: Vendor) -> None:
    old, digest = quote(vendor, 2), claim(3).claim.digest
    with pytest.raises(ProtocolError, match="for another claim"):
        require_quote(old, claim(3), roster(3), vendor.trusted, NOW)
    with pytest.raises(ProtocolError, match="stale"):  # the old report under the new claim's name
        require_quote(replace(old, claim=digest), claim(3), roster(3), vendor.trusted, NOW)
    early = quote(vendor, 3, quoted_data(digest, roster(2).beacon))  # before the beacon of the round was known
    with pytest.raises(ProtocolError, match="stale"):
        require_quote(early, claim(3), roster(3), vendor.trusted, NOW)
    with pytest.raises(ProtocolError, match="draw one"):
        quoted_data(digest, b"")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda v: (v.report(bytes(64))[:0x60] + b"\x01" + v.report(bytes(64))[0x61:], v.chain), "isn't signed by"),
        (lambda v: (v.report(bytes(64), policy=0xB0000), v.chain), "debug policy"),
        (lambda v: (v.report(bytes(64), chip=bytes(64)), v.chain), "another chip"),
        (lambda v: (v.report(bytes(64), measurement=bytes(48)), v.chain), "name it if you trust it"),
        (lambda v: (v.report(bytes(64)), ()), "without the certificate"),
        (lambda v: (v.report(bytes(64)), v.chain[:1]), "don't lead to the root"),
        (lambda v: (v.report(bytes(64)), (v.chain[0][:-1], v.chain[1])), "don't lead to the root"),
        (lambda v: (v.report(bytes(64)), (_other_version(v.chain[0]), v.chain[1])), "don't lead to the root"),
        (lambda v: (v.report(bytes(64)), _vendor().chain), "don't lead to the root"),
        (lambda v: (v.report(bytes(64))[:-1], v.chain), "aren't a report"),
    ],
)
def test_wrong_reports_are_refused(
    vendor: Vendor, change: Callable[[Vendor], tuple[bytes, tuple[bytes, ...]]], problem: str
) -> None:
    report, chain = change(vendor)
    with pytest.raises(ProtocolError, match=problem):
        require_report(report, chain, vendor.trusted, NOW)


def test_certificates_have_their_time_and_their_right(vendor: Vendor) -> None:
    report = vendor.report(bytes(64))
    require_report(report, vendor.chain, vendor.trusted, NOW)
    with pytest.raises(ProtocolError, match="isn't valid on 2026-07-01"):
        require_report(report, vendor.chain, vendor.trusted, NOW + timedelta(days=30))
    with pytest.raises(ProtocolError, match="older than asked for"):
        require_report(report, vendor.chain, replace(vendor.trusted, least_tcb=TCB[:-1] + b"\xff"), NOW)
    other = _vendor(intermediate_is_authority=False)
    with pytest.raises(ProtocolError, match="may not issue any"):
        require_report(other.report(bytes(64)), other.chain, other.trusted, NOW)


@pytest.mark.parametrize("firmware", [{}, {**FIRMWARE, 3: 19}, {**FIRMWARE, 9: 3}])
def test_the_firmware_is_that_of_the_chip_s_key(firmware: dict[int, int]) -> None:
    """Old firmware can't state a newer version: its key has another certificate."""
    other = _vendor(firmware=firmware)
    with pytest.raises(ProtocolError, match="other firmware than its chip's certificate"):
        require_report(other.report(bytes(64)), other.chain, other.trusted, NOW)


def test_quotes_in_a_log(vendor: Vendor, tmp_path: Path) -> None:
    store = Store(f"file://{tmp_path}/store")
    claims = [claim(round_) for round_ in range(5)]
    digests = [entry.claim.digest for entry in claims]
    documents = [quote(vendor, 0).encode(), replace(quote(vendor, 0), claim=digests[1]).encode(), b"{}"]
    odd = replace(quote(vendor, 4), certificates=(_other_version(vendor.chain[0]), vendor.chain[1]))
    objects = [*map(store.put, documents), "00" * 32, store.put(odd.encode())]
    quotes = [
        QuoteEntry(PLAN, round_, digest, object_)
        for round_, (digest, object_) in enumerate(zip(digests, objects, strict=True))
    ]
    assert [decode_entry(encode_entry(entry)) for entry in quotes] == quotes
    plan = RoundsPlan("quoted", bytes(32), KEY.name, (), (), "aa" * 32, 3, {})
    rosters = {round_: [roster(round_)] for round_ in range(5)}
    known = dict(zip(digests, claims, strict=True))
    rounds = LoggedRounds(plan, store, [*claims, *quotes], rosters, known, {})
    problems = [problem for _, problem in quoted_claims(rounds, vendor.trusted, NOW)]
    assert problems[0] == ""
    assert "stale" in problems[1]
    assert "quote" in problems[2]
    assert "isn't there" in problems[3]
    assert "don't lead to the root" in problems[4]
