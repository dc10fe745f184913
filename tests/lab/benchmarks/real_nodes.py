"""Single nodes at the shapes of models with billions of parameters: executed, disputed, and settled on a local node.

Each side has a process's whole memory, so one node is measured at a time:
`PYTHONPATH=tests python -m lab.benchmarks.real_nodes NAME`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from lab.benchmarks.figure import ROOT, Figure
from lab.benchmarks.local_node import local_node
from lab.benchmarks.whole_dispute import ZERO, Court
from pol.arithmetic.primitives import Words
from pol.commitments.program_hash import ProgramCommitment
from pol.commitments.tensor import constants_root
from pol.demo.lying_players import Lie, LyingTrace
from pol.dispute.disputed_claim import ReplayClaim
from pol.dispute.play.execution_evidence import SegmentTrace
from pol.dispute.play.honest_players import ReplayPlayer
from pol.dispute.position import HASH_BITS, Side
from pol.errors import OperationalError
from pol.execution.cpu import on_all_cores
from pol.graph.aten_graph import AtenGraph, AtenInput, AtenNode, AtenType, InputRole, Ref
from pol.graph.lowering import lower
from pol.graph.step_program import Component

F32, I64 = "float32", "int64"
RESULT = Ref(4)
"""After the slot, two constants and the number of the step."""


def _graph(operation: str, first: AtenType, second: AtenType, result: AtenType, *more: int | bool) -> AtenGraph:
    """A step that puts the result of one operation on two constants into its state."""
    inputs = (
        AtenInput(InputRole.STATE, "y", result, Component.PARAMETER),
        AtenInput(InputRole.CONSTANT, "a", first),
        AtenInput(InputRole.CONSTANT, "b", second),
        AtenInput(InputRole.STEP, "step", AtenType(I64, ())),
    )
    node = AtenNode(operation, (Ref(1), Ref(2), *more), (), (result,), "y", operation)
    return AtenGraph(inputs, (node,), (RESULT,), ())


def _contraction() -> AtenGraph:
    """A product of a feed-forward block of Llama 8B: 4,096 tokens, 14,336 by 4,096 weights."""
    types = AtenType(F32, (4096, 14336)), AtenType(F32, (14336, 4096)), AtenType(F32, (4096, 4096))
    return _graph("aten.mm.default", *types)


def _embedding_gradient() -> AtenGraph:
    """Of 128,256 words of width 4,096, by 4,096 tokens."""
    types = AtenType(F32, (4096, 4096)), AtenType(I64, (4096,)), AtenType(F32, (128256, 4096))
    return _graph("aten.embedding_dense_backward.default", *types, 128256, -1, False)


def _attention() -> AtenGraph:
    """The scores of 32 heads over 4,096 tokens."""
    types = AtenType(F32, (32, 4096, 128)), AtenType(F32, (32, 128, 4096)), AtenType(F32, (32, 4096, 4096))
    return _graph("aten.bmm.default", *types)


NODES: Mapping[str, Callable[[], AtenGraph]] = {
    "contraction": _contraction,
    "embedding_gradient": _embedding_gradient,
    "attention": _attention,
}


def measure(name: str) -> dict[str, float]:
    """Seconds of executing, and of the dispute with both sides' executions; gas; bytes of the process at most.

    Raises:
        OperationalError: the liar won, or anvil isn't there.
    """
    graph = NODES[name]()
    program, _ = lower(graph)
    rng = np.random.default_rng(1)
    constants = [_drawn(entry.type, rng) for entry in graph.inputs if entry.role is InputRole.CONSTANT]
    state = [np.zeros(slot.type.shape, np.uint32) for slot in program.slots]
    executor = on_all_cores(program, constants)
    honest = SegmentTrace(program, constants, executor, state, 0, 1)
    number = max(range(len(program.nodes)), key=lambda n: program.nodes[n].type.numel * program.nodes[n].terms)
    node = program.nodes[number]
    element, term = _lied(node.type.shape, constants[1], name)
    lie = Lie(0, number, element, term, len(node.body.instructions) - 1, 21)
    began = time.monotonic()
    honest.state_root(1)
    executing = time.monotonic() - began
    with local_node("osaka") as url:
        court, commitment = Court(url, HASH_BITS), ProgramCommitment.of(program)
        about = (ZERO, commitment.hash, constants_root(program.constants, constants), 0, 1, honest.state_root(0))
        for side in Side.ASSERTER, Side.CHALLENGER:
            # The liar is on the side on which the other one has to prove.
            began = time.monotonic()
            honest = SegmentTrace(program, constants, executor, state, 0, 1)
            liar = LyingTrace(honest, lie, threads=0)
            asserted = liar if side is Side.ASSERTER else honest
            players = {side: ReplayPlayer(liar), side.other: ReplayPlayer(honest)}
            claim = ReplayClaim(*about, asserted.state_root(1))
            played = court.play(claim, commitment.header, players[Side.ASSERTER], players[Side.CHALLENGER])
            seconds = time.monotonic() - began
            if played.match.refuted:
                break
    if played.match.winner is not side.other or not played.match.refuted:
        raise OperationalError(f"the lie about {name} wasn't refuted: {played.match.detail}")
    gas, moves = played.start_gas + sum(played.gas), played.match.transactions
    return {"executing": executing, "seconds": seconds, "gas": gas, "moves": moves, "dearest": max(played.gas)}


def _drawn(type_: AtenType, rng: np.random.Generator) -> Words:
    if type_.dtype == I64:
        return rng.integers(0, 128256, type_.shape, np.int32).view(np.uint32)
    return rng.standard_normal(type_.shape, np.float32).view(np.uint32)


def _lied(shape: tuple[int, ...], second: Words, name: str) -> tuple[int, int]:
    """An element and one of its terms that isn't zero."""
    if name == "embedding_gradient":
        token = len(second) // 2
        return int(second[token]) * shape[-1] + 17, token
    return int(np.prod(shape)) // 3, 1 << 6


def node_figures() -> dict[str, Figure]:
    """Of each node: the dispute's seconds beside those of executing it, and its gas; a process of its own for each."""
    figures = dict[str, Figure]()
    for name in NODES:
        command = [sys.executable, "-m", "lab.benchmarks.real_nodes", name]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise OperationalError(f"{name} wasn't measured: {done.stderr[-2000:]}")
        found = json.loads(done.stdout.splitlines()[-1])
        ratio = found["seconds"] / found["executing"]
        figures |= {
            f"{name}_dispute_seconds": Figure(found["seconds"], "s, both sides", "executing it once", ratio),
            f"{name}_dispute_gas": Figure(found["gas"], f"gas, in {found['moves']} transactions"),
            f"{name}_dearest_move_gas": Figure(found["dearest"], "gas"),
            f"{name}_memory": Figure(found["peak"] / 1e9, "GB of both sides in one process"),
        }
    return figures


def _peak() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith("VmHWM:"))) * 1024


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1]) | {"peak": _peak()}))
