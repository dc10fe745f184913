"""The work and the memory that a step program takes; they depend on nothing but its bytes.

One evaluation of a scalar program costs the weights of its primitives plus one unit per operand read; a node costs that
times its elements times its terms. Weights stand for cost on ordinary processors: moving, comparing, integer and
bitwise primitives, one addition or one multiplication are 1; a fused multiply-add is two of these; divisions and square
roots, which pipeline badly, are 4.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from pol.arithmetic.primitives import Op
from pol.graph.node import Node, Source
from pol.graph.step_program import StepProgram

READ = 1
WEIGHTS: Mapping[Op, int] = {op: {Op.FFMA: 2, Op.FDIV: 4, Op.FSQRT: 4}.get(op, 1) for op in Op}


def node_work(node: Node) -> int:
    """Work units of one node per step."""
    body = sum(WEIGHTS[instruction.op] for instruction in node.body.instructions)
    return node.type.numel * node.terms * (body + READ * len(node.operands))


def step_work(program: StepProgram) -> int:
    """Work units of one step."""
    return sum(node_work(node) for node in program.nodes)


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
