"""``pol explain --dispute``: what a dispute about a task, or about a step program in a file, would take here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from pol.cli.dispute.program_seconds import needs_of_program, seconds_at_speed
from pol.dispute.dispute_needs import DisputeNeeds, DisputeSeconds, dispute_seconds, element_work
from pol.dispute.encoding.move_sizes import MoveSize, gas_of
from pol.errors import ProtocolError
from pol.execution.available_memory import available_memory
from pol.roles.party.task_reader import TaskReader
from pol.roles.process.defence import require_defensible

LABELS = {
    "state": "one state",
    "constants": "constants",
    "trace": "all outputs of a step, hashed and not held",
    "held_states": "states that are held",
    "step": "a step in work",
    "node": "the largest node with its operands",
    "memory": "held at the worst moment",
    "segment_states": "all states of the segment, hashed and not held",
}
SECONDS = {
    "replay": "replay of the segment: before the first move, or after a restart",
    "again": "up to the disputed step once more, from a state that is kept",
    "trace": "the disputed step and the hashes of its outputs",
    "at_trace": "longest move where a step or more is executed (replayGrace)",
    "node": "the step again for one node",
    "fold": "the longest fold",
    "proof": "the hashes that a proof shows",
    "later": "longest move below (moveGrace)",
    "all": "all moves of one side (clock)",
}


def needs_document(needs: DisputeNeeds, seconds: DisputeSeconds | None) -> dict[str, Any]:
    """The needs as JSON; ``seconds`` are None where the machine's speeds aren't known."""
    node, proof = needs.dearest_proof
    fold = needs.longest_fold
    return {
        "steps": needs.steps,
        "moves": needs.moves,
        "levels": [
            {"level": e.level.name, "size": e.size, "moves": e.moves, "calldata": e.calldata, "gas": e.gas}
            for e in needs.levels
        ],
        "dearest_move": _move(needs.dearest_move),
        "dearest_proof": {"node": node, **_move(proof)},
        "longest_fold": {"node": needs.program.nodes.index(fold), "terms": fold.terms, "work": element_work(fold)},
        "bytes": {
            "state": needs.state_bytes,
            "constants": needs.constant_bytes,
            "trace": needs.trace_bytes,
            "segment_states": needs.state_bytes * needs.steps,
            "held_states": needs.held_state_bytes,
            "step": needs.live_bytes,
            "node": needs.node_bytes,
            "memory": needs.memory,
        },
        "seconds": None if seconds is None else {name: getattr(seconds, name) for name in SECONDS},
    }


def print_needs(document: dict[str, Any], console: Console) -> None:
    """Print the document of `needs_document` as tables."""
    levels = Table("level", "size", "moves", "calldata of the largest", "gas of the dearest", box=None)
    for column in levels.columns[1:]:
        column.justify = "right"
    for each in document["levels"]:
        row = (f"{each[name]:,}" for name in ("size", "moves", "calldata", "gas"))
        levels.add_row(each["level"], *row)
    console.print(levels)
    proof, dearest = document["dearest_proof"], document["dearest_move"]
    fold = document["longest_fold"]
    console.print(f"moves of both sides  {document['moves']} at most, for a segment of {document['steps']:,} steps")
    console.print(f"dearest move         {dearest['move']}, {dearest['calldata']:,} bytes, {dearest['gas']:,} gas")
    console.print(f"dearest proof        node {proof['node']}, {proof['calldata']:,} bytes, {proof['gas']:,} gas")
    console.print(f"longest fold         node {fold['node']}, {fold['terms']:,} terms")
    values = Table("bytes", "", box=None, show_header=False)
    values.columns[0].justify = "right"
    for name, label in LABELS.items():
        values.add_row(f"{document['bytes'][name]:,} B", label)
    for name, label in SECONDS.items():
        if document["seconds"] is not None:
            values.add_row(f"{document['seconds'][name]:,.2f} s", label)
    console.print(values)


def _move(move: MoveSize) -> dict[str, Any]:
    return {"level": move.level.name, "move": move.move, "calldata": move.calldata, "gas": gas_of(move)}


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
    """The needs of a dispute about a segment of a program in a file; without ``step_seconds`` no time is known."""
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
