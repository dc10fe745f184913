"""Disputes about published traces: on an EVM and by the rules, whoever tells the truth wins, whatever was published."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from random import Random

import pytest
from adversaries import KINDS, tampered
from tiny_programs import Contradicting, Silent, every_lie, honest_trace
from web3.exceptions import ContractLogicError

import toy_program
from dispute_harness import ZERO, Court, court
from hostile_players import RandomPlayer
from lab.disputes.dispute_match import Match, play
from pol.commitments.merkle import PAD, tree
from pol.commitments.program_hash import ProgramCommitment
from pol.commitments.published_traces import PublishedStep
from pol.commitments.tensor import constants_root
from pol.demo.lying_players import LyingTrace
from pol.dispute.dispute_record import DisputeRecord
from pol.dispute.disputed_claim import PublishedClaim
from pol.dispute.moves import IllegalMove
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import NothingToDispute, Player, ReplayPlayer
from pol.dispute.play.trace_publication import Publication, publish, show_first_lie
from pol.dispute.position import Level, Side
from pol.dispute.published_start import ShownPart, start_published
from pol.errors import ProtocolError
from pol.execution.cpu import CpuExecutor


@pytest.fixture(scope="module", params=[2, 5])
def bench(request: pytest.FixtureRequest) -> Iterator[Court]:
    with court(bits=request.param) as found:
        yield found


def claim_of(trace: SegmentTrace, publication: Publication, end: bytes) -> PublishedClaim:
    program, constants = trace.program, constants_root(trace.program.constants, trace.constants)
    start = trace.state_root(trace.first_step)
    commitment = ProgramCommitment.of(program)
    return PublishedClaim(ZERO, commitment.hash, constants, trace.first_step, trace.steps, start, end, publication.root)


def challenger_of(trace: SegmentTrace, publication: Publication) -> ReplayPlayer:
    return ReplayPlayer(trace, lambda step: publication.row(step - trace.first_step))


def hear(
    court: Court,
    asserted: SegmentTrace,
    challenging: SegmentTrace,
    with_leaves: bool,
    player: Player | None = None,
    side: Side = Side.NONE,
    publication: Publication | None = None,
) -> Match:
    """``asserted`` is claimed and published, ``challenging`` is what the challenger says; ``player`` takes a side."""
    published = publication or publish(asserted, with_leaves)
    end = asserted.state_root(asserted.first_step + asserted.steps)
    claim, header = claim_of(asserted, published, end), ProgramCommitment.of(asserted.program).header
    players: dict[Side, Player] = {
        Side.ASSERTER: ReplayPlayer(asserted),
        Side.CHALLENGER: challenger_of(challenging, published),
    }
    if player is not None:
        players[side] = player
    payload = show_first_lie(challenging, published, claim, court.bits)
    return court.hear(claim, header, players[Side.ASSERTER], players[Side.CHALLENGER], payload)


def toy_trace(steps: int) -> SegmentTrace:
    program, constants = toy_program.build(), toy_program.constants()
    return SegmentTrace(
        program, constants, CpuExecutor(program, constants, threads=1), toy_program.initial_state(), 3, steps
    )


@pytest.mark.parametrize("side", [Side.ASSERTER, Side.CHALLENGER])
@pytest.mark.parametrize("with_leaves", [False, True])
def test_whoever_tells_the_truth_wins(bench: Court, side: Side, with_leaves: bool) -> None:
    random = Random(f"published {side} {with_leaves}")
    seen: Counter[str] = Counter()
    levels: Counter[Level] = Counter()
    while missing := [kind for kind in KINDS if not seen[kind]]:
        kind, honest = random.choice(missing), toy_trace(random.choice([1, 2, 7]))
        liar = tampered(honest, kind, random)
        if liar is None:
            continue
        asserted, challenging = (liar, honest) if side is Side.ASSERTER else (honest, liar)
        match = hear(bench, asserted, challenging, with_leaves)
        assert match.winner is side.other, (kind, match.detail)
        seen[kind] += 1
        levels[match.record.start.level] += 1
    assert levels[Level.STATE] > 0
    assert levels[Level.LEAF] + levels[Level.LEAVES] > 0


def test_leaf_hashes_of_another_root_are_left_alone(bench: Court) -> None:
    """Who offers them would win against whoever shows them: the dispute begins at the node instead."""
    random, honest = Random(12), toy_trace(2)
    liar = None
    while liar is None:
        liar = tampered(honest, "scalar", random)
    published = publish(liar, with_leaves=True)
    assert published.leaves is not None
    true_leaves = published.leaves

    def swapped(s: int, node: int) -> bytes:
        joined = true_leaves(s, node)
        return joined[32:] + joined[:32] if len(joined) > 32 else bytes(32)

    for leaves in (swapped, lambda s, node: true_leaves(s, node) + bytes(32), lambda s, node: b""):
        match = hear(bench, liar, honest, True, publication=replace(published, leaves=leaves))
        assert match.winner is Side.CHALLENGER, match.detail


def test_the_truth_wins_small_games(bench: Court) -> None:
    random, games = Random(7), 0
    for shape in ((1, 1, 1), (1, 3, 2), (3, 2, 1), (4, 2, 2)):
        honest = honest_trace(*shape)
        lies = list(every_lie(honest))
        for number, (lie, side) in enumerate(product(lies, (Side.ASSERTER, Side.CHALLENGER))):
            liar, other = LyingTrace(honest, lie), LyingTrace(honest, random.choice(lies))
            if tree(liar.node_roots(lie.step)) == tree(honest.node_roots(lie.step)):
                continue
            asserted, challenging = (liar, honest) if side is Side.ASSERTER else (honest, liar)
            players: list[Player | None] = [None]
            if number % 7 == 0:
                players += [
                    RandomPlayer(random, honest.program),
                    Contradicting((ReplayPlayer(liar), ReplayPlayer(other), RandomPlayer(random, honest.program))),
                    *(Silent(ReplayPlayer(liar), moves) for moves in range(3)),
                ]
            for player in players:
                match = hear(bench, asserted, challenging, bool(number % 2), player, side)
                assert match.winner is side.other, (shape, lie, side, player, match.detail)
                games += 1
    assert games > 100


def changed(publication: Publication, s: int, step: PublishedStep) -> Publication:
    steps = list(publication.steps)
    steps[s] = step
    return replace(publication, steps=tuple(steps))


@pytest.mark.parametrize("s", [0, 1, 2])
def test_published_lies_about_a_right_end_lose(bench: Court, s: int) -> None:
    """What was published contradicts itself, or has another node; what comes out is right."""
    honest = honest_trace(3, 2, 3)
    right = publish(honest)
    if s > 0:
        wrong = changed(right, s, replace(right.steps[s], pre=bytes(31) + b"\1"))
        match = hear(bench, honest, honest, False, publication=wrong)
        assert (match.winner, match.record.start.level) == (Side.CHALLENGER, Level.STATE)
    for node in range(3):
        row = list(right.row(s))
        row[node] = bytes(31) + b"\2"
        rows = [tuple(row) if i == s else right.row(i) for i in range(3)]
        lying = changed(replace(right, row=rows.__getitem__), s, replace(right.steps[s], trace=tree(row)))
        match = hear(bench, honest, honest, False, publication=lying)
        assert (match.winner, match.record.start.level) == (Side.CHALLENGER, Level.LEAF)


def test_the_first_state_before_is_not_read() -> None:
    honest = honest_trace(3, 2, 3)
    publication = publish(honest)
    lying = changed(publication, 0, replace(publication.steps[0], pre=PAD))
    with pytest.raises(NothingToDispute):
        show_first_lie(honest, lying, claim_of(honest, lying, honest.state_root(honest.first_step + 3)))
    liar = LyingTrace(honest, next(every_lie(honest)))
    end = liar.state_root(liar.first_step + 3)
    published = publish(liar)
    published = changed(published, 0, replace(published.steps[0], pre=PAD))
    claim = claim_of(liar, published, end)
    header = ProgramCommitment.of(honest.program).header
    players = (ReplayPlayer(liar), challenger_of(honest, published))
    assert play(claim, header, *players, payload=show_first_lie(honest, published, claim)).winner is Side.CHALLENGER


def test_what_was_not_published_cannot_be_shown() -> None:
    honest = honest_trace(3, 2, 3)
    liar = LyingTrace(honest, next(every_lie(honest)))
    end = liar.state_root(liar.first_step + 3)
    withheld = replace(publish(liar), row=lambda s: [PAD] * 3)
    with pytest.raises(ProtocolError, match="its end only"):
        show_first_lie(honest, withheld, claim_of(liar, withheld, end))


def test_a_dispute_about_published_traces_is_a_document() -> None:
    honest = toy_trace(2)
    liar = tampered(honest, "state", Random(1))
    assert liar is not None
    publication, end = publish(liar), liar.state_root(5)
    claim, header = claim_of(liar, publication, end), ProgramCommitment.of(honest.program).header
    players = (ReplayPlayer(liar), challenger_of(honest, publication))
    match = play(claim, header, *players, payload=show_first_lie(honest, publication, claim))
    assert DisputeRecord.from_dict(match.record.to_dict()) == match.record


@pytest.mark.parametrize("what", list(ShownPart))
def test_nothing_else_can_be_shown(bench: Court, what: ShownPart) -> None:
    """What is damaged anywhere is refused by the rules and on the EVM."""
    honest = toy_trace(3)
    random = Random(what)
    # A node with several leaves, or a state that doesn't follow.
    while True:
        liar = tampered(honest, "state" if what is ShownPart.STATE else "scalar", random)
        if liar is None:
            continue
        publication, end = publish(liar, what is ShownPart.LEAF), liar.state_root(6)
        claim, header = claim_of(liar, publication, end), ProgramCommitment.of(honest.program).header
        payload = show_first_lie(honest, publication, claim, bench.bits)
        if payload[0] == what and (what is not ShownPart.STATE or payload[4] < 2):
            break
    own = len(start_published(claim, header, payload, bench.bits).opened)
    for at in range(0, len(payload) - own, 11):
        damaged = bytearray(payload)
        damaged[at] ^= 1 << random.randrange(8)
        refused(bench, claim, header, bytes(damaged))
    for damaged_length in (payload[:-1], payload + b"\0", payload[:4], b""):
        refused(bench, claim, header, damaged_length)
    refused(bench, replace(claim, traces=PAD), header, payload)
    refused(bench, replace(claim, steps=claim.steps + 1), header, payload)


def refused(court: Court, claim: PublishedClaim, header: bytes, payload: bytes) -> None:
    with pytest.raises(ProtocolError):
        start_published(claim, header, payload, court.bits)
    with pytest.raises(ContractLogicError):
        court.begin(claim, header, payload)


def test_what_is_shown_cannot_be_opened(bench: Court) -> None:
    """The challenger has to say something else."""
    honest = toy_trace(3)
    random = Random(5)
    for kind, with_leaves in (("state", False), ("scalar", False), ("scalar", True)):
        liar = None
        while liar is None:
            liar = tampered(honest, kind, random)
        publication, end = publish(liar, with_leaves), liar.state_root(6)
        claim, header = claim_of(liar, publication, end), ProgramCommitment.of(honest.program).header
        payload = show_first_lie(honest, publication, claim, bench.bits)
        position = start_published(claim, header, payload, bench.bits)
        said = ReplayPlayer(liar).open(position)
        with pytest.raises(IllegalMove):
            start_published(claim, header, payload[: len(payload) - len(said)] + said, bench.bits)
        refused(bench, claim, header, payload[: len(payload) - len(said)] + said)
