"""``pol explain --dispute``: what a dispute about a task, or about a step program in a file, would take here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from pol.cli.dispute.program_seconds import needs_of_program, seconds_at_speed
from pol.dispute.dispute_seconds import dispute_seconds
from pol.errors import ProtocolError
from pol.execution.available_memory import available_memory
from pol.report.disputes.dispute_needs_lines import needs_document, print_needs
from pol.roles.party.task_reader import TaskReader
from pol.roles.process.defence import require_defensible


def of_task(reader: TaskReader, task_id: bytes) -> dict[str, Any]:
    """The needs of a dispute about a segment of a task, and whether this machine meets them in the task's clocks."""
    terms, market, times = reader.market.registry.terms(task_id), reader.market, reader.times
    game, task = market.objection_game if terms.is_exact else market.game, reader.task(task_id)
    needs = times.needs(task_id, task, game.bits)
    document = needs_document(needs, dispute_seconds(needs, times.speeds(times.pace(task_id, task))))
    replay_grace, move_grace = game.graces
    document["limits"] = {
        "clock": terms.clock,
        "replayGrace": replay_grace,
        "moveGrace": move_grace,
        "block_gas": reader.connection.block_gas_limit(),
        "available_memory": available_memory(),
    }
    document["refusal"] = ""
    try:
        require_defensible(reader, task_id, terms, game)
    except ProtocolError as error:
        document["refusal"] = str(error)
    return {"task": task_id.hex(), **document}


def of_file(path: Path, interval: int, step_seconds: float | None) -> dict[str, Any]:
    """The needs of a dispute about a segment of a program in a file; without ``step_seconds`` no time is known.

    Raises:
        ProtocolError: the file is no step program's.
        OperationalError: it can't be read.
    """
    needs = needs_of_program(path, interval)
    return needs_document(needs, None if step_seconds is None else seconds_at_speed(needs, step_seconds))


def show(document: dict[str, Any], as_json: bool) -> None:
    """Print what `of_task` or `of_file` found."""
    if as_json:
        print(json.dumps(document, indent=2))
        return
    console = Console(highlight=False, soft_wrap=True)
    print_needs(document, console)
    for name, limit in document.get("limits", {}).items():
        console.print(f"{name:<20} {limit:,}" if limit is not None else f"{name:<20} unknown")
    if document.get("refusal"):
        console.print(escape(f"A party with this machine stakes nothing: {document['refusal']}"))
