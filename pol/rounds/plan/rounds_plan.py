"""The plan of a training in rounds: phases, rules of their sources, initial values (docs/spec/rounds.md, "Plan")."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pol.commitments import canonical_json
from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError
from pol.graph.tensor_type import DType, TensorType
from pol.rounds.worker_key import require_name

KIND, VERSION = "pol/rounds-plan", 1
DOCUMENT_LIMIT = 1 << 26
OWN, MEMBER, PARTNER, ROUTE, PART, HOLDER, ARRIVAL = "own", "member", "partner", "route", "part", "holder", "arrival"
_NUMBERS = {OWN: (0,), MEMBER: (1,), PARTNER: (0,), ROUTE: (1, 2), PART: (0,), HOLDER: (1,), ARRIVAL: (1,)}
"""How many numbers follow a kind."""
ANY_PART = -1
ANY = "any"
_NUMBER = re.compile(r"0|[1-9][0-9]{0,9}")
NO_INITIAL = -1
MAX_LAG = 1 << 16
UNITS_BITS = 112


@dataclass(frozen=True)
class SourceRule:
    """Where a slot comes from: a slot of the end of a phase's claim, ``lag`` rounds before, by the worker ``of``.

    ``of`` is `OWN`, `PART`, `PARTNER`, ``"member:2"``, ``"route:0"``, ``"route:0:3"`` (of part 3), ``"holder:0"`` or
    ``"arrival:0"``, whose lag is the most that the round of its claim may lie back. ``initial`` is the index of the
    value where there is no such claim, or `NO_INITIAL`. Without a phase, the slot always has its initial value. A
    worker that joins has no claim of the round before: it takes the slot from that of the first member if it
    ``inherits``, else it begins with the initial value.
    """

    phase: str
    slot: int
    of: str = OWN
    lag: int = 0
    initial: int = NO_INITIAL
    inherits: bool = False

    def __post_init__(self) -> None:
        kind, *numbers = self.of.split(":")
        if len(numbers) not in _NUMBERS.get(kind, ()) or not all(map(_is_number, numbers)):
            known = "own, part, partner, member:K, route:K, route:K:PART, holder:K or arrival:K"
            raise ProtocolError(f"a source of {self.of!r}: it is of {known}")
        if self.lag not in (0, 1) and not (kind == ARRIVAL and self.lag > 1):
            raise ProtocolError(f"a source {self.lag} rounds before: a lag is 0 or 1, that of an arrival 1 or more")
        if not self.phase and self.initial < 0:
            raise ProtocolError("a source without a phase has an initial value")

    @property
    def kind(self) -> str:
        """`OWN`, `MEMBER`, `PARTNER`, `ROUTE`, `PART`, `HOLDER` or `ARRIVAL`."""
        return self.of.split(":")[0]

    @property
    def index(self) -> int:
        """K of ``member:K``, ``route:K``, ``holder:K`` and ``arrival:K``."""
        return int([*self.of.split(":"), "0"][1])

    @property
    def part(self) -> int:
        """The part that ``route:K:PART`` names, or `ANY_PART`."""
        return int([*self.of.split(":"), "", ""][2] or ANY_PART)


@dataclass(frozen=True)
class Constants:
    """Constants of a phase for one seat: their root, and the object that holds them."""

    root: bytes
    object: str


@dataclass(frozen=True)
class Phase:
    """One kind of claim. ``members`` is the size of the roster that it is for, 0 for any.

    ``program`` and ``names`` are digests of objects. ``constants`` has one entry for each seat, or one for all.
    ``author`` makes its claims: `ANY` member, or only ``"member:K"`` or ``"route:K"``, as in `SourceRule.of`. ``units``
    is the work that one claim counts for, by which shares are paid; zero where members make the same claim.
    """

    name: str
    program: str
    program_hash: bytes
    names: str
    constants: tuple[Constants, ...]
    sources: tuple[SourceRule, ...]
    steps: int = 1
    parts: int = 1
    members: int = 0
    author: str = ANY
    units: int = 0

    def __post_init__(self) -> None:
        rule = self.author_rule
        if rule and (rule.kind not in (MEMBER, ROUTE) or rule.part != ANY_PART):
            raise ProtocolError(f"the author of phase {self.name} is {self.author}: it is any, member:K or route:K")
        if not self.sources or not self.constants or self.steps < 1 or self.parts < 1:
            raise ProtocolError(f"phase {self.name} needs slots with sources, constants, steps and parts")

    @cached_property
    def author_rule(self) -> SourceRule | None:
        """Its author as that of a source of the same round and part; none if any member is."""
        return None if self.author == ANY else SourceRule(self.name, 0, self.author)

    def first_step(self, round_: int, part: int) -> int:
        """The first step of a claim."""
        return (round_ * self.parts + part) * self.steps

    def constants_of(self, seat: int) -> Constants:
        """The constants of a seat. Raises ProtocolError: the plan has no such seat."""
        if len(self.constants) == 1:
            return self.constants[0]
        if seat >= len(self.constants):
            raise ProtocolError(f"phase {self.name} has data for {len(self.constants)} seats, none for seat {seat}")
        return self.constants[seat]


@dataclass(frozen=True)
class InitialValue:
    """A tensor that a slot starts with where nothing gives it."""

    name: str
    type: TensorType
    root: bytes


@dataclass(frozen=True)
class RoundsPlan:
    """The plan; ``values`` is the object that holds the initial values. ``options`` are for people.

    ``registration`` isn't in the document: what a chain's id of the plan is the hash of (`WorkerBonds.registration`).
    """

    system: str
    nonce: bytes
    coordinator: str
    phases: tuple[Phase, ...]
    initial: tuple[InitialValue, ...]
    values: str
    rounds: int
    options: Mapping[str, str]
    registration: bytes = b""

    def __post_init__(self) -> None:
        for phase in self.phases:
            for rule in phase.sources:
                if rule.phase and rule.phase not in self._variants:
                    raise ProtocolError(f"a slot of phase {phase.name} comes from {rule.phase}, which is no phase")
                if rule.initial >= len(self.initial):
                    raise ProtocolError(f"phase {phase.name} names initial value {rule.initial}, and there is none")
            if phase.units and len(self._variants[phase.name]) > 1:
                # No contract knows the size of a roster: who made a claim of each variant would be paid for all.
                raise ProtocolError(f"phase {phase.name} has variants for sizes of rosters and counts: give it 0 units")

    @cached_property
    def digest(self) -> bytes:
        """The plan's name, which all that is signed has: its id on a chain, or the digest of its document."""
        return keccak256(self.registration or self.encode())

    def phase(self, index: int) -> Phase:
        """The phase that a claim names. Raises ProtocolError: the plan has none of this index."""
        if not 0 <= index < len(self.phases):
            raise ProtocolError(f"the plan has {len(self.phases)} phases, none with the index {index}")
        return self.phases[index]

    def phase_name(self, index: int) -> str:
        """The name of the phase that a claim names, or its index."""
        return self.phases[index].name if 0 <= index < len(self.phases) else f"phase {index}"

    def phase_index(self, name: str, members: int) -> int:
        """The index of the phase of this name for a roster of so many members. Raises ProtocolError: there is none."""
        sizes = self._variants.get(name, {})
        index = sizes.get(members, sizes.get(0))
        if index is None:
            raise ProtocolError(f"the plan has no phase {name} for {members} members")
        return index

    @cached_property
    def _variants(self) -> dict[str, dict[int, int]]:
        """Indices of phases by their names and sizes of rosters."""
        found: dict[str, dict[int, int]] = {}
        for index, phase in enumerate(self.phases):
            sizes = found.setdefault(phase.name, {})
            is_second = sizes.setdefault(phase.members, index) != index
            if is_second or (0 in sizes and len(sizes) > 1):
                problem = f"a plan has two phases {phase.name} for one roster: give each a name or a size of its own"
                raise ProtocolError(problem)
        return found

    def encode(self) -> bytes:
        """The canonical bytes of the document."""
        return canonical_json.encode(
            {
                "kind": KIND,
                "version": VERSION,
                "system": self.system,
                "nonce": self.nonce.hex(),
                "coordinator": self.coordinator,
                "phases": [_phase_out(phase) for phase in self.phases],
                "initial": [
                    {
                        "name": value.name,
                        "dtype": value.type.dtype.name,
                        "shape": list(value.type.shape),
                        "root": value.root.hex(),
                    }
                    for value in self.initial
                ],
                "values": self.values,
                "rounds": self.rounds,
                "options": dict(self.options),
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> RoundsPlan:
        """The plan in a document. Raises ProtocolError: not the canonical bytes of a plan."""
        names = [name for name in cls.__dataclass_fields__ if name != "registration"]
        given = canonical_json.Fields.of_document(data, "the plan", KIND, VERSION, names)
        return cls(
            given.text("system"),
            given.octets("nonce", 32),
            require_name(given.text("coordinator"), "the coordinator"),
            tuple(map(_phase_in, given.items("phases"))),
            tuple(map(_initial_in, given.items("initial"))),
            given.digest("values"),
            given.integer("rounds", 1),
            given.texts("options"),
        )


def _is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None and int(text) < 1 << 32


def _phase_out(phase: Phase) -> dict[str, Any]:
    # Plans of before authors and units have none.
    author = {} if phase.author == ANY else {"author": phase.author}
    units = {"units": str(phase.units)} if phase.units else {}
    return {
        **author,
        **units,
        "name": phase.name,
        "program": phase.program,
        "program_hash": phase.program_hash.hex(),
        "names": phase.names,
        "constants": [{"root": entry.root.hex(), "object": entry.object} for entry in phase.constants],
        "sources": [
            {
                "phase": rule.phase,
                "slot": rule.slot,
                "of": rule.of,
                "lag": rule.lag,
                "initial": rule.initial,
                "inherits": rule.inherits,
            }
            for rule in phase.sources
        ],
        "steps": phase.steps,
        "parts": phase.parts,
        "members": phase.members,
    }


def _phase_in(item: object) -> Phase:
    later = [name for name in ("author", "units") if isinstance(item, dict) and name in item]
    known = [name for name in Phase.__dataclass_fields__ if name not in ("author", "units")]
    given = canonical_json.Fields(item, "a phase", [*known, *later])
    constants = [canonical_json.Fields(entry, "constants", ["root", "object"]) for entry in given.items("constants")]
    members = list(SourceRule.__dataclass_fields__)
    rules = [canonical_json.Fields(entry, "a source", members) for entry in given.items("sources")]
    return Phase(
        given.text("name"),
        given.digest("program"),
        given.hash("program_hash"),
        given.digest("names"),
        tuple(Constants(entry.hash("root"), entry.digest("object")) for entry in constants),
        tuple(
            SourceRule(
                rule.text("phase"),
                rule.integer("slot", 0, (1 << 31) - 1),
                rule.text("of"),
                rule.integer("lag", 0, MAX_LAG),
                rule.integer("initial", NO_INITIAL),
                rule.truth("inherits"),
            )
            for rule in rules
        ),
        given.integer("steps", 1),
        given.integer("parts", 1),
        given.integer("members"),
        given.text("author") if "author" in later else ANY,
        given.decimal("units", UNITS_BITS) if "units" in later else 0,
    )


def _initial_in(item: object) -> InitialValue:
    given = canonical_json.Fields(item, "an initial value", ["name", "dtype", "shape", "root"])
    dtype = given.text("dtype")
    if dtype not in DType.__members__:
        raise ProtocolError(f"an initial value has the type {dtype}: it is F32 or I32")
    return InitialValue(
        given.text("name"), TensorType(DType[dtype], tuple(given.integers("shape"))), given.hash("root")
    )
