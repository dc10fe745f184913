"""Builds a plan from captured steps: phases, where each of their slots comes from, and data for each seat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pol.arithmetic.primitives import Words
from pol.commitments import canonical_json
from pol.commitments.program_hash import program_hash
from pol.commitments.tensor import constants_root, tensor_root
from pol.errors import ProtocolError
from pol.graph.captured_step import Capture
from pol.rounds.plan.rounds_plan import ANY, NO_INITIAL, OWN, Constants, InitialValue, Phase, RoundsPlan, SourceRule
from pol.training.storage.store import Store
from pol.training.task import task_tensors


@dataclass(frozen=True)
class From:
    """Where a slot comes from: a slot of a phase, ``lag`` rounds before, of a worker (`SourceRule.of`).

    With ``starts`` it begins with the value in the capture, where there is no such claim yet. A worker that joins
    ``inherits`` it from the first member; otherwise it begins with that value, too.
    """

    phase: str
    slot: str
    of: str = OWN
    lag: int = 0
    starts: bool = False
    inherits: bool = False


ALWAYS = From("", "", starts=True)
"""A slot that has the value of the capture in each claim."""


@dataclass(frozen=True)
class _Draft:
    name: str
    capture: Capture
    sources: Mapping[str, From]
    data: Sequence[Sequence[Words]]
    steps: int
    parts: int
    members: int
    author: str
    units: int


class PlanBuilder:
    """Collects phases in the order of their execution; `build` stores them and gives the plan.

    Data of seats go into ``vaults``, one for each seat: `SealedStore`, where not everybody may read them.
    """

    def __init__(self, store: Store, vaults: Sequence[Store] = ()) -> None:
        self._store, self._vaults = store, vaults
        self._drafts: list[_Draft] = []

    def phase(
        self,
        name: str,
        capture: Capture,
        sources: Mapping[str, From],
        *,
        data: Sequence[Sequence[Words]] = (),
        steps: int = 1,
        parts: int = 1,
        members: int = 0,
        author: str = ANY,
        units: int = 0,
    ) -> None:
        """Add a phase. ``data`` are the constants of each seat, by default those of the capture for all.

        ``steps`` are those of one claim, ``parts`` the claims of a worker in a round, ``members`` the size of the
        roster that the phase is for, 0 for any; ``author`` and ``units`` as in `Phase`.

        Raises:
            ProtocolError: a slot of the program has no source, or there is no such slot.
        """
        slots = set(capture.names.slots)
        if wrong := sorted(slots ^ set(sources)):
            raise ProtocolError(f"phase {name}: give each slot of the program a source, and no other: {wrong[0]}")
        data = data or [capture.constants]
        self._drafts.append(_Draft(name, capture, sources, data, steps, parts, members, author, units))

    def build(
        self, system: str, coordinator: str, nonce: bytes, rounds: int, options: Mapping[str, str] | None = None
    ) -> RoundsPlan:
        """Store programs, constants, initial values and the plan.

        Raises:
            ProtocolError: a source names a phase or a slot that doesn't exist.
        """
        values: list[InitialValue] = []
        words: list[Words] = []
        numbers: dict[bytes, int] = {}

        def initial(draft: _Draft, name: str, at: int) -> int:
            type_, found = draft.capture.program.slots[at].type, draft.capture.state[at]
            root = tensor_root(type_, found)
            if root not in numbers:
                numbers[root] = len(values)
                values.append(InitialValue(f"{len(values)}.{name}", type_, root))
                words.append(found)
            return numbers[root]

        def rule(draft: _Draft, at: int, name: str) -> SourceRule:
            source = draft.sources[name]
            number = initial(draft, name, at) if source.starts else NO_INITIAL
            slot = self._slot(source) if source.phase else 0
            return SourceRule(source.phase, slot, source.of, source.lag, number, source.inherits)

        phases = []
        for draft in self._drafts:
            rules = tuple(rule(draft, at, name) for at, name in enumerate(draft.capture.names.slots))
            phases.append(self._stored(draft, rules))
        if not values:  # a file of tensors isn't empty
            initial(self._drafts[0], self._drafts[0].capture.names.slots[0], 0)
        file = task_tensors.pieces([value.name for value in values], [value.type for value in values], words)
        plan = RoundsPlan(
            system,
            nonce,
            coordinator,
            tuple(phases),
            tuple(values),
            self._store.put_pieces(file),
            rounds,
            dict(options or {}),
        )
        self._store.put(plan.encode())
        return plan

    def _slot(self, source: From) -> int:
        found = {
            draft.capture.names.slots.index(source.slot)
            for draft in self._drafts
            if draft.name == source.phase and source.slot in draft.capture.names.slots
        }
        if len(found) != 1:
            raise ProtocolError(
                f"slot {source.slot} of phase {source.phase} has {len(found)} places: each variant of a phase needs it "
                "at the same one"
            )
        return found.pop()

    def _stored(self, draft: _Draft, rules: tuple[SourceRule, ...]) -> Phase:
        program, names, store = draft.capture.program, draft.capture.names, self._store
        vaults = [store] * len(draft.data) if len(draft.data) == 1 or not self._vaults else self._vaults
        if len(vaults) != len(draft.data):
            raise ProtocolError(f"phase {draft.name} has data for {len(draft.data)} seats: give each of them a vault")
        constants = [
            Constants(
                constants_root(program.constants, words),
                vault.put_pieces(task_tensors.pieces(names.constants, program.constants, list(words))),
            )
            for words, vault in zip(draft.data, vaults, strict=True)
        ]
        return Phase(
            draft.name,
            store.put(program.to_bytes()),
            program_hash(program),
            store.put(canonical_json.encode(names.to_dict())),
            tuple(constants),
            rules,
            draft.steps,
            draft.parts,
            draft.members,
            draft.author,
            draft.units,
        )
