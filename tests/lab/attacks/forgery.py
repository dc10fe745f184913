"""How an attack is described and made: the cheating solver's tools, its costs and what it publishes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from torch.utils.flop_counter import FlopCounterMode

from lab.attacks.attack_target import Floats, State, Target, numbers, words_of
from pol.arithmetic.primitives import Words
from pol.commitments.keccak import keccak256
from pol.commitments.tensor import state_root
from pol.execution.cpu import CpuExecutor
from pol.graph.step_program import Component
from pol.graph.tensor_type import DType
from pol.training.storage.store import Store
from pol.training.task import learning_proof, task_tensors
from pol.training.task.learning_proof import LearningProof, TaskCheckpoint
from pol.training.task.task_document import LoadedTask


@dataclass
class Forgery:
    """What a cheating solver publishes.

    ``states`` are its checkpoints. ``order_root``, ``interval`` and ``task`` replace what an honest learning proof
    says; ``withheld`` checkpoints are in the log and nowhere else. ``swapped`` checkpoints are published as another
    one's file. ``trained`` segments were trained in full, only not forwards from their start. ``damage`` is what the
    cheating brings about, for attacks that aren't made to save work.
    """

    states: list[State]
    order_root: bytes | None = None
    interval: int | None = None
    task: LoadedTask | None = None
    withheld: frozenset[int] = frozenset()
    swapped: Mapping[int, int] = field(default_factory=dict)
    trained: frozenset[int] = frozenset()
    damage: Mapping[str, float] = field(default_factory=dict)


class Workshop:
    """A cheating solver at work: everything it executes is counted, in honest training steps."""

    def __init__(self, target: Target, seed: int = 0) -> None:
        self.target = target
        self.random = np.random.Generator(np.random.Philox(key=seed))
        self.steps = 0.0

    @property
    def cost(self) -> float:
        """What was executed, as a share of the honest training."""
        return self.steps / self.target.task.document.steps

    def train(
        self, state: Sequence[Words], first: int, count: int, executor: CpuExecutor | None = None, share: float = 1.0
    ) -> State:
        """The state after ``count`` steps from step ``first``.

        Canonical, because that is an attacker's best case: none of the tolerance is used up by honest rounding.
        ``share`` says how much of an honest step one of these steps is.
        """
        state = list(state)
        for step in range(first, first + count):
            state, _ = (executor or self.target.executor).advance(state, step)
            self.steps += share
        return state

    def segment(self, state: Sequence[Words], segment: int, executor: CpuExecutor | None = None) -> State:
        """The honest end of a segment."""
        return self.train(state, segment * self.target.interval, self.target.interval, executor)

    def run(self, executor: CpuExecutor | None = None) -> list[State]:
        """All checkpoints of a whole training."""
        states = [self.start]
        for segment in range(self.target.segments):
            states.append(self.segment(states[-1], segment, executor))
        return states

    @property
    def start(self) -> State:
        """The task's initial state."""
        return list(self.target.task.initial_state)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Counts the work of what torch does inside, by its floating-point operations."""
        with FlopCounterMode(display=False) as counter:
            yield
        self.steps += counter.get_total_flops() / self.target.step_flops

    def chosen(self, share: float) -> list[int]:
        """A share of the segments, evenly spread, at least one."""
        count = max(1, round(share * self.target.segments))
        return [round((i + 0.5) * self.target.segments / count - 0.5) for i in range(count)]

    def tamper(self, change: Callable[[State, State], State], where: Sequence[int]) -> list[State]:
        """The honest training, but the ends of some segments are changed and training goes on from there.

        ``change`` gets the start and the honest end of a segment.
        """
        states = [self.start]
        for segment in range(self.target.segments):
            end = self.segment(states[-1], segment)
            states.append(change(states[-1], end) if segment in where else end)
        return states

    def ticked(self, state: Sequence[Words], steps: int | None = None) -> State:
        """The same numbers, but counters count on as if ``steps`` (default: a segment) had been trained."""
        ticks = np.uint32((self.target.interval if steps is None else steps) % 2**32)
        slots = self.target.task.program.slots
        return [
            words if slot.type.dtype == DType.F32 else np.asarray(words + ticks, np.uint32).reshape(words.shape)
            for slot, words in zip(slots, state, strict=True)
        ]

    def with_numbers(
        self, state: Sequence[Words], change: Callable[[int, Floats], Floats], components: Sequence[Component] = ()
    ) -> State:
        """The state with the numbers of some components (default: all) changed slot by slot."""
        result = list(state)
        for component in components or tuple(Component):
            for place in self.target.places(component):
                result[place] = words_of(change(place, numbers(state[place])))
        return result


@dataclass(frozen=True)
class Attack:
    """An attack of the battery.

    ``hides`` marks the ones that are made to stay within the tolerance; ``applies`` says which tasks they fit.
    """

    name: str
    what: str
    forge: Callable[[Workshop], Forgery]
    source: str = "not published before, as far as we know"
    hides: bool = False
    applies: Callable[[Target], bool] = lambda _target: True


def publish(store: Store, target: Target, forgery: Forgery) -> LearningProof:
    """Store the checkpoints of a forgery; its learning proof, consistent in itself wherever the forgery is."""
    task = forgery.task or target.task
    interval = forgery.interval or task.document.interval
    types = task.slot_types
    roots = [state_root(types, state) for state in forgery.states]
    files = [task_tensors.encode(task.names.slots, types, state) for state in forgery.states]
    entries = []
    for index, root in enumerate(roots):
        file = files[forgery.swapped.get(index, index)]
        digest = keccak256(file).hex() if index in forgery.withheld else store.put(file)
        entries.append(TaskCheckpoint(index, index * interval, root, digest))
    return LearningProof(
        task=task.digest,
        program_hash=task.document.program_hash,
        interval=interval,
        order_root=forgery.order_root or task.order_root,
        checkpoints=tuple(entries),
        log_root=learning_proof.compute_log_root(entries),
        environment={},
    )
