"""The work of a step program, in units that depend on nothing but its bytes.

One evaluation of a scalar program costs the weights of its primitives plus one unit per operand read; a node costs that
times its elements times its terms. Weights stand for cost on ordinary processors: moving, comparing, integer and
bitwise primitives, one addition or one multiplication are 1; a fused multiply-add is two of these; divisions and square
roots, which pipeline badly, are 4.
"""

from __future__ import annotations

from collections.abc import Mapping

from pol.arithmetic.primitives import Op
from pol.graph.node import Node
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
