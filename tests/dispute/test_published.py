"""Disputes where traces are published: on an EVM and by the rules, whoever tells the truth wins, whatever is shown."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from random import Random
from typing import Any

import pytest
from adversaries import KINDS, tampered
from tiny_programs import Contradicting, Silent, every_lie, honest_trace

import toy_program
from dispute_harness import Court, court, replay_claim
from hostile_players import RandomPlayer
from lab.disputes.dispute_match import KnownTraces, Match, play
from pol.commitments.merkle import PAD, branch, depth, tree
from pol.commitments.program_hash import ProgramCommitment
from pol.demo.lying_players import LyingTrace
from pol.dispute.agreed_facts import AtStep, AtTrace, Replayed
from pol.dispute.dispute_record import DisputeRecord
from pol.dispute.moves import Move, Show
from pol.dispute.openings import ShownLeaf
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import Player, ReplayPlayer, leaves_of, leaves_place, published_leaves, row_of
from pol.dispute.position import Level, Position, Side
from pol.dispute.rules import shown
from pol.execution.cpu import CpuExecutor


@pytest.fixture(scope="module", params=[2, 5])
def bench(request: pytest.FixtureRequest) -> Iterator[Court]:
    with court(bits=request.param) as found:
        yield found


def toy_trace(steps: int) -> SegmentTrace:
    program, constants = toy_program.build(), toy_program.constants()
    return SegmentTrace(
        program, constants, CpuExecutor(program, constants, threads=1), toy_program.initial_state(), 3, steps
    )


def players(
    honest: SegmentTrace, liar: SegmentTrace, side: Side, with_leaves: bool, author: SegmentTrace | None = None
) -> dict[Side, Player]:
    """Both sides, of which ``side`` lies; each has published its traces, or ``author`` alone has."""
    published = KnownTraces(*([author] if author else [honest, liar]), with_leaves=with_leaves)
    return {side: ReplayPlayer(liar, published), side.other: ReplayPlayer(honest, published)}


def hear(court: Court, honest: SegmentTrace, liar: SegmentTrace, side: Side, sides: dict[Side, Player]) -> Match:
    claim = replay_claim(honest, liar if side is Side.ASSERTER else honest)
    header = ProgramCommitment.of(honest.program).header
    return court.hear(claim, header, sides[Side.ASSERTER], sides[Side.CHALLENGER])


def shown_in(match: Match) -> list[tuple[Position, Show]]:
    return [(position, move) for position, move, _ in match.record.walk() if isinstance(move, Show)]


@pytest.mark.parametrize("side", [Side.ASSERTER, Side.CHALLENGER])
@pytest.mark.parametrize("with_leaves", [False, True])
def test_whoever_tells_the_truth_wins(bench: Court, side: Side, with_leaves: bool) -> None:
    random = Random(f"published {side} {with_leaves}")
    seen: Counter[str] = Counter()
    parts: Counter[int] = Counter()
    while missing := [kind for kind in KINDS if not seen[kind]]:
        kind, honest = random.choice(missing), toy_trace(random.choice([1, 2, 7]))
        liar = tampered(honest, kind, random)
        if liar is None:
            continue
        match = hear(bench, honest, liar, side, players(honest, liar, side, with_leaves))
        assert match.winner is side.other, (kind, match.detail)
        seen[kind] += 1
        parts.update(move.index for _, move in shown_in(match))
    assert parts[1] > 0


def test_a_shown_leaf_saves_moves(bench: Court) -> None:
    random, honest, saved = Random(3), toy_trace(2), 0
    while saved < 3:
        liar = tampered(honest, "scalar", random)
        if liar is None:
            continue
        silent: dict[Side, Player] = {Side.ASSERTER: ReplayPlayer(liar), Side.CHALLENGER: ReplayPlayer(honest)}
        lengths = [
            len(hear(bench, honest, liar, Side.ASSERTER, sides).record.moves)
            for sides in (silent, players(honest, liar, Side.ASSERTER, with_leaves=True))
        ]
        match = hear(bench, honest, liar, Side.ASSERTER, players(honest, liar, Side.ASSERTER, with_leaves=True))
        if any(move.leaf for _, move in shown_in(match)):
            # All nodes of the small program lie open at once where 32 parts do.
            assert lengths[1] < lengths[0] if bench.bits < 5 else lengths[1] <= lengths[0]
            saved += 1


@pytest.mark.parametrize("side", [Side.ASSERTER, Side.CHALLENGER])
def test_the_truth_wins_if_only_one_side_has_published(bench: Court, side: Side) -> None:
    random, seen = Random(11), Counter[bool]()
    # The more steps, the more moves before a trace lies open: it is sometimes one side's, sometimes the other's.
    steps = [2, 7 if bench.bits < 5 else 40]
    while not (seen[True] and seen[False]):
        honest = toy_trace(random.choice(steps))
        liar = tampered(honest, "scalar", random)
        if liar is None:
            continue
        for author in (honest, liar):
            match = hear(bench, honest, liar, side, players(honest, liar, side, True, author))
            assert match.winner is side.other, match.detail
            seen[author is honest] += bool(shown_in(match))


def test_the_truth_wins_small_games(bench: Court) -> None:
    random, games = Random(7), 0
    for shape in ((1, 1, 1), (1, 3, 2), (3, 2, 1), (4, 2, 2)):
        honest = honest_trace(*shape)
        lies = list(every_lie(honest))
        for number, (lie, side) in enumerate(product(lies, (Side.ASSERTER, Side.CHALLENGER))):
            liar, other = LyingTrace(honest, lie), LyingTrace(honest, random.choice(lies))
            end = honest.first_step + honest.steps
            if liar.state_root(end) == honest.state_root(end):
                continue
            sides = players(honest, liar, side, bool(number % 2))
            hostile: list[Player] = [sides[side]]
            if number % 7 == 0:
                lying = ReplayPlayer(liar, KnownTraces(honest, with_leaves=True))
                hostile += [
                    RandomPlayer(random, honest.program),
                    Contradicting((lying, ReplayPlayer(other), RandomPlayer(random, honest.program))),
                    *(Silent(lying, moves) for moves in range(3)),
                ]
            for player in hostile:
                match = hear(bench, honest, liar, side, {**sides, side: player})
                assert match.winner is side.other, (shape, lie, side, player, match.detail)
                games += 1
    assert games > 100


class Damaging:
    """Shows what another player shows, with one thing changed."""

    def __init__(self, player: ReplayPlayer, changes: dict[str, Any]) -> None:
        self.player, self.changes, self.has_shown = player, changes, False

    def open(self, position: Position) -> bytes:
        return self.player.open(position)

    def move(self, position: Position) -> Move:
        move = self.player.move(position)
        if isinstance(move, Show):
            self.has_shown = True
            return replace(move, **self.changes)
        return move


def flipped(data: bytes, random: Random) -> bytes:
    damaged = bytearray(data)
    damaged[random.randrange(len(damaged))] ^= 1 << random.randrange(8)
    return bytes(damaged)


def damages(move: Show, random: Random) -> Iterator[dict[str, Any]]:
    """Another node, root, branch, descriptor, leaf or payload than the one that stands there."""
    for node in (move.node ^ 1, move.node + 4, 2**32 - 1):
        yield {"node": node}
    for _ in range(3):
        yield {"root": flipped(move.root, random)}
    yield {"descriptor": toy_program.build().nodes[move.node - 1].encode()}
    for name in ("trace_branch", "branch"):
        hashes = getattr(move, name)
        if hashes:
            yield {name: (flipped(hashes[0], random), *hashes[1:])}
            yield {name: hashes[1:]}
        yield {name: (*hashes, PAD)}
    yield {"payload": move.payload[:-1]}
    yield {"payload": move.payload + b"\0"}
    for leaf in move.leaf:
        yield {"leaf": (replace(leaf, number=leaf.number ^ 1),)}
        yield {"leaf": (replace(leaf, number=leaf.number + 2**40),)}
        yield {"leaf": (replace(leaf, hash=flipped(leaf.hash, random)),)}
        yield {"leaf": (replace(leaf, branch=(*leaf.branch, PAD)),)}
        yield {"leaf": ()}
    if not move.leaf:
        yield {"leaf": (ShownLeaf(0, move.root, ()),)}


@pytest.mark.parametrize("with_leaves", [False, True])
def test_nothing_else_can_be_shown(bench: Court, with_leaves: bool) -> None:
    """What is damaged anywhere is refused by the rules and on the EVM: whoever sends it has no other move."""
    random = Random(with_leaves)
    while True:
        honest = toy_trace(2)
        liar = tampered(honest, "scalar", random)
        if liar is None:
            continue
        sides = players(honest, liar, Side.ASSERTER, with_leaves)
        found = shown_in(hear(bench, honest, liar, Side.ASSERTER, sides))
        if found and bool(found[0][1].leaf) is with_leaves:
            break
    (position, move), *_ = found
    shower = position.turn
    player = sides[shower]
    assert isinstance(player, ReplayPlayer)
    for changes in damages(move, random):
        damaging = Damaging(player, changes)
        match = hear(bench, honest, liar, Side.ASSERTER, {**sides, shower: damaging})
        assert damaging.has_shown
        assert (match.winner, match.attempt is not None) == (shower.other, True), changes


def test_what_is_shown_cannot_be_opened(bench: Court) -> None:
    """Whoever opens just what it shows agrees with it."""
    random, seen = Random(5), Counter[int]()
    while not (seen[1] and seen[2]):
        honest = toy_trace(2)
        liar = tampered(honest, "scalar", random)
        if liar is None:
            continue
        sides = players(honest, liar, Side.ASSERTER, with_leaves=bool(random.randrange(2)))
        for position, move in shown_in(hear(bench, honest, liar, Side.ASSERTER, sides)):
            theirs, player = honest if position.turn is Side.ASSERTER else liar, sides[position.turn]
            assert isinstance(player, ReplayPlayer)
            same = Damaging(player, {"payload": _same(theirs, position, move)})
            match = hear(bench, honest, liar, Side.ASSERTER, {**sides, position.turn: same})
            assert match.winner is position.turn.other
            assert "nothing to dispute" in match.detail
            seen[move.index] += 1


def _same(theirs: SegmentTrace, position: Position, move: Show) -> bytes:
    leaf = move.leaf[0].number if move.leaf else None
    at = shown(position, move.node, move.root, move.trace_branch, move.descriptor, leaf)
    return ReplayPlayer(theirs).open(at)


def test_a_dispute_with_a_shown_node_is_a_document() -> None:
    random, honest, leaves = Random(1), toy_trace(2), set[int]()
    while leaves != {0, 1}:
        liar = tampered(honest, "scalar", random)
        if liar is None:
            continue
        sides = players(honest, liar, Side.ASSERTER, with_leaves=len(leaves) == 1)
        header = ProgramCommitment.of(honest.program).header
        match = play(replay_claim(honest, liar), header, sides[Side.ASSERTER], sides[Side.CHALLENGER])
        assert DisputeRecord.from_dict(match.record.to_dict()) == match.record
        leaves |= {len(move.leaf) for _, move in shown_in(match)}


def test_a_node_is_shown_below_a_whole_trace_only() -> None:
    honest = toy_trace(1)
    liar = next(found for seed in range(99) if (found := tampered(honest, "scalar", Random(seed))))
    sides = players(honest, liar, Side.ASSERTER, with_leaves=False)
    header = ProgramCommitment.of(honest.program).header
    match = play(replay_claim(honest, liar), header, sides[Side.ASSERTER], sides[Side.CHALLENGER], bits=2)
    assert all(position.level is Level.NODES and isinstance(position.facts, AtStep) for position, _ in shown_in(match))
    assert shown_in(match)


def test_rows_of_another_trace_are_none() -> None:
    honest = toy_trace(1)
    row = list(honest.node_roots(3))
    joined, root = b"".join(row), tree(row)
    assert row_of(joined, root, len(row)) == row
    for wrong in (joined[:-32], joined + bytes(32), joined[32:] + joined[:32], b""):
        assert row_of(wrong, root, len(row)) is None
    whole = b"".join(published_leaves(honest, 3))
    assert len(whole) == leaves_place(honest.program, len(row) - 1).stop
    for number, node in enumerate(honest.program.nodes):
        place = leaves_place(honest.program, number)
        if node.type.leaves == 1:
            assert not place
            continue
        leaves = whole[place.start : place.stop]
        assert leaves == honest.output_leaves(3, number)
        assert leaves_of(leaves, node.type, row[number]) == leaves
        for wrong in (leaves[:-32], leaves + bytes(32), leaves[32:] + leaves[:32], b""):
            assert leaves_of(wrong, node.type, row[number]) is None


def test_a_proof_needs_no_row(bench: Court) -> None:
    """Whoever has published may withdraw everything once a node was shown."""
    random, proved = Random(2), Counter[Side]()
    steps = [2, 7 if bench.bits < 5 else 40]
    while not (proved[Side.ASSERTER] and proved[Side.CHALLENGER]):
        honest = toy_trace(random.choice(steps))
        liar = tampered(honest, "scalar", random)
        if liar is None:
            continue
        for side in (Side.ASSERTER, Side.CHALLENGER):
            sides = players(honest, liar, side, with_leaves=True, author=liar)
            forgetful = Forgetful(honest, sides[side.other])
            match = hear(bench, honest, liar, side, {**sides, side.other: forgetful})
            assert match.winner is side.other, match.detail
            proved[side.other] += forgetful.has_shown and match.refuted


class Forgetful:
    """Shows what others have published, and knows nothing of it afterwards."""

    def __init__(self, trace: SegmentTrace, knowing: Player) -> None:
        self.knowing, self.forgetful, self.has_shown = knowing, ReplayPlayer(trace), False

    def open(self, position: Position) -> bytes:
        return self.forgetful.open(position)

    def move(self, position: Position) -> Move:
        move = (self.forgetful if self.has_shown else self.knowing).move(position)
        self.has_shown = self.has_shown or isinstance(move, Show)
        return move


@pytest.mark.parametrize("nodes", [1, 2, 3, 5, 8, 17, 33])
def test_branches_of_agreed_nodes_follow_from_the_shown_one(nodes: int) -> None:
    random = Random(nodes)
    for node in range(nodes):
        own = [random.randbytes(32) for _ in range(nodes)]
        theirs = [*own[:node], *(random.randbytes(32) for _ in range(nodes - node))]
        step = AtStep(Replayed(bytes(32), bytes(32), bytes(32)), bytes(32), bytes(32), 0)
        at = AtTrace(step, tree(theirs), depth(nodes), node, theirs[node], tuple(branch(theirs, node)))
        for number in range(node):
            assert at.branch_of(number, branch(own, number)) == branch(theirs, number)
