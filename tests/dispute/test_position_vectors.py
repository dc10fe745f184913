"""Whole games: every move, the position before it and its hash; forge plays the same file on the contract.

One game or more for every way in which a dispute ends by a move. Run this module to write the file anew.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import sha3
from eth_abi.abi import encode

from pol.arithmetic.primitives import Words
from pol.commitments.program import program_hash, program_header
from pol.commitments.tensor import constants_root
from pol.dispute.evidence import SegmentTrace
from pol.dispute.header import Header
from pol.dispute.hostile import Lie, LyingSums, LyingTrace, choices
from pol.dispute.moves import Claim, Ended, Move, Open, Pick, PickState
from pol.dispute.players import Asserter, Challenger, ReplayAsserter, ReplayChallenger, SumAsserter, SumChallenger
from pol.dispute.position import Kind, Level, Position, replay_start, sum_start
from pol.dispute.record import Record
from pol.dispute.rules import apply, is_asserters_turn
from pol.dispute.sums import SumEvidence
from pol.execution.reference import ReferenceExecutor
from pol.graph.step_program import Component, StepProgram
from pol.graph.types import TensorType

TESTS = Path(__file__).resolve().parents[1]
FILE = TESTS.parent / "fixtures" / "vectors" / "positions.json"
FIRST, STEPS = 3, 20
# docs/spec/dispute.md, "Position".
FIELDS = {
    "level": "uint8",
    "height": "uint8",
    "count": "uint32",
    "lo": "uint64",
    "hi": "uint64",
    "agreed": "bytes32",
    "claimed": "bytes32",
    "opening": "bytes32",
    "pre": "bytes32",
    "trace": "bytes32",
    "descriptor": "bytes32",
    "step": "uint64",
    "node": "uint32",
    "element": "uint64",
    "term": "uint64",
    "terms": "uint64",
    "init": "uint32",
    "instructions": "uint8",
    "instruction": "uint8",
}

# --- the games --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Picker:
    """Challenges what is right: picks the first or the last part, or the state instead of the trace."""

    last: bool
    state: bool = False

    def choose(self, position: Position, opened: bytes) -> Move:
        if position.level is Level.TRACE and self.state:
            return PickState()
        header = 112 if position.level is Level.STATE else 0
        payload = b"" if position.level is Level.BODY else opened[header:]
        return Pick(choices(position) - 1 if self.last else 0, payload)


@dataclass(frozen=True)
class Game:
    """Who plays about what."""

    name: str
    kind: Kind
    start: Position
    asserter: Asserter
    challenger: Challenger
    component: int = 0
    steps: int = 0

    def play(self, claim: Claim) -> dict[str, Any]:
        """The record, and what follows from it."""
        position, opened, moves = self.start, b"", []
        while True:
            asserters = is_asserters_turn(position)
            move = self.asserter.answer(position) if asserters else self.challenger.choose(position, opened)
            opened = move.payload if isinstance(move, Open) else b""
            moves.append(move)
            after = apply(position, move, claim)
            if isinstance(after, Ended):
                break
            position = after
        record = Record(claim, self.start, tuple(moves))
        positions = [before for before, _, _ in record.walk()]
        replay = self.kind is Kind.REPLAY
        zero = bytes(32)
        return {
            "name": self.name,
            "start": {
                "kind": int(self.kind),
                "component": self.component,
                "firstStep": FIRST if replay else 0,
                "steps": self.steps,
                "start": text((self.start.agreed if self.steps > 1 else self.start.pre) if replay else zero),
                "end": text(self.start.claimed if replay else zero),
                "x": text(zero if replay else self.start.pre),
                "y": text(zero if replay else self.start.trace),
                "sum": "0" if replay else str(int.from_bytes(self.start.claimed, "big")),
            },
            "positions": [prefixed(Record(claim, p, ()).to_dict()["start"]) for p in positions],
            "hashes": [text(p.hash()) for p in positions],
            "turns": ["asserter" if is_asserters_turn(p) else "challenger" for p in positions],
            "moves": [prefixed(move) for move in record.to_dict()["moves"]],
            "asserter_won": after.asserter_won,
        }


def values(types: Sequence[TensorType], seed: str) -> list[Words]:
    """Small f32 with few bits: the same on every machine and with every NumPy."""
    source = Random(seed)
    return [
        np.array([(source.getrandbits(11) - 1024) / 1024 for _ in range(t.numel)], np.float32)
        .view(np.uint32)
        .reshape(t.shape)
        for t in types
    ]


def games(program: StepProgram, constants: list[Words], state: list[Words]) -> list[Game]:
    executor = ReferenceExecutor(program, constants)
    long, short = (SegmentTrace(program, constants, executor, state, FIRST, steps) for steps in (STEPS, 1))
    header = Header.decode(program_header(program), program_hash(program))

    def replay(name: str, asserters: SegmentTrace, challenger: Challenger) -> Game:
        ends = asserters.state_root(FIRST), asserters.state_root(FIRST + asserters.steps)
        start = replay_start(header.nodes, header.nodes_tree, FIRST, asserters.steps, *ends)
        return Game(name, Kind.REPLAY, start, ReplayAsserter(asserters), challenger, steps=asserters.steps)

    def liar(name: str, honest: SegmentTrace, lie: Lie) -> Game:
        return replay(name, LyingTrace(honest, lie), ReplayChallenger(honest))

    def sums(name: str, component: Component, challenger: Challenger | None, lie: tuple[int, int, int] | None) -> Game:
        x, y = long.state(FIRST + STEPS), long.state(FIRST)
        honest = SumEvidence(program, component, x, y)
        claimed = honest if lie is None else LyingSums(honest, *lie)
        roots = long.state_root(FIRST + STEPS), long.state_root(FIRST)
        start = sum_start(header.slots, component, *roots, claimed.total())
        kind = Kind.DISTANCE if lie is None else Kind.REFERENCE
        return Game(name, kind, start, SumAsserter(claimed), challenger or SumChallenger(honest), component)

    return [
        liar(
            "one instruction: a lie in a long fold",
            long,
            Lie(step=11, node=1, element=7, term=66, instruction=0, bit=22),
        ),
        liar("one instruction: a lie in a tensor of leaves, one step", short, Lie(FIRST, 3, 321, 2, 0, 22)),
        replay("one instruction: a baseless challenge, gathered", long, Picker(last=False)),
        liar("a body of instructions: a lie", long, Lie(step=21, node=2, element=4, term=0, instruction=9, bit=22)),
        replay("a body of instructions: a baseless challenge, coordinates", short, Picker(last=True)),
        replay("a slot: a baseless challenge", long, Picker(last=True, state=True)),
        replay("a slot: a baseless challenge, one step", short, Picker(last=False, state=True)),
        sums("a sum: a baseless challenge", Component.PARAMETER, Picker(last=False), None),
        sums("a sum: a lie about a leaf", Component.OPTIMIZER, None, (1, 4, 7)),
        sums("a sum: integers, one leaf", Component.BUFFER, Picker(last=True), None),
        sums("another component: a baseless challenge", Component.OPTIMIZER, Picker(last=False), None),
        sums("another component: a lie", Component.PARAMETER, None, (2, 0, 1)),
    ]


# --- the file ---------------------------------------------------------------------------------------------------------


def text(data: bytes) -> str:
    return "0x" + data.hex()


def prefixed(value: Any) -> Any:
    """A record's plain values as JSON readers of the EVM want them: bytes begin with 0x."""
    if isinstance(value, dict):
        return {k: v if k == "move" else prefixed(v) for k, v in value.items()}
    if isinstance(value, list):
        return [prefixed(v) for v in value]
    return "0x" + value if isinstance(value, str) else value


def bare(value: Any) -> Any:
    """Inverse of `prefixed`."""
    if isinstance(value, dict):
        return {k: v if k == "move" else bare(v) for k, v in value.items()}
    if isinstance(value, list):
        return [bare(v) for v in value]
    return value.removeprefix("0x") if isinstance(value, str) else value


def vectors() -> dict[str, Any]:
    # Not at the top: a module that runs as a script finds it only after `tests` has been put on the path.
    import toy

    program = toy.build()
    order = np.array([Random(f"order {i}").randrange(toy.SAMPLES) for i in range(toy.ORDER.numel)], np.uint32)
    constants = [*values([toy.DATA], "data"), order.reshape(toy.ORDER.shape)]
    state = [*values([toy.WEIGHT, toy.WEIGHT], "state"), np.array(FIRST, np.uint32)]
    claim = Claim(program_hash(program), constants_root(program.constants, constants))
    return {
        "program": text(claim.program),
        "constants": text(claim.constants),
        "header": text(program_header(program)),
        "games": [game.play(claim) for game in games(program, constants, state)],
    }


# --- the package against the file -------------------------------------------------------------------------------------

RECORDED: Any = json.loads(FILE.read_text()) if FILE.exists() else {"games": []}
EACH_GAME = pytest.mark.parametrize("game", RECORDED["games"], ids=lambda game: game["name"])


def record_of(game: dict[str, Any]) -> Record:
    claim = {name: RECORDED[name] for name in ("program", "constants")}
    return Record.from_dict(bare({"claim": claim, "start": game["positions"][0], "moves": game["moves"]}))


def test_file_is_what_the_players_play() -> None:
    assert vectors() == RECORDED


@EACH_GAME
def test_rules_lead_from_each_position_to_the_next(game: dict[str, Any]) -> None:
    walked = list(record_of(game).walk())
    assert [text(before.hash()) for before, _, _ in walked] == game["hashes"]
    assert ["asserter" if is_asserters_turn(before) else "challenger" for before, _, _ in walked] == game["turns"]
    *_, (_, _, ended) = walked
    assert isinstance(ended, Ended)
    assert ended.asserter_won is game["asserter_won"]


@EACH_GAME
def test_hash_is_that_of_the_abi_encoded_fields(game: dict[str, Any]) -> None:
    """By another library for each half of it."""
    for position, expected in zip(game["positions"], game["hashes"], strict=True):
        assert list(position) == list(FIELDS)
        fields = [bytes.fromhex(v[2:]) if isinstance(v, str) else v for v in position.values()]
        encoded = encode(list(FIELDS.values()), fields)
        assert len(encoded) == 19 * 32
        assert text(sha3.keccak_256(encoded).digest()) == expected


@EACH_GAME
def test_first_position_follows_from_what_is_disputed(game: dict[str, Any]) -> None:
    s = {k: bytes.fromhex(v[2:]) if str(v).startswith("0x") else int(v) for k, v in game["start"].items()}
    header = Header.decode(bytes.fromhex(RECORDED["header"][2:]), bytes.fromhex(RECORDED["program"][2:]))
    if s["kind"] == Kind.REPLAY:
        first = replay_start(header.nodes, header.nodes_tree, s["firstStep"], s["steps"], s["start"], s["end"])
    else:
        first = sum_start(header.slots, s["component"], s["x"], s["y"], s["sum"])
    assert text(first.hash()) == game["hashes"][0]


def test_every_level_and_every_move_occurs() -> None:
    """All but SLOTS: the toy program has fewer than 17 slots."""
    levels = {Level(position["level"]) for game in RECORDED["games"] for position in game["positions"]}
    assert levels == set(Level) - {Level.SLOTS}
    moves = {move["move"] for game in RECORDED["games"] for move in game["moves"]}
    assert moves == {"Open", "Pick", "PickState", "Describe", "DescribeSlot", "ProveStep", "ProveSlot", "ProveSum"}
    ends = {(game["moves"][-1]["move"], game["asserter_won"]) for game in RECORDED["games"]}
    # A slot that does not hold what its node produced cannot be proved at all: its asserter runs out of time.
    both = {(move, won) for move in ("ProveStep", "ProveSum", "DescribeSlot") for won in (False, True)}
    assert ends == {*both, ("ProveSlot", True)}


if __name__ == "__main__":
    sys.path.append(str(TESTS))
    FILE.write_text(json.dumps(vectors(), indent=1) + "\n")
