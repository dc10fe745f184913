"""The results of the demo, for people and programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pol.chain.deployments.deployment import Deployment
from pol.demo.funding import ETHER, Balance
from pol.dispute.dispute_record import DisputeRecord
from pol.report.disputes.last_operation import OneStep
from pol.report.disputes.move_descriptions import MoveRow


@dataclass(frozen=True)
class DisputeReport:
    """One dispute on chain."""

    task_id: bytes
    dispute: int
    winner: str
    ended_by: str
    """"proof", or "resignation" of the side on turn."""
    rows: tuple[MoveRow, ...]
    """All transactions after the challenge, in order: moves, and a resignation if there was one."""
    gas: tuple[int, ...]
    """Gas of each transaction; the last one also settles the claim."""
    record: DisputeRecord
    heads: tuple[bytes, ...]
    """Head of the dispute on chain before each transaction."""
    players: tuple[bytes, bytes]
    """Addresses of asserter and challenger."""
    one_step: OneStep | None


@dataclass(frozen=True)
class ObjectionReport:
    """An objection to a segment of the exact task."""

    segment: int
    drawn: bool
    """Whether a verifier had to look at it, too."""
    accepted: bool
    """Whether the verdict accepted."""
    dispute: DisputeReport


@dataclass(frozen=True)
class ScenarioReport:
    """The results of the demo."""

    accepted: bool
    cheating_solver_rejected: bool
    lying_verifier_slashed: bool
    false_challenger_slashed: bool
    settled: tuple[str, ...]
    objection: ObjectionReport
    dispute: DisputeReport
    false_dispute: DisputeReport
    balances: tuple[Balance, ...]
    """Balances of all parties and of the fund."""
    planted: int
    """Number of forced errors."""
    catches: int
    """Shares of the jackpot that were paid."""
    accuracy: float
    deployment: Deployment
    task_document: str
    proofs: tuple[str, str]
    """Digests of the learning proofs of the two disputes about verdicts."""
    objection_proof: str
    """Digest of the learning proof that was objected to."""

    @property
    def kept_its_promises(self) -> bool:
        """Whether every outcome is the one that the protocol promises."""
        outcomes = (self.accepted, self.cheating_solver_rejected, self.lying_verifier_slashed)
        return all(outcomes) and self.false_challenger_slashed and self.total_change_wei == 0

    @property
    def total_change_wei(self) -> int:
        """Sum of all changes, without gas: zero, or money was lost or made."""
        return sum(b.change for b in self.balances)


def ether(wei: int) -> str:
    """Wei as ether, exact to the gwei."""
    return f"{wei / ETHER:,.6f} ETH"


def to_json(report: ScenarioReport) -> dict[str, Any]:
    """The report as ``pol demo --json`` prints it."""
    return {
        "accepted": report.accepted,
        "cheating_solver_rejected": report.cheating_solver_rejected,
        "lying_verifier_slashed": report.lying_verifier_slashed,
        "false_challenger_slashed": report.false_challenger_slashed,
        "settled": list(report.settled),
        "accuracy": report.accuracy,
        "planted_errors": report.planted,
        "catches": report.catches,
        "objection": _objection_json(report.objection),
        "dispute": dispute_json(report.dispute),
        "false_dispute": dispute_json(report.false_dispute),
        "one_step": one_step_json(report.dispute),
        "balances_wei": {
            b.party: {"before": b.before, "after": b.after, "locked": b.locked, "gas": b.gas, "change": b.change}
            for b in report.balances
        },
        "total_change_wei": report.total_change_wei,
    }


def to_document(dispute: DisputeReport) -> dict[str, Any]:
    """The document that `pol replay` and `pol dispute` read."""
    heads, players = ([value.hex() for value in values] for values in (dispute.heads, dispute.players))
    told = {"players": players, "heads": heads, "ended_by": dispute.ended_by, "gas": list(dispute.gas)}
    return dispute.record.to_dict() | told


def _objection_json(objection: ObjectionReport) -> dict[str, Any]:
    told = {"segment": objection.segment, "drawn": objection.drawn, "verdict_accepted": objection.accepted}
    return told | dispute_json(objection.dispute) | {"one_step": one_step_json(objection.dispute)}


def one_step_json(dispute: DisputeReport) -> dict[str, Any] | None:
    """The operation that decided a dispute, if one did."""
    return dispute.one_step.to_dict() if dispute.one_step is not None else None


def dispute_json(dispute: DisputeReport) -> dict[str, Any]:
    """A dispute in numbers."""
    return {
        "winner": dispute.winner,
        "ended_by": dispute.ended_by,
        "moves": len(dispute.record.moves),
        "transactions": len(dispute.gas),
        "gas_total": sum(dispute.gas),
        "gas_max_move": max(dispute.gas[:-1]),
        "gas_last": dispute.gas[-1],
        "gas_by_move": [
            {"side": row.side, "level": row.level, "move": row.move, "bytes": row.bytes, "gas": used}
            for row, used in zip(dispute.rows, dispute.gas, strict=True)
        ],
    }
