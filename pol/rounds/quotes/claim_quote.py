"""A quote that names a claim and the beacon of its round (docs/spec/rounds.md, "Quotes")."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from pol.commitments import canonical_json
from pol.errors import OperationalError, ProtocolError
from pol.rounds.log.log_entries import ClaimEntry, QuoteEntry
from pol.rounds.log.logged_rounds import LoggedRounds
from pol.rounds.quotes.snp_report import SIZE, TrustedMachines, require_report
from pol.rounds.roster import Roster

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
    """Check that a trusted machine says in this round that it has made a claim.

    Raises:
        ProtocolError: it is a quote of something else, stale, or not to be trusted.
    """
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
