"""The needs of a dispute about a step program in a file, at this machine's speeds."""

from __future__ import annotations

import time
from pathlib import Path

from pol.dispute.dispute_needs import DisputeNeeds, DisputeSeconds, Speeds, dispute_seconds
from pol.errors import OperationalError, reason_of
from pol.graph.step_program import StepProgram
from pol.roles.party.machine import MachineSpeeds


def needs_of_program(file: Path, interval: int) -> DisputeNeeds:
    """The needs of a dispute about a segment of ``interval`` steps."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise OperationalError(f"can't read the step program {file}: {reason_of(error)}") from error
    return DisputeNeeds(StepProgram.from_bytes(data), interval)


def seconds_at_speed(needs: DisputeNeeds, step: float) -> DisputeSeconds:
    """Seconds of moves on this machine, which takes ``step`` seconds for a step; its other speeds are measured."""
    machine = MachineSpeeds.measured(time.perf_counter)
    return dispute_seconds(needs, Speeds(step, machine.hashing, machine.folding))
