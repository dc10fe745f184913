"""A quote that names a claim and the beacon of its round (docs/spec/rounds.md, "Quotes")."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.hashes import SHA384

from pol.commitments import canonical_json
from pol.errors import OperationalError, ProtocolError
from pol.rounds.log.log_entries import ClaimEntry, QuoteEntry
from pol.rounds.log.logged_rounds import LoggedRounds
from pol.rounds.roster import Roster

SIZE, SIGNED = 0x4A0, 0x2A0
DATA_SIZE, MEASUREMENT_SIZE, TCB_SIZE = 64, 48, 8
_P384_SHA384, _DEBUG = 1, 1 << 19
_HARDWARE = "1.3.6.1.4.1.3704.1.4"
"""The extension of a VCEK that names its chip."""
_FIRMWARE = "1.3.6.1.4.1.3704.1.3."
"""Extensions of a VCEK with the versions of the firmware that its key belongs to: SPL of the boot loader (1), TEE (2),
SNP (3), microcode (8), and FMC (9) where there is one. Source: AMD, 57230, "VCEK certificate"."""
_PLACES, _PLACES_WITH_FMC = {1: 0, 2: 1, 3: 6, 8: 7}, {9: 0, 1: 1, 2: 2, 3: 3, 8: 7}
"""The byte of a TCB that holds each of them: AMD, 56860, "TCB_VERSION"."""


_UNREADABLE = (
    *(ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm),
    *(x509.InvalidVersion, x509.DuplicateExtension, x509.UnsupportedGeneralNameType),
)
"""Raised for certificates of strangers."""


@dataclass(frozen=True)
class TrustedMachines:
    """Whose word is taken: machines under ``root`` (DER) that have started from one of these measurements.

    ``least_tcb`` are the least versions of the firmware's parts, byte by byte as in a report.
    """

    root: bytes
    measurements: Collection[bytes]
    least_tcb: bytes = bytes(TCB_SIZE)


@dataclass(frozen=True)
class SnpReport:
    """The fields of a report that are checked; ``data`` are the 64 bytes that the guest has given."""

    policy: int
    data: bytes
    measurement: bytes
    reported_tcb: bytes
    chip: bytes

    @property
    def allows_debugging(self) -> bool:
        """Whether the host may look into the guest."""
        return bool(self.policy & _DEBUG)


def decode_report(report: bytes) -> SnpReport:
    """The fields of a report; its signature isn't checked."""
    if len(report) != SIZE or _number(report, 0, 4) < 2 or _number(report, 0x34, 4) != _P384_SHA384:
        raise ProtocolError(f"{len(report)} bytes aren't a report of SEV-SNP: it has {SIZE}, in version 2 or later")
    return SnpReport(
        _number(report, 0x08, 8),
        report[0x50 : 0x50 + DATA_SIZE],
        report[0x90 : 0x90 + MEASUREMENT_SIZE],
        report[0x180 : 0x180 + TCB_SIZE],
        report[0x1A0 : 0x1A0 + 64],
    )


def require_report(report: bytes, chain: Sequence[bytes], trusted: TrustedMachines, now: datetime) -> SnpReport:
    """The fields of a report that a trusted machine has signed; ``chain`` are certificates (DER) from the chip's on.

    Whether a certificate was revoked isn't looked at.
    """
    found = decode_report(report)
    key, chips, firmware = _require_chain(chain, trusted.root, now)
    r, s = (_number(report, at, 72) for at in (SIGNED, SIGNED + 72))
    try:
        key.verify(utils.encode_dss_signature(r, s), report[:SIGNED], ec.ECDSA(SHA384()))
    except InvalidSignature as error:
        raise ProtocolError("the report isn't signed by the chip of its certificate: leave it out") from error
    if chips != [found.chip]:
        raise ProtocolError("the report is of another chip than its certificate: leave it out")
    places = _PLACES_WITH_FMC if 9 in firmware else _PLACES
    if firmware != {part: found.reported_tcb[place] for part, place in places.items()}:
        raise ProtocolError("the report states other firmware than its chip's certificate: leave it out")
    if found.allows_debugging:
        raise ProtocolError("the machine lets its host look into the guest (debug policy): leave its quote out")
    if found.measurement not in trusted.measurements:
        raise ProtocolError(f"the machine has started from {found.measurement.hex()[:16]}: name it if you trust it")
    if any(part < least for part, least in zip(found.reported_tcb, trusted.least_tcb, strict=True)):
        raise ProtocolError(
            f"the machine's firmware, {found.reported_tcb.hex()}, is older than asked for: leave it out"
        )
    return found


def _require_chain(
    chain: Sequence[bytes], root: bytes, now: datetime
) -> tuple[ec.EllipticCurvePublicKey, list[bytes], dict[int, int]]:
    """The key of the first certificate of a chain that leads to a root, the chip and the firmware that it names."""
    if not chain:
        raise ProtocolError("the quote comes without the certificate of its chip: ask for it")
    try:
        certificates = [x509.load_der_x509_certificate(data) for data in (*chain, root)]
        for certificate, issuer in pairwise(certificates):
            certificate.verify_directly_issued_by(issuer)
        are_issuers = all(_may_issue(issuer) for issuer in certificates[1:])
        named = {each.oid.dotted_string: each.value for each in certificates[0].extensions}
        key = certificates[0].public_key()
    except _UNREADABLE as error:
        raise ProtocolError("the quote's certificates don't lead to the root that was named: leave it out") from error
    if not are_issuers:
        raise ProtocolError("a certificate of the quote is issued by one that may not issue any: leave it out")
    if not all(each.not_valid_before_utc <= now <= each.not_valid_after_utc for each in certificates):
        raise ProtocolError(f"a certificate of the quote isn't valid on {now:%Y-%m-%d}: ask for a new quote")
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP384R1):
        raise ProtocolError("the chip's certificate has no key on P-384: leave the quote out")
    told = {name: value.value for name, value in named.items() if isinstance(value, x509.UnrecognizedExtension)}
    # Each version is an INTEGER in DER: a tag, a length, and the number.
    parts = {int(name.rpartition(".")[2]): value for name, value in told.items() if name.startswith(_FIRMWARE)}
    wanted = {part: int.from_bytes(value[2:]) for part, value in parts.items() if part in _PLACES_WITH_FMC}
    return key, [value for name, value in told.items() if name == _HARDWARE], wanted


def _may_issue(certificate: x509.Certificate) -> bool:
    kinds = [each.value for each in certificate.extensions if isinstance(each.value, x509.BasicConstraints)]
    return any(kind.ca for kind in kinds)


def _number(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")


KIND, VERSION = "pol/quote", 1
QUOTE_LIMIT = 1 << 16
_FORMAT = "sev-snp"


@dataclass(frozen=True)
class ClaimQuote:
    """A machine's report for one claim; ``certificates`` lead from the chip's towards the root, each in DER."""

    plan: bytes
    claim: bytes
    report: bytes
    certificates: tuple[bytes, ...]

    def encode(self) -> bytes:
        """The canonical bytes of the document."""
        return canonical_json.encode(
            {
                "kind": KIND,
                "version": VERSION,
                "plan": self.plan.hex(),
                "claim": self.claim.hex(),
                "format": _FORMAT,
                "report": self.report.hex(),
                "certificates": [certificate.hex() for certificate in self.certificates],
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> ClaimQuote:
        """The quote in a document.

        Raises:
            ProtocolError: not the canonical bytes of a quote, or of another format than SEV-SNP.
        """
        names = ["plan", "claim", "format", "report", "certificates"]
        given = canonical_json.Fields.of_document(data, "the quote", KIND, VERSION, names)
        if given.text("format") != _FORMAT:
            raise ProtocolError(f"the quote has the format {given.text('format')!r}: only {_FORMAT} is read")
        items = [canonical_json.Fields({"der": item}, "a certificate", ["der"]) for item in given.items("certificates")]
        certificates = tuple(item.octets("der") for item in items)
        return cls(given.hash("plan"), given.hash("claim"), given.octets("report", SIZE), certificates)


def quoted_data(claim: bytes, beacon: bytes) -> bytes:
    """The 64 bytes that a machine has to put into its report: the claim's digest, and the beacon of its round.

    Raises:
        ProtocolError: the round has no beacon.
    """
    if len(beacon) != 32:
        raise ProtocolError("a quote is fresh by the beacon of its round, and this round has none: draw one")
    return claim + beacon


def require_quote(
    quote: ClaimQuote, claim: ClaimEntry, roster: Roster, trusted: TrustedMachines, now: datetime
) -> None:
    """Check that a trusted machine says in this round that it has made a claim."""
    digest = claim.claim.digest
    if (quote.plan, quote.claim) != (claim.claim.plan, digest) or claim.claim.roster != roster.document:
        raise ProtocolError(f"the quote is for another claim than {digest.hex()[:16]}")
    found = require_report(quote.report, quote.certificates, trusted, now)
    if found.data != quoted_data(digest, roster.beacon):
        raise ProtocolError("the quote is stale: its report names another claim, or the beacon of another round")


def quoted_claims(rounds: LoggedRounds, trusted: TrustedMachines, now: datetime) -> Iterator[tuple[ClaimEntry, str]]:
    """The claims that the log has quotes for, and what is wrong with each quote; empty if nothing is.

    Quotes aren't signed by a worker: a wrong or missing one blames nobody, its claim has no quote.
    """
    for entry in rounds.entries:
        claim = rounds.claims.get(entry.claim) if isinstance(entry, QuoteEntry) else None
        if not isinstance(entry, QuoteEntry) or claim is None:
            continue
        roster = rounds.roster_of(claim)
        try:
            if roster is None:
                raise ProtocolError("the claim's roster isn't in this log")
            data = rounds.store.get(entry.document, limit=QUOTE_LIMIT)
            require_quote(ClaimQuote.decode(data), claim, roster, trusted, now)
        except (ProtocolError, OperationalError) as error:
            yield claim, str(error)
        else:
            yield claim, ""
