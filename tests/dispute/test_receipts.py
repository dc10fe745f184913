"""Disputes about receipts of execution: on an EVM and by the rules, whoever tells the truth wins."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest
from adversaries import tampered
from web3.exceptions import ContractLogicError

import toy_program
from dispute_harness import ZERO, Court, court
from lab.disputes.dispute_match import Match
from pol.commitments.keccak import keccak256
from pol.commitments.program_hash import ProgramCommitment
from pol.commitments.receipt import RECEIPT_NODES, receipt_nodes
from pol.commitments.tensor import constants_root
from pol.dispute.disputed_claim import ReceiptClaim
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import ReplayPlayer
from pol.dispute.play.receipt_evidence import open_receipt, trace_receipt
from pol.dispute.position import Side
from pol.dispute.receipt_start import start_receipt
from pol.errors import ProtocolError
from pol.execution.cpu import CpuExecutor

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


def hear(court: Court, claim: ReceiptClaim, asserted: SegmentTrace, challenging: SegmentTrace) -> Match:
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
        match = hear(bench, claim_of(honest, asserted, seed), asserted, challenging)
        assert match.winner is side.other, match.detail
        ended[match.refuted] += 1
    assert ended[True] > 0


def test_a_planted_receipt_falls(bench: Court) -> None:
    """Nobody has a trace of it: the asserter finds nothing wrong in the true one, and the state after is no way out."""
    honest = toy_trace()
    claim = replace(claim_of(honest, honest, ZERO), receipt=keccak256(b"planted"))
    match = hear(bench, claim, honest, honest)
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
