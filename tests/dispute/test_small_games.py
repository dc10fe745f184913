"""Every small game on an EVM: each shape, place of a lie, side and way to play; whoever tells the truth wins.

Where neither side tells it there is nobody to be right, but there is an end: within the bound, with one winner.
Against the clock a move counts up to the last second, and not one second later, for either side.

An opening shows whole levels of a binary tree (design.md, section 5), so that it commits to what lies open by a root;
its arity is a power of two. Three parts can't lie open but at the end of a list; two and four, played here, are the
arities next to it on both sides.

Disputes about receipts of execution: on an EVM and by the rules, whoever tells the truth wins.
"""

from collections import Counter
from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from itertools import product
from random import Random

import pytest
from adversaries import tampered
from timed_disputes import ClockedCourt, Pace, Timed, clocked_court
from tiny_programs import Contradicting, Silent, every_lie, honest_trace
from web3.exceptions import ContractLogicError

import toy_program
from dispute_harness import ZERO, Court, court, replay_claim
from hostile_players import RandomPlayer
from lab.disputes.dispute_match import Match
from pol.commitments.keccak import keccak256
from pol.commitments.merkle import depth
from pol.commitments.program_hash import ProgramCommitment
from pol.commitments.receipt import RECEIPT_NODES, receipt_nodes
from pol.commitments.tensor import constants_root
from pol.demo.lying_players import LyingTrace
from pol.dispute.disputed_claim import ReceiptClaim
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import Player, ReplayPlayer
from pol.dispute.play.receipt_evidence import open_receipt, trace_receipt
from pol.dispute.position import Side
from pol.dispute.receipt_start import start_receipt
from pol.errors import ProtocolError
from pol.execution.cpu import CpuExecutor

SHAPES = list(product((1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3)))
"""Nodes, terms of the fold, steps."""
SIDES = (Side.ASSERTER, Side.CHALLENGER)
PROMPT, LAST_SECOND = Pace(), Pace(last_second=True)


@pytest.fixture(scope="module", params=[1, 2])
def small_court(request: pytest.FixtureRequest) -> Iterator[Court]:
    with court(bits=request.param) as found:
        yield found


def hear(court: Court, honest: SegmentTrace, liar: SegmentTrace, side: Side, player: Player) -> Match:
    players = {side: player, side.other: ReplayPlayer(honest)}
    claim = replay_claim(honest, liar if side is Side.ASSERTER else honest)
    header = ProgramCommitment.of(honest.program).header
    return court.hear(claim, header, players[Side.ASSERTER], players[Side.CHALLENGER])


def ways(honest: SegmentTrace, liar: LyingTrace, other: LyingTrace, random: Random) -> list[Player]:
    """How to play with a lie, but for telling it to the end."""
    return [
        RandomPlayer(random, honest.program),
        Contradicting((ReplayPlayer(liar), ReplayPlayer(honest))),
        Contradicting((ReplayPlayer(liar), ReplayPlayer(other), RandomPlayer(random, honest.program))),
        *(Silent(ReplayPlayer(liar), moves) for moves in range(4)),
    ]


def most_moves(shape: tuple[int, int, int], bits: int) -> int:
    """One for each opening that a dispute can have: the first is the challenge's, and after the last comes a proof."""
    nodes, _, steps = shape
    leaf, terms, body = 1, 1, 1
    return sum(max(1, -(-depth(n) // bits)) for n in (steps, nodes)) + leaf + terms + body


def clash_all(court: Court, shapes: list[tuple[int, int, int]], every: int, share: float) -> Counter[str]:
    """Both sides play dishonestly, with ``share`` of all pairs of ways to: how the games ended."""
    random, seen = Random(5), Counter[str]()
    for shape in shapes:
        honest = honest_trace(*shape)
        end, header = honest.first_step + honest.steps, ProgramCommitment.of(honest.program).header
        lies = list(every_lie(honest))
        for lie in lies[::every]:
            mine, yours, other = (LyingTrace(honest, li) for li in (lie, *random.choices(lies, k=2)))
            if mine.state_root(end) == yours.state_root(end):
                continue
            asserters, challengers = (
                [ReplayPlayer(trace), *ways(honest, trace, other, random)] for trace in (mine, yours)
            )
            claim = replay_claim(honest, mine)
            for asserter, challenger in product(asserters, challengers):
                if random.random() > share:
                    continue
                # `hear` holds each head and the end against the chain's; a head names the side whose clock runs.
                match = court.hear(claim, header, copy(asserter), copy(challenger))
                assert match.winner in (Side.ASSERTER, Side.CHALLENGER)
                assert match.refuted or match.winner is match.last.turn.other
                assert len(match.record.moves) <= most_moves(shape, court.bits), (shape, lie, match.detail)
                seen.update(["games", match.winner.name, f"refuted {match.refuted}", type(asserter).__name__])
    return seen


def play_all(court: Court, shapes: list[tuple[int, int, int]], every: int) -> int:
    random, games = Random(4), 0
    for shape in shapes:
        honest = honest_trace(*shape)
        end = honest.first_step + honest.steps
        lies = [lie for lie in every_lie(honest) if LyingTrace(honest, lie).state_root(end) != honest.state_root(end)]
        for number, (lie, side) in enumerate(product(lies, (Side.ASSERTER, Side.CHALLENGER))):
            liar = LyingTrace(honest, lie)
            players: list[Player] = [ReplayPlayer(liar)]
            if number % every == 0:
                players += ways(honest, liar, LyingTrace(honest, random.choice(lies)), random)
            for player in players:
                match = hear(court, honest, liar, side, player)
                assert match.winner is side.other, (shape, lie, side, player, match.detail)
                games += 1
    return games


def test_the_truth_wins_small_games(small_court: Court) -> None:
    assert play_all(small_court, [(1, 1, 1), (1, 3, 2), (3, 2, 1), (4, 4, 3)], every=9) > 300


@pytest.mark.slow
def test_the_truth_wins_every_small_game(small_court: Court) -> None:
    assert play_all(small_court, SHAPES, every=1) > 10_000


def test_small_games_without_truth_end(small_court: Court) -> None:
    seen = clash_all(small_court, [(1, 3, 2), (3, 2, 1), (4, 4, 3)], every=23, share=0.2)
    assert min(seen[key] for key in ("ASSERTER", "CHALLENGER", "refuted True", "refuted False")) > 0
    assert min(seen[player.__name__] for player in (ReplayPlayer, RandomPlayer, Contradicting, Silent)) > 0
    assert seen["games"] > 50


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_small_games_of_every_shape_without_truth_end(small_court: Court) -> None:
    assert clash_all(small_court, SHAPES, every=1, share=0.25)["games"] > 10_000


@pytest.fixture(scope="module", params=[1, 2])
def clocked(request: pytest.FixtureRequest) -> Iterator[ClockedCourt]:
    with clocked_court(request.param) as found:
        yield found


def timed(
    court: ClockedCourt, honest: SegmentTrace, traces: dict[Side, SegmentTrace], paces: dict[Side, Pace]
) -> Timed:
    players = {side: ReplayPlayer(trace) for side, trace in traces.items()}
    header = ProgramCommitment.of(honest.program).header
    return court.play_timed(replay_claim(honest, traces[Side.ASSERTER]), header, players, paces)


def liars(honest: SegmentTrace) -> list[LyingTrace]:
    """Whose lies show in what is claimed."""
    end = honest.first_step + honest.steps
    found = [LyingTrace(honest, lie) for lie in every_lie(honest)]
    return [liar for liar in found if liar.state_root(end) != honest.state_root(end)]


def race(court: ClockedCourt, honest: SegmentTrace, liar: LyingTrace, side: Side) -> int:
    """The games about one lie in which somebody is late; how many."""
    traces: dict[Side, SegmentTrace] = {side: liar, side.other: honest}
    for mine, yours in ((LAST_SECOND, PROMPT), (PROMPT, LAST_SECOND), (LAST_SECOND, LAST_SECOND)):
        found = timed(court, honest, traces, {side: mine, side.other: yours})
        assert (found.winner, found.late) == (side.other, Side.NONE), "the last second counts"
    games, moves = 3, found.match.record.moves
    # The asserter makes the first move, and they take turns.
    for number in range(len(moves)):
        late = SIDES[number % 2]
        paces = {late: Pace(last_second=True, too_late=number // 2), late.other: PROMPT}
        found = timed(court, honest, traces, paces)
        assert (found.winner, found.late) == (late.other, late), "one second later, even the truth loses"
        games += 1
    return games


def test_the_last_second_counts_and_the_next_one_does_not(clocked: ClockedCourt) -> None:
    honest = honest_trace(2, 2, 2)
    lies = liars(honest)
    assert sum(race(clocked, honest, lies[i], side) for i, side in zip((0, -1), SIDES, strict=True)) > 12


def test_two_liars_who_take_all_their_time_still_end(clocked: ClockedCourt) -> None:
    honest = honest_trace(2, 3, 2)
    mine, *_, yours = liars(honest)
    for paces in product((LAST_SECOND, PROMPT), repeat=2):
        found = timed(
            clocked, honest, dict(zip(SIDES, (mine, yours), strict=True)), dict(zip(SIDES, paces, strict=True))
        )
        assert (found.winner, found.late) == (found.match.winner, Side.NONE)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_every_small_lie_against_the_clock(clocked: ClockedCourt) -> None:
    games = 0
    for shape in product((1, 3), (1, 3), (1, 2)):
        honest = honest_trace(*shape)
        games += sum(race(clocked, honest, liar, side) for liar, side in product(liars(honest), SIDES))
    assert games > 500


STEPS, LAST = 3, 5


@pytest.fixture(scope="module", params=[2, 4])
def bench(request: pytest.FixtureRequest) -> Iterator[Court]:
    with court(bits=request.param) as found:
        yield found


def toy_trace() -> SegmentTrace:
    program, constants = toy_program.build(), toy_program.constants()
    executor = CpuExecutor(program, constants, threads=1)
    return SegmentTrace(program, constants, executor, toy_program.initial_state(), LAST - STEPS + 1, STEPS)


def claim_of(honest: SegmentTrace, asserted: SegmentTrace, seed: bytes) -> ReceiptClaim:
    """The state before the last step is agreed."""
    program, constants = honest.program, constants_root(honest.program.constants, honest.constants)
    told = (ZERO, ProgramCommitment.of(program).hash, constants, LAST, honest.state_root(LAST))
    return ReceiptClaim(*told, trace_receipt(asserted, LAST, seed), seed)


def listen(court: Court, claim: ReceiptClaim, asserted: SegmentTrace, challenging: SegmentTrace) -> Match:
    header, payload = challenging.commitment.header, open_receipt(challenging, claim, court.bits)
    return court.hear(claim, header, ReplayPlayer(asserted), ReplayPlayer(challenging), payload)


def seeds() -> Iterator[bytes]:
    return (keccak256(b"receipt %d" % number) for number in range(10_000))


def lies(random: Random) -> Iterator[tuple[SegmentTrace, SegmentTrace, bytes]]:
    """An honest trace, one with a lie in its last step, and a seed whose receipt shows it."""
    while True:
        honest = toy_trace()
        liar = tampered(honest, "scalar", random)
        if liar is None or liar.state_root(LAST) != honest.state_root(LAST):
            continue
        for seed in seeds():
            if trace_receipt(liar, LAST, seed) != trace_receipt(honest, LAST, seed):
                yield honest, liar, seed
                break


@pytest.mark.parametrize("side", [Side.ASSERTER, Side.CHALLENGER])
def test_whoever_tells_the_truth_wins(bench: Court, side: Side) -> None:
    """Lies in any operation of the step; the other side proves where they are."""
    ended: Counter[bool] = Counter()
    for (honest, liar, seed), _ in zip(lies(Random(f"receipt {side}")), range(6), strict=False):
        asserted, challenging = (liar, honest) if side is Side.ASSERTER else (honest, liar)
        match = listen(bench, claim_of(honest, asserted, seed), asserted, challenging)
        assert match.winner is side.other, match.detail
        ended[match.refuted] += 1
    assert ended[True] > 0


def test_a_planted_receipt_falls(bench: Court) -> None:
    """Nobody has a trace of it: the asserter finds nothing wrong in the true one, and the state after is no way out."""
    honest = toy_trace()
    claim = replace(claim_of(honest, honest, ZERO), receipt=keccak256(b"planted"))
    match = listen(bench, claim, honest, honest)
    assert (match.winner, match.refuted) == (Side.CHALLENGER, False)
    assert "does not lead to the state" in match.detail


def test_what_is_shown_stands_in_the_trace_and_differs(bench: Court) -> None:
    honest = toy_trace()
    header = honest.commitment.header
    true = claim_of(honest, honest, ZERO)
    payload = open_receipt(honest, true, bench.bits)
    refused(bench, true, header, payload)
    planted = replace(true, receipt=keccak256(b"planted"))
    start_receipt(planted, header, payload, bench.bits)
    for at in (0, 33, len(payload) - 1):
        refused(bench, planted, header, payload[:at] + bytes([payload[at] ^ 1]) + payload[at + 1 :])
    refused(bench, planted, header, payload[:-1])
    refused(bench, planted, header, payload + b"\0")


def refused(court: Court, claim: ReceiptClaim, header: bytes, payload: bytes) -> None:
    with pytest.raises(ProtocolError):
        start_receipt(claim, header, payload, court.bits)
    with pytest.raises(ContractLogicError):
        court.begin(claim, header, payload)


def test_the_draw_is_even_over_the_nodes() -> None:
    """Every node is drawn as often as any other, but for chance: 4 of 7 in 10,000 draws."""
    counts = Counter(node for seed in seeds() for node in receipt_nodes(seed, 7))
    expected = 10_000 * RECEIPT_NODES / 7
    assert set(counts) == set(range(7))
    assert all(abs(count - expected) < 5 * expected**0.5 for count in counts.values())
