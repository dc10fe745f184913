"""Graphs from strangers never lead torch out of a tensor's memory: what the rules and the executor let pass runs here.

As a program, with fence.cpp preloaded, this file runs drawn calls of operations in forks of itself, which end where
memory beside a tensor is read or written; it prints those calls.
"""

import ctypes
import math
import mmap
import os
import random
import shutil
import signal
import subprocess
import sys
import traceback
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
import torch
from torch import Tensor

from operation_samples import CASES, graph_of, name_of
from pol.errors import PolError
from pol.execution.stock_torch.torch_executor import NativeExecutor, to_module
from pol.graph.aten_graph import AtenGraph, AtenType, Ref
from pol.graph.lowering import RULES, lower
from pol.graph.lowering.call import Call
from pol.graph.lowering.emitter import Emitter
from pol.graph.lowering.values import whole_view
from pol.graph.node import Source

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

Drawn: TypeAlias = tuple[AtenGraph, list[Tensor]]
MOST, SECONDS = 60, 60
PLACES, UNCHECKED = pytest.mark.parametrize("place", ["1", "2"], ids=["begin", "end"]), "a call without a check"
NUMBERS = (-1, 1, 7, 10**6, -(10**6), 2**31 - 1, -(2**31))


def others(given: Any) -> Iterator[Any]:
    """The argument with one number in it changed, or one item more or less; a tensor with another shape or indices."""
    match given:
        case bool():
            yield not given
        case int():
            yield from (given - 1, given + 1, 0, -1, -given, 2 * given + 1, 2**40, -(2**40))
        case float():
            yield from (0.0, -given, math.nan, math.inf, 1e-300, 1e-20, 1e300)
        case tuple():
            for place, item in enumerate(given):
                yield from ((*given[:place], other, *given[place + 1 :]) for other in others(item))
            yield from (given[:-1], (*given, *given[-1:]))
        case Tensor():
            shape = tuple(given.shape)
            shapes = [shape[::-1], (1, *shape), (*shape, 1)]
            for place, size in enumerate(shape):
                sizes = ((), (1,), (size - 1,), (size + 1,), (70,))
                shapes += [(*shape[:place], *own, *shape[place + 1 :]) for own in sizes]
            yield from (torch.from_numpy(np.resize(given.numpy(), own)) for own in shapes if math.prod(own))
            for number in NUMBERS if given.dtype in {torch.int32, torch.int64} else ():
                yield torch.full_like(given, number)
                one = given.flatten().clone()
                one[-1] = number
                yield one.view(shape)


def other_calls(graph: AtenGraph, tensors: list[Tensor]) -> Iterator[Drawn]:
    (node,) = graph.nodes
    for arguments in others(node.arguments):
        yield replace(graph, nodes=(replace(node, arguments=arguments),)), tensors
    for keywords in others(tuple(value for _, value in node.keywords)):
        pairs = tuple((name, value) for (name, _), value in zip(node.keywords, keywords, strict=False))
        yield replace(graph, nodes=(replace(node, keywords=pairs),)), tensors
    for place, tensor in enumerate(tensors):
        for own in others(tensor):
            with suppress(PolError):
                slot = replace(graph.inputs[place], type=AtenType(name_of(own.dtype), tuple(own.shape)))
                inputs = (*graph.inputs[:place], slot, *graph.inputs[place + 1 :])
                yield replace(graph, inputs=inputs), [*tensors[:place], own, *tensors[place + 1 :]]


def lowered(graph: AtenGraph) -> Iterator[AtenGraph]:
    """The graph with outputs that its rule accepts: those that it has, the shape of an operand, what the rule gives."""
    (node,), types = graph.nodes, {Ref(n): slot.type for n, slot in enumerate(graph.slots)}
    values = {ref: whole_view(Source.STATE, ref.value, type_.words) for ref, type_ in types.items()}
    tried = set()
    for shape in (None, *(type_.shape for type_ in types.values())):
        outputs = tuple(AtenType(own.dtype, own.shape if shape is None else shape) for own in node.outputs)
        while outputs not in tried:
            tried.add(outputs)
            own = replace(node, outputs=outputs)
            with suppress(PolError, TypeError, ValueError, LookupError, ArithmeticError):
                found = RULES[node.operation].lower(Call(Emitter(), own, values, types))
                results = found if isinstance(found, tuple) else (found,)
                outputs = tuple(AtenType(o.dtype, r.shape) for o, r in zip(outputs, results, strict=False))
            with suppress(PolError):
                whole = replace(graph, nodes=(own,), observed=graph.observed[: len(own.outputs)])
                lower(whole)
                yield whole


def drawn_calls(operation: str) -> Iterator[Drawn]:
    """The samples of an operation, and calls that differ from one in one or two places and still lower."""
    draw = random.Random(zlib.crc32(operation.encode()))
    for case in CASES[operation]:
        sample = graph_of(operation, case)
        yield sample
        found = list(other_calls(*sample))
        for drawn in draw.sample(found, min(MOST, len(found))):
            graph, tensors = draw.choice([drawn, *other_calls(*drawn)]) if draw.random() < 0.3 else drawn
            yield from ((own, tensors) for own in lowered(graph))


def call(graph: AtenGraph, tensors: list[Tensor]) -> None:
    """As a solver does, and as measurements do, where any exception is an answer."""
    given = [tensor.clone() for tensor in tensors]
    with suppress(PolError):
        NativeExecutor(graph).run(given, [torch.zeros(())], 3)
    with suppress(Exception):
        to_module(graph)(*given, torch.zeros(()), torch.tensor(3))


def call_unchecked() -> None:
    """Labels before the first class and behind the last one, which torch takes."""
    scores, labels = torch.zeros(5, 7), torch.tensor([-1, 0, 0, 0, 7])
    torch.ops.aten.nll_loss_backward.default(torch.ones(5), scores, labels, None, 0, -100, torch.ones(()))


def ended(run: Callable[[int], None], first: int, count: int) -> tuple[int, int] | None:
    """Run the numbers from ``first`` on in a fork: the one that ends it, and how; None if it ends with the last."""
    place = mmap.mmap(-1, 8)
    child = os.fork()
    if child == 0:
        try:
            for number in range(first, count):
                place[:8] = number.to_bytes(8, "little")
                signal.alarm(SECONDS)
                run(number)
            os._exit(0)
        except BaseException:  # noqa: BLE001  # no exception leaves a fork
            traceback.print_exc()
        finally:
            os._exit(99)
    status = os.waitpid(child, 0)[1]
    return (int.from_bytes(place[:8], "little"), os.waitstatus_to_exitcode(status)) if status else None


def main(place: int, operations: list[str]) -> None:
    torch.set_num_threads(1)
    library = ctypes.CDLL(os.environ["LD_PRELOAD"])
    for operation in operations:
        drawn = [] if operation == UNCHECKED else list(drawn_calls(operation))

        def fenced(number: int, drawn: list[Drawn] = drawn) -> None:
            assert library.fence(place) == 0
            call(*drawn[number]) if drawn else call_unchecked()

        begin, count = 0, max(len(drawn), 1)
        while begin < count and (end := ended(fenced, begin, count)) is not None:
            number, code = end
            if ended(fenced, number, number + 1) is not None:  # not for what the calls before it have left
                print(f"{operation} ends with {code}: {drawn[number:][:1]}", flush=True)
            begin = number + 1
        print(f"{len(drawn)} calls", flush=True)


@pytest.fixture(scope="module")
def fence(tmp_path_factory: pytest.TempPathFactory) -> str:
    if shutil.which("g++") is None:
        pytest.skip("g++ is needed")
    library = str(tmp_path_factory.mktemp("fence") / "fence.so")
    source = Path(__file__).with_name("fence.cpp")
    subprocess.run(["g++", "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


def printed(fence: str, *arguments: str) -> list[str]:
    environment = {**os.environ, "LD_PRELOAD": fence, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, __file__, *arguments], env=environment, stdout=-1, text=True, check=True)
    return done.stdout.splitlines()


@PLACES
def test_no_call_that_lowers_leaves_the_memory_of_its_tensors(place: str, fence: str) -> None:
    lines = printed(fence, place, *sorted(CASES))
    assert [line for line in lines if not line.endswith(" calls")] == []
    assert sum(int(line.split()[0]) for line in lines) > 20_000


@PLACES
def test_the_fence_sees_one_word_beside_a_tensor(place: str, fence: str) -> None:
    assert printed(fence, place, UNCHECKED)[0] == f"{UNCHECKED} ends with {-signal.SIGSEGV}: []"


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
