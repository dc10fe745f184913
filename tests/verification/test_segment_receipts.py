"""Claims with receipts: what they cost is no trace of a step."""

import pytest

import toy_program
from pol.commitments.keccak import keccak256
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.receipt_evidence import trace_receipt
from pol.execution.cpu import CpuExecutor
from pol.execution.executor import ExecutorFactory
from pol.execution.reference import ReferenceExecutor
from pol.verification.verdict.segment_verification import measure_segment

pytestmark = pytest.mark.rules

INTERVAL, SEED = 4, keccak256(b"receipt")


@pytest.mark.parametrize("factory", [CpuExecutor, ReferenceExecutor])
@pytest.mark.parametrize("interval", [1, INTERVAL])
def test_a_claim_has_the_receipt_of_its_trace(factory: ExecutorFactory, interval: int) -> None:
    program, constants, start = toy_program.build(), toy_program.constants(), toy_program.initial_state()
    trace = SegmentTrace(program, constants, CpuExecutor(program, constants), start, 0, interval)
    end = trace.state(interval)
    claim = measure_segment(program, factory(program, constants), start, end, 0, interval, receipt_seed=SEED)
    plain = measure_segment(program, factory(program, constants), start, end, 0, interval)
    assert claim.before == trace.state_root(interval - 1)
    assert claim.receipt == trace_receipt(trace, interval - 1, SEED)
    assert (claim.replay, claim.distances) == (plain.replay, plain.distances) == (claim.end, (0, 0, 0))
    assert not any(plain.before + plain.receipt)


def test_no_step_is_held_in_memory_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Outputs of all nodes of a large model are many times its state."""
    program, constants, start = toy_program.build(), toy_program.constants(), toy_program.initial_state()
    end = CpuExecutor(program, constants).advance(start, 0)[0]

    def run(*_: object) -> None:
        raise AssertionError("the outputs of all nodes were asked for")

    monkeypatch.setattr(CpuExecutor, "run", run)
    assert any(measure_segment(program, CpuExecutor(program, constants), start, end, 0, 1, receipt_seed=SEED).receipt)
