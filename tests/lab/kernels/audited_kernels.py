"""Kernels of every class, with what their machine code may hold."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lab.benchmarks.training_bits import MODELS
from lab.kernels.drawn_forms import DescriptorDraw, FormDraw
from lab.kernels.machine_code import MachineCode, disassembled, violations
from lab.kernels.operation_nodes import contraction, drawn_table_gradient
from pol.arithmetic.primitives import ARITY, Op
from pol.arithmetic.scalar_program import Instruction, ScalarProgram
from pol.execution.device.contraction_source import TILES, contraction_kernel, contraction_of
from pol.execution.device.device import Kernel
from pol.execution.device.loops import loops_of
from pol.execution.device.nvrtc import Compiler
from pol.execution.device.planned_kernels import planned_kernels
from pol.execution.device.roots import LEAF_TREES, NODE_TREES
from pol.graph.node import Affine, Input, InputKind, Node, Operand, Source
from pol.graph.tensor_type import DType, TensorType

ORDERS = (("bmk", "bkn"), ("bkm", "bnk"), ("mbk", "knb"))
ONE = 0x3F800000
MOST_SPILLED = 32
"""Bytes of a contraction's registers: a few addresses, so that two blocks fit on a multiprocessor."""


@dataclass(frozen=True)
class Audited:
    """A kernel and the primitives of its scalar program; `straight` if each is executed once."""

    kernel: Kernel
    ops: tuple[Op, ...]
    straight: bool
    contraction: bool = False

    def violations(self, code: MachineCode) -> list[str]:
        """What its machine code may not hold."""
        found = violations(code, self.ops, self.straight)
        spills = code.counts["LDL"] + code.counts["STL"]
        if self.contraction and (code.local_bytes > MOST_SPILLED or spills > len(code.main) / 50):
            found.append(f"{code.local_bytes} bytes of registers spilled into memory, by {spills} instructions")
        return found


def of_nodes(nodes: Iterable[Node]) -> Iterator[Audited]:
    """The kernels that a device would run for these nodes."""
    for node in nodes:
        ops = tuple(instruction.op for instruction in node.body.instructions)
        product = contraction_of(node, loops_of(node)) is not None
        for kernel in planned_kernels(node).kernels:
            yield Audited(kernel, ops, not node.fold, product)


def primitives() -> Iterator[Audited]:
    """A map for each primitive, of words and of words and constants; comparisons followed by a selection."""
    for op in Op:
        registers = range(ARITY[op])
        yield from of_nodes([_map(ScalarProgram(3, (), (Instruction(op, *registers),)))])
        for constant in range(ARITY[op]):
            places = [3 if register == constant else register for register in registers]
            yield from of_nodes([_map(ScalarProgram(3, (word,), (Instruction(op, *places),))) for word in (0, ONE)])
    for op, word, swapped in itertools.product((Op.FLT, Op.FLE, Op.FEQ), (0, ONE), (False, True)):
        for order in ((0, 3), (3, 0)):
            picked = order[::-1] if swapped else order
            body = (Instruction(op, *order), Instruction(Op.SELECT, 4, *picked))
            yield from of_nodes([_map(ScalarProgram(3, (word,), body))])
    unfused = (Instruction(Op.FMUL, 0, 1), Instruction(Op.FADD, 3, 2))
    yield from of_nodes([_map(ScalarProgram(3, (), unfused))])


def contractions() -> Iterator[Audited]:
    """Every tile in every layout, of numbers and of integers, with sizes that a tile divides and others."""
    for order, integers, sizes in itertools.product(ORDERS, (False, True), ((2, 256, 256, 64), (3, 130, 33, 19))):
        node = contraction(*sizes, order, integers)
        ops = tuple(instruction.op for instruction in node.body.instructions)
        loops = loops_of(node)
        found = contraction_of(node, loops)
        assert found is not None
        for tile in TILES:
            yield Audited(contraction_kernel(node, loops, found, tile), ops, False, True)
    yield from of_nodes([contraction(2, 256, 256, 64, ORDERS[0], integers=True)])


def drawn(count: int) -> Iterator[Audited]:
    """Products and convolutions, rows and maps, keyed folds, and arbitrary programs of all primitives."""
    for kind in ("product", "sum", "map"):
        yield from of_nodes(FormDraw(seed).drawn(kind).node for seed in range(count))
    yield from of_nodes(drawn_table_gradient(seed)[0] for seed in range(count // 4 + 1))
    yield from of_nodes(DescriptorDraw(seed).node() for seed in range(count))


def models() -> Iterator[Audited]:
    """Every kernel of the sample models' steps."""
    for model in MODELS.values():
        yield from of_nodes(model(2).program.nodes)


def audit(compiler: Compiler, audited: Iterable[Audited]) -> dict[str, list[str]]:
    """Kernels, by name, whose machine code holds what it may not."""
    by_name = {one.kernel.name: one for one in audited}
    found = {}
    for group, cubin in compiler.units([one.kernel for one in by_name.values()]):
        codes = disassembled(cubin)
        for kernel in group:
            sentences = by_name[kernel.name].violations(codes[kernel.name])
            if sentences:
                found[kernel.name] = [*sentences, kernel.named_source]
    return found


def keccak(compiler: Compiler) -> dict[str, MachineCode]:
    """The kernels of Merkle trees."""
    names = {LEAF_TREES.name: "hash_leaf_trees", NODE_TREES.name: "hash_node_trees"}
    units = compiler.units([LEAF_TREES, NODE_TREES])
    return {names[name]: code for _, cubin in units for name, code in disassembled(cubin).items()}


def _map(program: ScalarProgram) -> Node:
    """A map of three tensors."""
    shape = TensorType(DType.F32, (1000,))
    operands = tuple(Operand(Source.CONSTANT, index, shape, Affine(0, (0, 1))) for index in range(3))
    return Node(shape, operands, tuple(Input(InputKind.OPERAND, index) for index in range(3)), program)
