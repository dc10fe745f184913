"""Whole disputes with every move's calldata and the head after it: the vectors for another implementation.

One dispute or more for every way in which a proof ends one, on both widths. Run this module to write the file anew.
That the contract takes such bytes and holds such heads is tested in test_small_games.py and test_random_disputes.py.
"""

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest
from adversaries import TamperedState
from test_rules import replay_claim, trace

import toy_program
from hostile_players import LyingSums
from lab.disputes.dispute_match import KnownTraces, Match, play
from lab.json_rows import json_rows
from pol.commitments.program_hash import ProgramCommitment
from pol.demo.lying_players import Lie, LyingTrace
from pol.dispute.dispute_record import DisputeRecord
from pol.dispute.disputed_claim import SumClaim
from pol.dispute.encoding.move_encoding import encode
from pol.dispute.play.distance_evidence import SumEvidence
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import ReplayPlayer, SumPlayer
from pol.dispute.position import Position, Side
from pol.dispute.state_hash import state_hash
from pol.graph.step_program import Component

pytestmark = pytest.mark.rules

FILE = Path(__file__).resolve().parents[2] / "fixtures" / "vectors" / "disputes.json"
ADDRESSES = {Side.ASSERTER: b"\x0a" * 20, Side.CHALLENGER: b"\x0c" * 20}
ID = bytes(range(32))
NUMBER = 7
SHOWN = "a fold of 4 terms"
"""The lie that is shown in a published trace."""


def matches() -> Iterator[tuple[str, Match]]:
    """A name for each, and how it went."""
    program, random = toy_program.build(), Random(7)
    honest = trace(program, toy_program.constants(), toy_program.initial_state(), 3, 20)
    commitment = ProgramCommitment.of(program)
    places = {
        "one instruction of a map": (0, 0, 0),
        "a fold of 70 terms": (1, 33, 0),
        "a fold of 4 terms": (3, 2, 0),
        "a body of many instructions": (2, 0, 12),
    }
    liars = {name: showing(honest, *place) for name, place in places.items()}
    for name, liar in [*liars.items(), ("a slot of the state", TamperedState(honest, 9, 1, 77, 3))]:
        for bits in (4, 5):
            for side in (Side.ASSERTER, Side.CHALLENGER):
                players = {side: ReplayPlayer(liar), side.other: ReplayPlayer(honest)}
                claim = replay_claim(honest, liar if side is Side.ASSERTER else honest)
                match = play(claim, commitment.header, players[Side.ASSERTER], players[Side.CHALLENGER], bits)
                yield f"{name}, {side.name.lower()} lies, width {bits}", match
    for with_leaves, what in ((False, "node"), (True, "leaf")):
        published = KnownTraces(honest, liars[SHOWN], with_leaves=with_leaves)
        sides = ReplayPlayer(liars[SHOWN], published), ReplayPlayer(honest, published)
        yield f"a shown {what}", play(replay_claim(honest, liars[SHOWN]), commitment.header, *sides)
    x, y = honest.state(23), honest.state(3)
    sums = SumEvidence(program, Component.PARAMETER, x, y)
    roots = (honest.state_root(23), honest.state_root(3))
    for name, slot in (("a sum", 0), ("a sum of another component", 2)):
        for side in (Side.ASSERTER, Side.CHALLENGER):
            evidence = {side: LyingSums(sums, slot, 0, 1 + random.randrange(99)), side.other: sums}
            asserter, challenger = evidence[Side.ASSERTER], evidence[Side.CHALLENGER]
            claim_ = SumClaim(ID, commitment.hash, Component.PARAMETER, *roots, asserter.total())
            match = play(claim_, commitment.header, SumPlayer(asserter), SumPlayer(challenger))
            yield f"{name}, {side.name.lower()} lies", match


def showing(honest: SegmentTrace, node: int, term: int, instruction: int) -> LyingTrace:
    """A lie in one of a node's elements that shows in the state at the end."""
    end = honest.first_step + honest.steps
    for element, bit in product(range(honest.program.nodes[node].type.numel), (20, 25, 30)):
        liar = LyingTrace(honest, Lie(9, node, element, term, instruction, bit))
        if liar.state_root(end) != honest.state_root(end):
            return liar
    raise AssertionError("no lie here shows")


def vector(name: str, match: Match) -> dict[str, Any]:
    """A dispute as the file holds it."""
    record = match.record
    walked = list(record.walk())
    heads = [record.start] + [after for _, _, after in walked if isinstance(after, Position)]
    return {
        "name": name,
        "number": NUMBER,
        "addresses": {side.name.lower(): address.hex() for side, address in ADDRESSES.items()},
        **record.to_dict(),
        "calldata": [encode(NUMBER, position, move).hex() for position, move, _ in walked],
        "heads": [state_hash(position, ADDRESSES[position.turn]).hex() for position in heads],
        "refuted": match.refuted,
        "winner": match.winner.name.lower(),
        "detail": match.detail,
    }


def test_the_file_is_what_the_rules_yield() -> None:
    stated = json.loads(FILE.read_text())
    found = json.loads(json.dumps([vector(name, match) for name, match in matches()]))
    assert [entry["name"] for entry in stated] == [entry["name"] for entry in found]
    for ours, theirs in zip(found, stated, strict=True):
        assert ours == theirs, ours["name"]


def test_the_file_holds_every_kind_of_proof() -> None:
    stated = json.loads(FILE.read_text())
    last = {(entry["moves"][-1]["move"], entry["refuted"]) for entry in stated if entry["moves"]}
    assert {kind for kind, refuted in last if refuted} == {"ProveStep", "ProveSlot", "ProveSum", "DescribeSlot"}
    assert any(not refuted for _, refuted in last)
    for entry in stated:
        record = DisputeRecord.from_dict({key: entry[key] for key in ("claim", "header", "payload", "bits", "moves")})
        assert len(list(record.walk())) == len(entry["calldata"])


if __name__ == "__main__":
    FILE.write_text(json_rows([vector(name, match) for name, match in matches()]))
