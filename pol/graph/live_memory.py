"""The memory of a step in work."""

from __future__ import annotations

from collections import defaultdict

from pol.graph.node import Source
from pol.graph.step_program import StepProgram


def live_bytes(program: StepProgram) -> int:
    """Bytes of the next state, and of the other outputs that are needed at the same time."""
    nodes, state = program.nodes, {slot.producer for slot in program.slots}
    last = list(range(len(nodes)))
    for number, node in enumerate(nodes):
        for operand in node.operands:
            if operand.source is Source.NODE:
                last[operand.index] = number
    ended = defaultdict[int, int](int)
    live = most = 0
    for number, node in enumerate(nodes):
        live -= ended.pop(number - 1, 0)
        if number not in state:
            live += 4 * node.type.numel
            ended[last[number]] += 4 * node.type.numel
            most = max(most, live)
    return most + 4 * sum(nodes[number].type.numel for number in state)


def replay_bytes(program: StepProgram, states: int) -> int:
    """Bytes that a replay holds: the constants, so many states besides the next one, and the step in work."""
    types = [*program.constants, *(states * [slot.type for slot in program.slots])]
    return 4 * sum(type_.numel for type_ in types) + live_bytes(program)
