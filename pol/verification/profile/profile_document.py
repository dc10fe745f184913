"""The profile document: how much honest runs of one task diverge (docs/spec/profile.md).

Canonical execution of the first segments is compared with reruns in which every reduction is done in another order. All
arithmetic is on integers over defined bits: the same task and terms give the same bytes on any machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from pol.claims.acceptance_rule import EXACT, travelled
from pol.claims.distance import SATURATION
from pol.claims.segment_claim import Rerun, Three
from pol.commitments import canonical_json
from pol.commitments.canonical_json import Fields
from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError, UnsupportedError
from pol.graph.step_program import Component
from pol.training.record import dsse_envelope
from pol.training.record.attestation import PAYLOAD_TYPE, STATEMENT_TYPE, Statement
from pol.training.storage.store import Store
from pol.training.task.task_document import LoadedTask
from pol.verification.profile.order_statistics import fresh_share
from pol.verification.profile.profile_claim import Portion, ProfileClaim, require_ratio
from pol.verification.profile.slot_noise import SlotNoise
from pol.verification.profile.state_metrics import ComponentGap, ComponentMetrics, derive

KIND = "pol/profile"
VERSION = 2
DOCUMENT_LIMIT = 1 << 26
_BITS = 256


@dataclass(frozen=True)
class PortionDetail:
    """For people: f32 words of each component, and norms of the canonical update that the chain doesn't know.

    Norms are exact, over f32 words only, in units of `pol.verification.profile.state_metrics.UNIT`.
    """

    elements: Three
    l1: Three
    linf: Three


@dataclass(frozen=True)
class RerunDetail:
    """For people: norms of the difference to the canonical end, and the squared length of the rerun's own update."""

    l1: Three
    linf: Three
    travelled: Three


@dataclass(frozen=True)
class Profile:
    """The profile document. ``programs`` are the hashes of the reordered programs, one for each rerun of a segment.

    ``slots`` isn't in the document: the noise of each slot, if the profile was measured here. Decoding doesn't check
    the claim; `profile_challenge.find_false_parts` does, against a profile of one's own.
    """

    task: str
    interval: int
    programs: tuple[bytes, ...]
    claim: ProfileClaim
    portions: tuple[PortionDetail, ...]
    reruns: tuple[RerunDetail, ...]
    slots: tuple[SlotNoise, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        expected = (self.claim.rerun_count, len(self.claim.portions), len(self.claim.reruns))
        if (len(self.programs), len(self.portions), len(self.reruns)) != expected:
            raise ProtocolError("a profile has one program for each rerun of a segment, and details of all it measured")

    @property
    def thresholds(self) -> Three:
        """The thresholds. Raises UnsupportedError: no threshold can tell honest work from cheating here."""
        return self.claim.thresholds

    @property
    def spreads(self) -> Three:
        """The ratios of the witnesses: squared relative distances, times 2^64; UnsupportedError if one has none."""
        if not self.claim.reruns:
            return EXACT
        parameter, buffer, optimizer = (
            require_ratio(*self.claim.sums(component, witness))
            for component, witness in zip(Component, self.claim.witnesses, strict=True)
        )
        return parameter, buffer, optimizer

    @property
    def coverage(self) -> Fraction:
        """A lower bound on the probability that reruns with a fresh seed stay within ``spreads``: R / (R + 1).

        It assumes nothing about the distribution and holds for all profiled segments at once. Take for each seed the
        greatest ratio over them: of R + 1 exchangeable numbers the fresh one is the only greatest with probability
        1 / (R + 1) at most. It covers profiled segments and reordered reruns; ``margin`` covers the rest (later
        segments, other hardware). 1 in exact mode, which allows no distance.
        """
        return fresh_share(self.claim.rerun_count) if self.claim.rerun_count else Fraction(1)

    @property
    def digest(self) -> bytes:
        """The keccak-256 of the document."""
        return keccak256(self.encode())

    def metrics(self, component: Component, index: int) -> ComponentMetrics | None:
        """The distance of a rerun's end from the canonical end; None if the component has no numbers."""
        c = component - 1
        portion, rerun = self.portions[index // self.claim.rerun_count], self.reruns[index]
        distance, reference = self.claim.sums(component, index)
        elements = portion.elements[c]
        if not elements:
            return None
        unfit = int(distance >= SATURATION or reference >= SATURATION)
        update = ComponentGap(elements, portion.l1[c], travelled(reference), portion.linf[c], unfit, 0)
        gap = ComponentGap(elements, rerun.l1[c], travelled(distance), rerun.linf[c], unfit, 0)
        return derive(update, gap, ComponentGap(elements, 0, rerun.travelled[c], 0, unfit, 0))

    def encode(self) -> bytes:
        """The canonical bytes of the document.

        Raises:
            UnsupportedError: there are no thresholds, so there is no such document.
        """
        claim = self.claim
        portions = [
            {"end": p.end.hex(), "references": _texts(p.references), "elements": list(d.elements), **_norms(d)}
            for p, d in zip(claim.portions, self.portions, strict=True)
        ]
        reruns = [
            {"end": r.end.hex(), "distances": _texts(r.distances), "travelled": _texts(d.travelled), **_norms(d)}
            for r, d in zip(claim.reruns, self.reruns, strict=True)
        ]
        return canonical_json.encode(
            {
                "kind": KIND,
                "version": VERSION,
                "task": self.task,
                "interval": self.interval,
                "margin": claim.margin,
                "programs": [program.hex() for program in self.programs],
                "portions": portions,
                "reruns": reruns,
                "witnesses": list(claim.witnesses),
                "root": claim.root.hex(),
                "spreads": _texts(self.spreads),
                "thresholds": _texts(self.thresholds),
                "coverage": f"{self.coverage.numerator}/{self.coverage.denominator}",
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> Profile:
        """The profile in a document."""
        what = "the profile"
        document = canonical_json.decode(data, what)
        canonical_json.require_version(document, what, KIND, VERSION)
        fields = Fields(document, what, _MEMBERS)
        portions = [Fields(item, f"{what}.portions[{i}]", _PORTION) for i, item in enumerate(fields.items("portions"))]
        reruns = [Fields(item, f"{what}.reruns[{i}]", _RERUN) for i, item in enumerate(fields.items("reruns"))]
        claim = ProfileClaim(
            margin=fields.integer("margin"),
            portions=tuple(Portion(item.hash("end"), _decimals(item, "references")) for item in portions),
            reruns=tuple(Rerun(item.hash("end"), _decimals(item, "distances")) for item in reruns),
            witnesses=_three(fields.integers("witnesses"), "witnesses"),
        )
        result = cls(
            task=fields.digest("task"),
            interval=fields.integer("interval", 1),
            programs=tuple(fields.hashes("programs")),
            claim=claim,
            portions=tuple(
                PortionDetail(_counts(item, "elements"), _decimals(item, "l1"), _decimals(item, "linf"))
                for item in portions
            ),
            reruns=tuple(
                RerunDetail(_decimals(item, "l1"), _decimals(item, "linf"), _decimals(item, "travelled"))
                for item in reruns
            ),
        )
        try:
            follows = result.encode() == data
        except UnsupportedError as error:
            raise ProtocolError(f"{what} has no threshold: {error}") from error
        if not follows:
            raise ProtocolError(f"{what} contradicts itself: root, spreads, thresholds or coverage don't follow")
        return result


_MEMBERS = (
    *("kind", "version", "task", "interval", "margin", "programs", "portions", "reruns", "witnesses"),
    *("root", "spreads", "thresholds", "coverage"),
)
_PORTION = ("end", "references", "elements", "l1", "linf")
_RERUN = ("end", "distances", "travelled", "l1", "linf")


def load_profile(store: Store, digest: str, task: LoadedTask) -> Profile:
    """The profile with this digest. Raises ProtocolError: it isn't a profile of this task, or isn't well-formed."""
    result = Profile.decode(store.get(digest, limit=DOCUMENT_LIMIT))
    if result.task != task.digest or result.interval != task.document.interval:
        raise ProtocolError(f"this is a profile of task {result.task}, not of task {task.digest}")
    return result


def _norms(detail: PortionDetail | RerunDetail) -> dict[str, list[str]]:
    return {"l1": _texts(detail.l1), "linf": _texts(detail.linf)}


def _texts(numbers: Three) -> list[str]:
    return [str(number) for number in numbers]


def _decimals(fields: Fields, name: str) -> Three:
    return _three(fields.decimals(name, _BITS), name)


def _counts(fields: Fields, name: str) -> Three:
    counts = _three(fields.integers(name), name)
    if min(counts) < 0:
        raise ProtocolError(f"{name} of a profile are counts, not {list(counts)}")
    return counts


def _three(numbers: Sequence[int], name: str) -> Three:
    if len(numbers) != len(Component):
        raise ProtocolError(f"a profile has {len(Component)} {name}, one for each component, not {len(numbers)}")
    return numbers[0], numbers[1], numbers[2]


PREDICATE_TYPE = "urn:pol:profile:v2"


def sign(profile: Profile, key: Ed25519PrivateKey) -> bytes:
    """The signed envelope. Raises UnsupportedError: the profile has no thresholds, so there is no document to sign."""
    return dsse_envelope.seal(PAYLOAD_TYPE, canonical_json.encode(statement(profile)), key).encode()


def statement(profile: Profile) -> Statement:
    """The signed statement: the document by its name in a store and by its SHA-256, and its task."""
    document = profile.encode()
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": profile.digest.hex(), "digest": {"sha256": hashlib.sha256(document).hexdigest()}}],
        "predicateType": PREDICATE_TYPE,
        "predicate": {"task": profile.task, "thresholds": [str(threshold) for threshold in profile.thresholds]},
    }


def verify(envelope: bytes, profile: Profile, keys: Sequence[Ed25519PublicKey], threshold: int = 1) -> None:
    """Check that at least ``threshold`` of these keys have signed this profile.

    Raises:
        ProtocolError: fewer have, or the envelope is about something else.
    """
    opened = dsse_envelope.Envelope.decode(envelope)
    opened.verify(keys, threshold)
    if (opened.payload_type, opened.payload) != (PAYLOAD_TYPE, canonical_json.encode(statement(profile))):
        raise ProtocolError(f"the envelope is not about profile {profile.digest.hex()} of task {profile.task}")
