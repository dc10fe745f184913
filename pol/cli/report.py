"""What the demo showed, for people and for programs."""

from __future__ import annotations

import struct
from dataclasses import dataclass, fields
from typing import Any

from pol.chain.deployment import Deployment
from pol.cli.cast import ETHER, Balance
from pol.dispute.moves import Move, Pick, PickState
from pol.dispute.position import Level, Position
from pol.dispute.record import Record


@dataclass(frozen=True)
class OneStep:
    """The scalar operation that the chain executed."""

    step: int
    node: str
    source: str
    element: int
    k: int
    instruction: int
    op: str
    operands: tuple[int, ...]
    claimed: int
    computed: int
    gas: int


@dataclass(frozen=True)
class DisputeReport:
    """One dispute as it went on chain."""

    task_id: bytes
    dispute: int
    winner: str
    gas: tuple[tuple[Level, int], ...]
    """Level and gas of every move, in order."""
    record: Record
    one_step: OneStep | None


@dataclass(frozen=True)
class Report:
    """What the demo showed."""

    accepted: bool
    cheating_solver_rejected: bool
    lying_verifier_slashed: bool
    false_challenger_slashed: bool
    settled: tuple[str, ...]
    dispute: DisputeReport
    false_dispute: DisputeReport
    balances: tuple[Balance, ...]
    left_in_market: int
    accuracy: float
    deployment: Deployment
    task_document: str
    proofs: tuple[str, str]
    """Digests of the learning proofs that the dispute and the false dispute were about."""

    @property
    def kept_its_promises(self) -> bool:
        """Whether everybody got what the protocol promises."""
        outcomes = (self.accepted, self.cheating_solver_rejected, self.lying_verifier_slashed)
        return all(outcomes) and self.false_challenger_slashed and self.total_change_wei == 0

    @property
    def total_change_wei(self) -> int:
        """What all parties and the market gained together, gas aside: nothing."""
        return sum(b.change for b in self.balances) + self.left_in_market


PROVING = (Level.ONE_STEP, Level.SLOT, Level.SUM_LEAF)
"""Levels at which the last move proves instead of walking on: it carries Merkle proofs and settles the claim."""
WHERE = {
    Level.STEPS: "steps {lo} to {hi}",
    Level.TRACE: "step {step}",
    Level.NODES: "nodes from {lo}",
    Level.NODE: "node {node}",
    Level.LEAVES: "leaves from {lo}",
    Level.LEAF: "leaf {lo}",
    Level.TERMS: "accumulators {lo} to {hi}",
    Level.BODY: "element {element}, k = {term}",
    Level.ONE_STEP: "element {element}, k = {term}, instruction {instruction}",
    Level.STATE: "the state after step {step}",
    Level.SLOTS: "slots from {lo}",
    Level.SLOT: "slot {element}",
    Level.SUM_SLOTS: "sums of slots {lo} to {hi}",
    Level.SUM_SLOT: "slot {lo}",
    Level.SUM_LEAVES: "sums of leaves {lo} to {hi}",
    Level.SUM_LEAF: "slot {element}, leaf {lo}",
}


def describe_position(position: Position, move: Move) -> str:
    """A move in a line."""
    who = "challenger" if isinstance(move, Pick | PickState) else "asserter"
    where = WHERE[position.level].format(**{f.name: getattr(position, f.name) for f in fields(position)})
    picked = f" -> {move.index}" if isinstance(move, Pick) else ""
    return f"{who:<10}  {type(move).__name__:<9}  {position.level.name.lower():<9}  {where}{picked}"


def describe_move(position: Position, move: Move, gas: int) -> str:
    """A move in a line, with its price."""
    return f"[dim]{describe_position(position, move)}  ({gas:,} gas)[/dim]"


def shown(word: int, op: str) -> str:
    """A word in hexadecimal and as what the primitive takes it for."""
    if op.startswith("F"):
        return f"0x{word:08x} = {struct.unpack('<f', struct.pack('<I', word))[0]:.9g}"
    return f"0x{word:08x} = {word}"


def ether(wei: int) -> str:
    """Wei as ether, exact to the gwei."""
    return f"{wei / ETHER:,.6f} ETH"


def to_json(report: Report) -> dict[str, Any]:
    """The report as ``pol demo --json`` prints it."""
    return {
        "accepted": report.accepted,
        "cheating_solver_rejected": report.cheating_solver_rejected,
        "lying_verifier_slashed": report.lying_verifier_slashed,
        "false_challenger_slashed": report.false_challenger_slashed,
        "settled": list(report.settled),
        "accuracy": report.accuracy,
        "dispute": _dispute_json(report.dispute),
        "false_dispute": _dispute_json(report.false_dispute),
        "one_step": _one_step_json(report.dispute.one_step),
        "balances_wei": {
            b.party: {"before": b.before, "after": b.after, "gas": b.gas, "change": b.change} for b in report.balances
        },
        "total_change_wei": report.total_change_wei,
    }


def _dispute_json(dispute: DisputeReport) -> dict[str, Any]:
    gas = [used for _, used in dispute.gas]
    moves = [used for level, used in dispute.gas if level not in PROVING]
    return {
        "winner": dispute.winner,
        "moves": len(gas),
        "gas_total": sum(gas),
        "gas_max_move": max(moves),
        "gas_proof": gas[-1],
        "gas_by_move": [{"level": level.name, "gas": used} for level, used in dispute.gas],
    }


def _one_step_json(one: OneStep | None) -> dict[str, Any] | None:
    if one is None:
        return None
    return {
        "step": one.step,
        "node": one.node,
        "source": one.source,
        "element": one.element,
        "k": one.k,
        "instruction": one.instruction,
        "op": one.op,
        "operands": [f"0x{word:08x}" for word in one.operands],
        "claimed": f"0x{one.claimed:08x}",
        "computed": f"0x{one.computed:08x}",
        "gas": one.gas,
    }
