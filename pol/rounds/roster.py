"""Who takes part in a round, and draws of partners and routes from a beacon (docs/spec/rounds.md, "Roster")."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from pol.commitments import canonical_json
from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError
from pol.rounds.typed_message import message_digest
from pol.rounds.worker_key import require_name, require_signed

KIND, VERSION = "pol/roster", 1
ROSTER_TYPE = "Roster(bytes32 plan,uint64 round,bytes32 document)"
MAX_MEMBERS = 4096
ROSTER_LIMIT = 1 << 20
"""Bytes of a document."""
SHOWN_LIMIT = 124_000
"""Bytes of one that a member can show on a chain: nodes take transactions of 128 KiB, and silence costs its stake."""
MAX_SEATS = 1000
"""Members whose roster can be shown, with short roles."""

_ROUND = re.compile(rb'"round":([0-9]{1,19}),"routes":')
"""The roster's round in its canonical bytes: in a text of it quotation marks are escaped."""


@dataclass(frozen=True)
class Member:
    """A worker in a round. ``seat`` says which data are its own, ``joined`` is the first round that it was in."""

    worker: str
    seat: int
    joined: int = 0
    weight: int = 1
    role: str = "worker"


@dataclass(frozen=True)
class Arrival:
    """A claim of a round before that a round takes: of the member at a place of its roster."""

    member: int
    round: int


@dataclass(frozen=True)
class Roster:
    """The members of a round, in order; of each its partner's place; of each part the places of its route.

    While it is ``provisional``, members may still fall out: the final one has those whose messages have come, and the
    digest of the provisional one in ``begun``, if the round has one.
    ``arrivals`` are claims of rounds before, in the order in which this round takes them.
    """

    plan: bytes
    round: int
    members: tuple[Member, ...]
    partners: tuple[int, ...] = ()
    routes: tuple[tuple[int, ...], ...] = ()
    beacon: bytes = b""
    provisional: bool = False
    arrivals: tuple[Arrival, ...] = ()
    begun: bytes = b""

    def __post_init__(self) -> None:
        if not 1 <= len(self.members) <= MAX_MEMBERS:
            raise ProtocolError(f"a roster has 1 to {MAX_MEMBERS} members, not {len(self.members)}")
        for what, values in (
            ("worker", [member.worker for member in self.members]),
            ("seat", [member.seat for member in self.members]),
        ):
            if len(set(values)) != len(values):
                raise ProtocolError(f"a {what} stands twice in the roster of round {self.round}")
        if self.partners and len(self.partners) != len(self.members):
            raise ProtocolError(f"the roster of round {self.round} gives {len(self.partners)} partners")
        routed = (place for route in self.routes for place in route)
        for place in (*self.partners, *routed, *(arrival.member for arrival in self.arrivals)):
            if not 0 <= place < len(self.members):
                raise ProtocolError(f"the roster of round {self.round} has no member {place}")
        if any(member.joined > self.round for member in self.members):
            raise ProtocolError(f"a member of the roster of round {self.round} joins later")

    def ended(self, members: Iterable[Member]) -> Roster:
        """The final roster of a round that has begun with this one."""
        return Roster(self.plan, self.round, tuple(members), begun=self.document)

    def place(self, worker: str) -> int:
        """The place of a worker. Raises ProtocolError: it isn't a member."""
        for place, member in enumerate(self.members):
            if member.worker == worker:
                return place
        raise ProtocolError(f"{worker} is no member of round {self.round}")

    def encode(self) -> bytes:
        """The canonical bytes of the document."""
        members = [
            {"worker": m.worker, "role": m.role, "seat": m.seat, "weight": m.weight, "joined": m.joined}
            for m in self.members
        ]
        return canonical_json.encode(
            {
                "kind": KIND,
                "version": VERSION,
                "plan": self.plan.hex(),
                "round": self.round,
                "members": members,
                "partners": list(self.partners),
                "routes": [list(route) for route in self.routes],
                "beacon": self.beacon.hex(),
                "provisional": self.begun.hex() or self.provisional,
                "arrivals": [{"member": arrival.member, "round": arrival.round} for arrival in self.arrivals],
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> Roster:
        """The roster in a document. Raises ProtocolError: not the canonical bytes of a roster."""
        names = ["plan", "round", "members", "partners", "routes", "beacon", "provisional", "arrivals"]
        given = canonical_json.Fields.of_document(data, "the roster", KIND, VERSION, names)
        routes = [canonical_json.Fields({"route": route}, "a route", ["route"]) for route in given.items("routes")]
        arrivals = [canonical_json.Fields(item, "an arrival", ["member", "round"]) for item in given.items("arrivals")]
        begun = given.hash("provisional") if isinstance(given.value("provisional"), str) else b""
        return cls(
            given.hash("plan"),
            given.integer("round"),
            tuple(map(_member, given.items("members"))),
            tuple(given.integers("partners")),
            tuple(tuple(route.integers("route")) for route in routes),
            given.octets("beacon", 0, 32),
            not begun and given.truth("provisional"),
            tuple(Arrival(arrival.integer("member"), arrival.integer("round")) for arrival in arrivals),
            begun,
        )

    @classmethod
    def decode_signed(cls, data: bytes, plan: bytes, coordinator: str, signature: bytes) -> Roster | None:
        """The roster in a document that a coordinator has signed for a plan; nothing, undecoded, if it hasn't."""
        round_ = signed_round(data, plan, coordinator, signature)
        if round_ is None:
            return None
        roster = cls.decode(data)
        if (roster.plan, roster.round) != (plan, round_):
            raise ProtocolError(f"the coordinator has signed the roster of another plan or round for round {round_}")
        return roster

    @cached_property
    def document(self) -> bytes:
        """The digest of the document, which claims name."""
        return keccak256(self.encode())

    @property
    def digest(self) -> bytes:
        """The digest that the coordinator signs."""
        return _digest(self.plan, self.round, self.document)


def signed_round(data: bytes, plan: bytes, coordinator: str, signature: bytes) -> int | None:
    """The round for which a coordinator has signed a text, roster or not; nothing if it hasn't."""
    stands = _ROUND.search(data)
    if stands is None:
        return None
    round_ = int(stands[1])
    try:
        require_signed(_digest(plan, round_, keccak256(data)), signature, coordinator, f"the roster of {round_}")
    except ProtocolError:
        return None
    return round_


def drawn_order(beacon: bytes, round_: int, part: int, count: int) -> list[int]:
    """The numbers 0 .. count-1 in an order that a beacon draws."""

    def rank(number: int) -> bytes:
        return keccak256(beacon + round_.to_bytes(8, "big") + part.to_bytes(4, "big") + number.to_bytes(4, "big"))

    return sorted(range(count), key=rank)


def settled_order(round_: int, members: Sequence[Member]) -> list[int]:
    """The places of members by their names, those that join in this round last: no choice of the coordinator's."""
    return sorted(range(len(members)), key=lambda place: (0 < members[place].joined == round_, members[place].worker))


def drawn_partners(beacon: bytes, round_: int, members: Sequence[Member]) -> tuple[int, ...]:
    """The partner of each member: neighbors in the drawn order; an odd one out is its own."""
    settled, partners = settled_order(round_, members), list(range(len(members)))
    order = [settled[rank] for rank in drawn_order(beacon, round_, 0, len(members))]
    for first, second in zip(order[::2], order[1::2], strict=False):
        partners[first], partners[second] = second, first
    return tuple(partners)


def drawn_routes(beacon: bytes, round_: int, members: Sequence[Member], parts: int) -> tuple[tuple[int, ...], ...]:
    """The route of each part through the stages: members with the role ``stage K`` take the parts in a drawn order."""
    settled, count = settled_order(round_, members), len({member.role for member in members})
    stages = [[place for place in settled if members[place].role == stage_role(k)] for k in range(count)]
    if not all(stages):
        raise ProtocolError("a stage has no member: each member's role is a stage, from 0 on")
    routes = [[0] * len(stages) for _ in range(parts)]
    for stage, places in enumerate(stages):
        for at, part in enumerate(drawn_order(beacon, round_, stage, parts)):
            routes[part][stage] = places[at % len(places)]
    return tuple(map(tuple, routes))


def stage_role(stage: int) -> str:
    """The role of members whose routes a beacon draws."""
    return f"stage {stage}"


def require_drawn(roster: Roster, previous: Collection[bytes] = ()) -> None:
    """Check partners and routes of a roster against its beacon; ``previous`` are beacons that rounds before have used.

    Routes without a beacon are the coordinator's choice.

    Raises:
        ProtocolError: they are chosen, or a beacon is used again.
    """
    if roster.routes and roster.beacon:
        if roster.beacon in previous:
            raise ProtocolError(f"the roster of round {roster.round} draws routes from the beacon of another round")
        if roster.routes != drawn_routes(roster.beacon, roster.round, roster.members, len(roster.routes)):
            raise ProtocolError(f"the routes in round {roster.round} aren't those that its beacon draws")
    if not roster.partners:
        return
    if len(roster.beacon) != 32 or roster.beacon in previous:
        raise ProtocolError(f"the roster of round {roster.round} draws partners without a beacon of its own")
    if roster.partners != drawn_partners(roster.beacon, roster.round, roster.members):
        raise ProtocolError(f"the partners in round {roster.round} aren't those that its beacon draws")


def _digest(plan: bytes, round_: int, document: bytes) -> bytes:
    return message_digest(ROSTER_TYPE, [plan, round_, document])


def _member(item: object) -> Member:
    given = canonical_json.Fields(item, "a member", ["worker", "role", "seat", "weight", "joined"])
    return Member(
        require_name(given.text("worker"), "a member"),
        given.integer("seat", 0, (1 << 32) - 1),
        given.integer("joined"),
        given.integer("weight", 0, (1 << 32) - 1),
        given.text("role"),
    )
