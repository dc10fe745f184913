"""Odd tasks by hand, past a submitter's checks: hostile ones, and honest ones that are strange."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from role_market import EXACT, INTERVAL, OFFER, STEPS, Town, captured
from torch import Tensor, nn

from pol.arithmetic.primitives import Op
from pol.arithmetic.scalar_program import Instruction, ScalarProgram
from pol.chain.account.wallet import Reverted
from pol.chain.desks.task_registry import Terms
from pol.commitments import canonical_json
from pol.graph.capture import Capture, Loop, capture
from pol.graph.node import Affine, Input, InputKind, Node, Operand, Source
from pol.graph.node_names import ProgramNames
from pol.graph.step_program import Component, Slot
from pol.roles.submitter.submitter import Submitter, terms_of
from pol.training.task import published_task
from pol.training.task.task_document import TaskDocument
from pol.verification.profile.profiling import rerun_programs, rerun_programs_root
from toy_market import fund

Document = dict[str, Any]


class Desk:
    """Where odd tasks come from: a submitter that checks nothing."""

    def __init__(self, town: Town) -> None:
        self.submitter = town.join(Submitter, "odd")
        self.store, self._town = self.submitter.store, town

    def submit(self, terms: Terms) -> bytes:
        """The task on chain, with money for its escrow."""
        fund(self._town.connection, self.submitter.wallet.address)
        self.submitter.deposit(self.submitter.market.settlement.escrow_of(terms))
        return self.submitter.market.registry.submit(self.submitter.wallet, terms)

    def terms(self, step: Any, exact: bool = False, **changes: Any) -> Terms:
        """Publish a step as it is."""
        offer = EXACT if exact else OFFER
        digest, document = published_task.publish(self.store, step, steps=STEPS, interval=INTERVAL)
        return replace(self._terms(document, digest, step, offer), **changes)

    def edited(self, change: Callable[[Document], None], exact: bool = False) -> Terms:
        """The honest task with another document, which is encoded as documents are."""
        terms = self.terms(captured(), exact)
        document = json.loads(self.store.get(terms.document.hex()))
        change(document)
        digest = self.store.put(canonical_json.encode(document))
        return replace(terms, document=bytes.fromhex(digest))

    def written(self, text: bytes, exact: bool = False) -> Terms:
        """The honest task whose document is these bytes."""
        return replace(self.terms(captured(), exact), document=bytes.fromhex(self.store.put(text)))

    def replaced(self, name: str, data: bytes, exact: bool = False) -> Terms:
        """The honest task with other bytes for one of its objects."""
        return self.edited(lambda document: document.update({name: self.store.put(data)}), exact)

    def named(self, change: Callable[[Document], None], exact: bool = False) -> Terms:
        """The honest task with other names."""
        names = captured().names.to_dict()
        change(names)
        return self.replaced("names", canonical_json.encode(names), exact)

    @staticmethod
    def _terms(document: TaskDocument, digest: str, step: Any, offer: Any) -> Terms:
        terms = terms_of(document.work, offer)
        root = bytes(32)
        if not terms.is_exact:
            root = rerun_programs_root(rerun_programs(step.program, terms.rerun_count, terms.looks))
        return replace(
            terms,
            reruns=root,
            program=document.program_hash,
            constants=document.constants_root,
            initial_state=document.initial_state_root,
            document=bytes.fromhex(digest),
        )


@dataclass(frozen=True)
class Odd:
    """A task; ``judgeable`` if a verifier can judge its training, so that staking on it is no mistake."""

    make: Callable[[Desk], Terms]
    judgeable: bool = False
    refused: tuple[type[Exception], ...] = field(default=())
    """What the chain, or publishing itself, refuses it by."""


def state_of(word: float, exact: bool = True) -> Callable[[Desk], Terms]:
    """The honest task with one number of its first state set."""

    def make(desk: Desk) -> Terms:
        state = [words.copy() for words in captured().state]
        state[0].reshape(-1)[0] = np.float32(word).view(np.uint32)
        return desk.terms(replace(captured(), state=state), exact)

    return make


class Small(nn.Module):
    """A layer with something strange about it."""

    def __init__(self, change: Callable[[Small], None] = lambda _: None) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)
        change(self)

    def forward(self, x: Tensor) -> Tensor:
        extra = getattr(self, "mask", None)
        found: Tensor = self.layer(x) if extra is None else self.layer(x) + extra
        return found


def step_of(
    change: Callable[[Small], None] = lambda _: None,
    lr: float = 0.1,
    loop: Loop | None = None,
    data: Tensor | None = None,
    rows: Tensor | None = None,
    model: nn.Module | None = None,
    optimizer: Callable[[Any], torch.optim.Optimizer] | None = None,
) -> Capture:
    """A capture of a small honest training."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        chosen = Small(change) if model is None else model
        inputs = torch.randn(8, 4) if data is None else data
        order = torch.randint(0, len(inputs), (STEPS, 4)) if rows is None else rows
        made = optimizer or (lambda p: torch.optim.SGD(p, lr))
        trained = [p for p in chosen.parameters() if p.requires_grad]
        labels = torch.randint(0, 3, (len(inputs),))
        return capture(
            chosen, nn.CrossEntropyLoss(), made(trained), [inputs, labels], order, loop or Loop(), check=False
        )


def slots_of(count: int) -> Any:
    """The honest task with so many slots more, each a number that stays."""
    honest = captured()
    first = len(honest.program.slots)
    number = honest.program.slots[-1].type.__class__(honest.program.slots[0].type.dtype, ())
    move = ScalarProgram(1, (), (Instruction(Op.MOV, 0),))
    nodes, slots = list(honest.program.nodes), list(honest.program.slots)
    for place in range(first, first + count):
        operand = Operand(Source.STATE, place, number, Affine(0, (0,)))
        slots.append(Slot(Component.BUFFER, number, len(nodes)))
        nodes.append(Node(number, (operand,), (Input(InputKind.OPERAND, 0),), move))
    program = replace(honest.program, slots=tuple(slots), nodes=tuple(nodes))
    names = honest.names.to_dict()
    names["slots"] = [*names["slots"], *(f"more.{i}" for i in range(count))]
    names["nodes"] = [*names["nodes"], *([names["nodes"][-1]] * count)]
    state = [*honest.state, *([np.zeros((), np.uint32)] * count)]
    return replace(honest, program=program, names=ProgramNames.from_dict(names), state=state)


def changed(**members: Any) -> Callable[[Document], None]:
    """Sets members of a document."""
    return lambda document: document.update(members)


class Scalar(nn.Module):
    """One parameter of one number."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.tensor(0.5))

    def forward(self, x: Tensor) -> Tensor:
        return x[:, :3] * self.w


def with_mask(number: float) -> Callable[[Small], None]:
    return lambda model: model.register_buffer("mask", torch.tensor([0.0, 0.0, number]))


def with_weights(number: float) -> Callable[[Small], None]:
    def change(model: Small) -> None:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.fill_(number)

    return change


def aten_of(other: Capture) -> bytes:
    return canonical_json.encode(other.aten.to_dict())


def aten_with(change: Callable[[Document], None]) -> bytes:
    graph = json.loads(aten_of(captured()))
    change(graph)
    return canonical_json.encode(graph)


HUGE = "x" * (1 << 20)
TASKS: dict[str, Odd] = {
    # Documents.
    "a document that isn't there": Odd(lambda d: replace(d.terms(captured(), True), document=b"\7" * 32)),
    "a document of no bytes": Odd(lambda d: d.written(b"", True)),
    "a document that is no JSON": Odd(lambda d: d.written(b"\xff\x00{", True)),
    "a document that is a list": Odd(lambda d: d.written(b"[]")),
    "a document of brackets": Odd(lambda d: d.written(b"[" * 100_000, True)),
    "a document with a member more": Odd(lambda d: d.edited(changed(more=1))),
    "a document of another version": Odd(lambda d: d.edited(changed(version=99), True)),
    "a document of another kind": Odd(lambda d: d.edited(changed(kind="pol/record"))),
    "steps that are no number": Odd(lambda d: d.edited(changed(steps="6"), True)),
    "steps that are true": Odd(lambda d: d.edited(changed(steps=True))),
    "more steps than the terms": Odd(lambda d: d.edited(changed(steps=12), True)),
    "an interval of nothing": Odd(lambda d: d.edited(changed(interval=0))),
    "an interval beyond the end": Odd(lambda d: d.edited(changed(interval=2**31), True)),
    "work that is a lie": Odd(lambda d: d.edited(changed(work="1"))),
    "work beyond all numbers": Odd(lambda d: d.edited(changed(work="9" * 40), True)),
    "a start that isn't there": Odd(lambda d: d.edited(changed(start={"kind": "task", "digest": "07" * 32}), True)),
    "a model's name that rewrites the terminal": Odd(lambda d: d.edited(changed(model="\x1b[2J\x1b[31m")), True),
    "a model's name of a megabyte": Odd(lambda d: d.edited(changed(model=HUGE))),
    # Objects.
    "a program that isn't there": Odd(lambda d: d.edited(changed(program="07" * 32), True)),
    "a program of nonsense": Odd(lambda d: d.replaced("program", b"polstep2" + b"\xff" * 64)),
    "half a program": Odd(lambda d: d.replaced("program", captured().program.to_bytes()[:-100], True)),
    "another program": Odd(lambda d: d.replaced("program", step_of().program.to_bytes())),
    "constants that aren't there": Odd(lambda d: d.edited(changed(constants="07" * 32), True)),
    "constants that are no safetensors": Odd(lambda d: d.replaced("constants", b"\xff" * 64)),
    "a header of constants without an end": Odd(lambda d: d.replaced("constants", b"\xff" * 7 + b"\x7f{", True)),
    "the state of another program": Odd(lambda d: replace(d.terms(step_of()), initial_state=b"\7" * 32)),
    "names that are too few": Odd(lambda d: d.named(lambda names: names["slots"].pop())),
    "names that are equal": Odd(lambda d: d.named(lambda n: n.update(slots=[n["slots"][0]] * len(n["slots"])), True)),
    "names that are paths": Odd(lambda d: d.named(lambda n: n["slots"].__setitem__(0, "../../../etc/passwd"))),
    "names of a megabyte": Odd(lambda d: d.named(lambda n: n["slots"].__setitem__(0, HUGE), True)),
    "a graph that is another computation": Odd(lambda d: d.replaced("aten", aten_of(step_of()))),
    "a graph of an unknown operation": Odd(
        lambda d: d.replaced("aten", aten_with(lambda g: g["nodes"][0].update(operation="aten.system.default")), True)
    ),
    "a graph without nodes": Odd(lambda d: d.replaced("aten", aten_with(lambda g: g.update(nodes=[])))),
    "a graph of another lowering": Odd(lambda d: d.replaced("aten", aten_with(lambda g: g.update(lowering=1)), True)),
    # Numbers.
    "NaN in the first state": Odd(state_of(float("nan"))),
    "infinity in the first state": Odd(state_of(float("inf"), exact=False)),
    "1e9 in the first state": Odd(state_of(1e9)),
    "NaN from the first step on": Odd(lambda d: d.terms(step_of(lr=3e38))),
    "NaN from step 3 on, exact": Odd(lambda d: d.terms(step_of(lr=1e20), True), True),
    # Terms.
    "terms of another program": Odd(lambda d: d.terms(captured(), True, program=b"\7" * 32)),
    "terms of other constants": Odd(lambda d: d.terms(captured(), constants=b"\7" * 32)),
    "reruns of other programs": Odd(lambda d: d.terms(captured(), reruns=b"\7" * 32)),
    "more reruns than anybody makes": Odd(lambda d: d.terms(captured(), rerun_count=2**16), refused=(Reverted,)),
    "a clock of a second": Odd(lambda d: d.terms(captured(), clock=1), refused=(Reverted,)),
    "windows of a second": Odd(lambda d: d.terms(captured(), verification_window=1), refused=(Reverted,)),
    "a training of no time": Odd(lambda d: d.terms(captured(), True, training_window=0), refused=(Reverted,)),
    "a price of nothing": Odd(lambda d: d.terms(captured(), True, unit_price=0), refused=(Reverted,)),
    # Strange, and right.
    "updates that change nothing": Odd(lambda d: d.terms(step_of(lr=0.0)), True),
    "updates that change nothing, exact": Odd(lambda d: d.terms(step_of(lr=0.0), True), True),
    "one parameter of one number": Odd(lambda d: d.terms(step_of(model=Scalar())), True),
    "weights of minus zero": Odd(lambda d: d.terms(step_of(with_weights(-0.0))), True),
    "weights below all normal numbers": Odd(lambda d: d.terms(step_of(with_weights(1e-40), lr=1e-40)), True),
    "one example, over and over": Odd(
        lambda d: d.terms(step_of(data=torch.ones(1, 4), rows=torch.zeros(STEPS, 4, dtype=torch.int64))), True
    ),
    "batches of one": Odd(lambda d: d.terms(step_of(rows=torch.zeros(STEPS, 1, dtype=torch.int64)), True), True),
    "data of denormal numbers": Odd(lambda d: d.terms(step_of(data=torch.full((8, 4), 1e-42))), True),
    "a mask of -1e9": Odd(lambda d: d.terms(step_of(with_mask(-1e9))), True),
    "a mask of minus infinity": Odd(lambda d: d.terms(step_of(with_mask(float("-inf"))), True), True),
    "the optimizer's largest state": Odd(
        lambda d: d.terms(step_of(optimizer=lambda p: torch.optim.Adam(p, 1e3))), True
    ),
    "three thousand slots": Odd(lambda d: d.terms(slots_of(3_000), True)),
}
HUGE_TASKS = {"a hundred thousand slots": Odd(lambda d: d.terms(slots_of(100_000), True))}
