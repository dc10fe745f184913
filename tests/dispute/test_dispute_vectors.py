"""Whole disputes with every move's calldata and the head after it: the vectors for another implementation.

And calldata of moves read back: every move of the disputes in fixtures/vectors, of every kind and on both widths.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from adversaries import TamperedState
from test_rules import replay_claim, trace

import toy_program
from hostile_players import LyingSums
from lab.disputes.dispute_match import KnownTraces, Match, play
from lab.json_rows import json_rows
from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Builder, Instruction, ScalarProgram
from pol.commitments.keccak import keccak256
from pol.commitments.program_hash import ProgramCommitment, program_header
from pol.demo.lying_players import Lie, LyingTrace
from pol.dispute.agreed_facts import AtNode, AtTrace
from pol.dispute.dispute_record import DisputeRecord
from pol.dispute.disputed_claim import SumClaim
from pol.dispute.encoding.move_decoding import LEVELS, PackedMove, StoredPlace, decode
from pol.dispute.encoding.move_encoding import FUNCTIONS, encode, selector
from pol.dispute.encoding.move_fields import _NOTHING, _STEP
from pol.dispute.moves import Describe, DescribeSlot, Move, OpenState, ProveSlot, ProveStep, ProveSum
from pol.dispute.one_step import executed
from pol.dispute.openings import Opening
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import ReplayPlayer, SumEvidence, SumPlayer
from pol.dispute.position import Level, Position, Side, packed_position, state_hash
from pol.dispute.rules import picked
from pol.errors import ProtocolError
from pol.execution.cpu import CpuExecutor
from pol.graph.node import Affine, Input, InputKind, Node, Operand, Source
from pol.graph.step_program import Component, Slot, StepProgram
from pol.graph.tensor_type import DType, TensorType

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


DISPUTES = json.loads(FILE.read_text())
RECORDED = DISPUTES[0]["number"]


def moves() -> Iterator[tuple[bytes, Position, Move]]:
    for item in DISPUTES:
        record = DisputeRecord.from_dict({name: item[name] for name in ("claim", "header", "payload", "bits", "moves")})
        for data, (position, move, _) in zip(item["calldata"], record.walk(), strict=True):
            yield bytes.fromhex(data), position, move


def moves_about_a_fold() -> Iterator[tuple[bytes, Position, Move]]:
    """A dispute about one term of a fold whose body has two instructions: none of the recorded ones opens a body so."""
    pair, accumulator, first = TensorType(DType.F32, (2,)), Input(InputKind.ACCUMULATOR), Input(InputKind.OPERAND, 0)
    builder = Builder(2)
    half = builder.emit(Op.FMUL, builder.input(1), builder.f32(0.5))
    body = builder.build(builder.emit(Op.FADD, builder.input(0), half))
    node = Node(pair, (Operand(Source.STATE, 0, pair, Affine(0, (0, 1, 0))),), (accumulator, first), body, fold=(3,))
    program = StepProgram((Slot(Component.PARAMETER, pair, 0),), (TensorType(DType.F32, ()),), (node,))
    constants, start = [np.zeros((), np.uint32)], [np.array([1.25, -3.5], np.float32).view(np.uint32)]
    honest = SegmentTrace(program, constants, CpuExecutor(program, constants, threads=1), start, 2, 2)
    liar = LyingTrace(honest, Lie(3, 0, 1, 1, 0, 20))
    claim = replay_claim(honest, liar)
    match = play(claim, program_header(program), ReplayPlayer(liar), ReplayPlayer(honest))
    for position, move, _ in match.record.walk():
        yield encode(RECORDED, position, move), position, move


MOVES = [*moves(), *moves_about_a_fold()]


def payload_of(found: PackedMove) -> bytes:
    (name,) = (name for name in found.rest if name.startswith("opens")) if found.rest else ("",)
    parts = found.rest[name]
    assert isinstance(parts, tuple)
    return b"".join(part[::-1] if name == "opens words" else part for part in parts if isinstance(part, bytes))


def opening_of(shown: Mapping[str, Any]) -> Opening:
    return Opening(shown.get("list count", 0), shown["leaf"], shown["leaf branch"], shown["list branch"])


def test_every_kind_of_move_is_among_them() -> None:
    assert {FUNCTIONS[type(move)] for _, _, move in MOVES} == set(LEVELS)
    assert {position.level for _, position, _ in MOVES} == set(Level)


def test_a_move_is_read_back_as_it_was_made() -> None:
    for data, position, move in MOVES:
        found = decode(data, StoredPlace(position.level, position.height, position.bits))
        assert (found.function, found.dispute, found.levels) == (FUNCTIONS[type(move)], RECORDED, (position.level,))
        assert found.frame == position.facts.frame
        assert found.outline is not None
        outline = found.outline
        assert (outline.count, outline.lo, outline.hi) == (position.count, position.lo, position.hi)
        if isinstance(move, OpenState):
            assert (found.index, found.witness) == (0, {})
        else:
            assert found.index == move.index
            if "claimed" in found.witness:
                assert found.witness["claimed"] == picked(position, move.index)
        match move:
            case ProveStep(index, openings):
                shown = found.rest["openings"]
                assert isinstance(shown, tuple)
                assert tuple(opening_of(item) for item in shown if isinstance(item, Mapping)) == openings
                done = executed(position, index, picked(position, index), move)
                assert found.rest["computed"] == done.computed.to_bytes(4, "big")
                assert found.rest["claimed"] == done.claimed.to_bytes(4, "big") != found.rest["computed"]
                assert found.rest["operation"] == ("a chunk of FFMA" if done.op is None else done.op.name)
            case ProveSlot():
                assert found.rest["produced"] == move.produced
                assert (found.rest["branch"], found.rest["trace branch"]) == (move.branch, move.trace_branch)
            case ProveSum():
                shown = found.rest["openings"]
                assert isinstance(shown, tuple)
                assert tuple(opening_of(item) for item in shown if isinstance(item, Mapping)) == (move.x, move.y)
            case DescribeSlot() if not move.payload:
                assert found.rest["descriptor"] == move.descriptor
            case _:
                assert payload_of(found) == move.payload
                if isinstance(move, Describe):
                    assert (found.rest["header"], found.rest["descriptor"]) == (move.header, move.descriptor)
                    assert found.rest["branch"] == move.branch


def test_calldata_alone_tells_the_same_or_leaves_several_levels_open() -> None:
    """Only an answer can be ambiguous: it doesn't say whether it is about nodes, leaves, slots or sums."""
    for data, position, _ in MOVES:
        found = decode(data, bits=position.bits)
        exact = decode(data, StoredPlace(position.level, position.height, position.bits))
        assert position.level in found.levels
        if found.function != "answer":
            assert found == exact
        elif found.witness:
            assert found.witness == exact.witness


def test_what_is_sent_for_another_side_and_a_resignation() -> None:
    data, position, _ = MOVES[-1]
    helped = decode(selector("help") + b"\x0a" * 20 + data, bits=position.bits)
    assert (helped.sent_for, helped.function) == (b"\x0a" * 20, decode(data, bits=position.bits).function)
    relayed = decode(selector("relay") + b"\x01" * 65 + data, bits=position.bits)
    assert (relayed.signature, relayed.rest) == (b"\x01" * 65, decode(data, bits=position.bits).rest)
    resigned = selector("resign") + RECORDED.to_bytes(4, "big") + packed_position(position) + b"\0" + position.opening
    found = decode(resigned)
    assert (found.function, found.dispute, found.rest) == ("resign", RECORDED, {"opening": position.opening})
    assert found.to_dict()["rest"] == {"opening": "0x" + position.opening.hex()}


def test_what_is_no_move_is_refused() -> None:
    with pytest.raises(ProtocolError, match="no move of a dispute begins with 0xdeadbeef"):
        decode(bytes.fromhex("deadbeef"))
    with pytest.raises(ProtocolError, match="no move"):
        decode(b"")
    for data, position, move in MOVES:
        place = StoredPlace(position.level, position.height, position.bits)
        for cut in (data[:-1], data + b"\0", data[:70], data[:9]):
            with pytest.raises(ProtocolError):
                decode(cut, place)
        wrong = selector("openState" if not isinstance(move, OpenState) else "unfold") + data[4:]
        with pytest.raises(ProtocolError, match="fits no position"):
            decode(wrong, place)


def test_damaged_calldata_is_read_or_refused_and_nothing_else() -> None:
    """Bytes come from strangers: whatever stands in them, the reader ends, and with no other error."""
    random = Random(3)
    for data, position, _ in MOVES[::3]:
        for _ in range(40):
            damaged = bytearray(data)
            for _ in range(random.choice((1, 1, 2, 5))):
                damaged[random.randrange(4, len(damaged))] = random.choice(
                    (0, 1, 0x7F, 0x80, 0xFF, random.randrange(256))
                )
            for place in (None, StoredPlace(position.level, position.height, position.bits)):
                with contextlib.suppress(ProtocolError):
                    decode(bytes(damaged), place, position.bits)


def test_nothing_is_sent_for_another_side_twice() -> None:
    data, position, _ = MOVES[-1]
    for wrapper in (selector("help") + b"\x0a" * 20, selector("relay") + b"\x01" * 65):
        with pytest.raises(ProtocolError, match="no move"):
            decode(wrapper * 2 + data, bits=position.bits)


def test_a_fact_that_was_changed_is_noticed() -> None:
    """All facts that a move shows hash to its frame: a reader doesn't take others for them."""
    for data, position, move in MOVES:
        if FUNCTIONS[type(move)] == "answer":
            continue
        damaged = bytearray(data)
        damaged[8] ^= 1  # in the frame
        with pytest.raises(ProtocolError, match="fits no position"):
            decode(bytes(damaged), StoredPlace(position.level, position.height, position.bits))


def test_the_bytes_that_are_read_are_those_that_the_encoder_writes() -> None:
    for data, position, move in MOVES:
        assert data == encode(RECORDED, position, move)


@pytest.mark.parametrize("lo", [1 << 58, 1 << 60, (1 << 64) - 1])
def test_a_leaf_beyond_all_tensors_is_read_or_refused(lo: int) -> None:
    """Its number comes from a stranger and has 64 bits; NumPy counts no element of it."""
    node = Node(TensorType(DType.F32, (3,)), (), (), ScalarProgram(0, (1,), (Instruction(Op.FSQRT, 0),))).encode()
    agreed = bytes(32 + 32 + 8)
    frame = keccak256(keccak256(agreed) + AtNode(AtTrace(_STEP, _NOTHING, 0, 0, _NOTHING, ()), node, 0).outline)
    place = bytes(4) + lo.to_bytes(8, "big") + bytes(8) + b"\0"
    rest = b"\0" + agreed + b"\0" + bytes(4) + len(node).to_bytes(2, "big") + node
    with contextlib.suppress(ProtocolError):
        decode(selector("proveStep") + bytes(4) + frame + place + bytes(32 + 96) + rest)
