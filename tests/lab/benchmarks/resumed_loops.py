"""Loops as people write them, killed at each kind of place and resumed: equal to a whole run, refused, or other.

A kill is an exception that nothing in the loop catches: the recorder is abandoned, and the next launch builds all anew.
"""

import functools
import gc
import itertools
import random
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from queue import Queue
from typing import Any

import fsspec
import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
    SubsetRandomSampler,
)

from lab.benchmarks.figure import Figure
from pol import Recorder, Values
from pol.errors import PolError
from pol.training import Checkpoints

EPOCHS, EPOCH, BATCH, EVERY = 3, 6, 4, 2
"""Epochs, batches of each, items of a batch, steps between checkpoints."""
SHORT = 4
"""Batches after which some loops leave an epoch."""


class Killed(BaseException):
    """The process ends here."""


@dataclass(frozen=True)
class Kill:
    """After so many steps: inside of the loop's body, before it, or in the code at the end of an epoch."""

    step: int
    place: str = "step"


CUTS: Sequence[Sequence[Kill]] = [
    [Kill(3)], [Kill(5, "begin")], [Kill(6)], [Kill(6, "end")], [Kill(7)], [Kill(8, "begin")], [Kill(9)], [Kill(12)],
    [Kill(12, "end")], [Kill(15)], [Kill(17)], [Kill(18)], [Kill(3), Kill(5)], [Kill(6), Kill(7)], [Kill(7), Kill(13)],
    [Kill(4), Kill(8), Kill(12)], [Kill(9), Kill(9)], [Kill(2), Kill(3), Kill(10)], [Kill(1)], [Kill(10), Kill(16)],
    [Kill(8), Kill(11, "begin")], [Kill(13), Kill(14)],
]  # fmt: skip
"""In the first epoch, at its last step, in the code at its end, behind it, in later ones, several times in a row."""


class Training:
    """One launch of a program: a small model with dropout, whose steps are killed where it is asked."""

    def __init__(self, store: str, kill: Kill | None = None):
        random.seed(0)
        np.random.seed(0)
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(3, 5), nn.Dropout(0.2), nn.Linear(5, 1))
        self.optimizer: Any = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        self.kill, self.store = kill, store
        self.recorder: Any = None

    def record(self, **options: Any) -> Recorder:
        options = {"every": EVERY, "checkpoints": Checkpoints(background=False), **options}
        self.recorder = recorder = Recorder(self.store, self.model, self.optimizer, **options)
        return recorder

    def at(self, place: str) -> None:
        if self.kill == Kill(self.recorder._steps, place):
            raise Killed

    def step(self, batch: Tensor) -> float:
        self.at("begin")
        self.optimizer.zero_grad()
        loss = self.model(batch).square().mean()
        loss.backward()
        self.optimizer.step()
        self.recorder.step()
        self.at("step")
        return float(loss.detach())

    def end(self, mean: float) -> None:
        """Code at the end of an epoch, which draws."""
        self.at("end")
        torch.rand(3), random.random(), np.random.rand()

    def loop(self, batches: Callable[[int], Any], **options: Any) -> None:
        recorder = self.record(**options)
        for epoch in range(recorder.resume(), EPOCHS):
            losses = [self.step(batch) for batch in batches(epoch)]
            self.end(sum(losses) / len(losses))
        recorder.close()


class Points(Dataset[Tensor]):
    """Points that a transform may move at random."""

    def __init__(self, move: Callable[[], float] = lambda: 0.0, count: int = EPOCH * BATCH):
        self.x = torch.randn(count, 3, generator=torch.Generator().manual_seed(1))
        self.move = move

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> Tensor:
        return self.x[index] + self.move()


class Caching(Points):
    """Keeps what it has drawn at random."""

    def __init__(self) -> None:
        super().__init__(random.random)
        self.cache: dict[int, Tensor] = {}

    def __getitem__(self, index: int) -> Tensor:
        return (
            self.cache.setdefault(index, super().__getitem__(index)) if index not in self.cache else self.cache[index]
        )


class CachingAsAPart(Caching):
    """As doctor advises where a cache is lost."""

    def state_dict(self) -> dict[str, Any]:
        return {"cache": dict(self.cache)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.cache = dict(state["cache"])


class CountsEpochs(Sampler[int]):
    """An order that the sampler varies by epochs it counts itself, or is told."""

    def __init__(self, counts: bool) -> None:
        self.epoch, self.counts = 0, counts

    def __len__(self) -> int:
        return EPOCH * BATCH

    def __iter__(self) -> Iterator[int]:
        order = torch.randperm(len(self), generator=torch.Generator().manual_seed(self.epoch)).tolist()
        self.epoch += self.counts
        return iter(order)

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch


class Untold(CountsEpochs):
    set_epoch = None  # type: ignore[assignment]  # nobody can tell it


class ShufflesItsList(CountsEpochs):
    """Begins each epoch with the order of the one before."""

    def __init__(self) -> None:
        super().__init__(counts=False)
        self.order = list(range(EPOCH * BATCH))

    def __iter__(self) -> Iterator[int]:
        random.shuffle(self.order)
        return iter(self.order)


class MadeLate(CountsEpochs):
    """Makes its generator when it is first drawn from, as that of accelerate."""

    generator: torch.Generator | None = None

    def __iter__(self) -> Iterator[int]:
        self.generator = self.generator or torch.Generator()
        self.generator.manual_seed(self.epoch)
        return iter(torch.randperm(len(self), generator=self.generator).tolist())


class Stream(IterableDataset[Tensor]):
    """Goes on where it is, which nothing shows."""

    def __init__(self) -> None:
        self.numbers = itertools.count()

    def __iter__(self) -> Iterator[Tensor]:
        for number in itertools.islice(self.numbers, EPOCH * BATCH):
            yield torch.full((3,), number % 31 / 31)


class PlacedStream:
    """A loader of its own that keeps its place, also inside of an epoch."""

    def __init__(self) -> None:
        self.where = 0

    def __iter__(self) -> Iterator[Tensor]:
        while True:
            self.where += 1
            yield torch.full((BATCH, 3), float(self.where % 31)) / 31 + torch.rand(())
            if self.where % EPOCH == 0:
                return

    def state_dict(self) -> dict[str, int]:
        return {"where": self.where}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.where = state["where"]


class HoldsBack:
    """Draws some batches ahead."""

    def __init__(self, loader: Iterable[Tensor], ahead: int):
        self.loader, self.ahead = loader, ahead

    def __iter__(self) -> Iterator[Tensor]:
        iterator = iter(self.loader)
        held = list(itertools.islice(iterator, self.ahead))
        for batch in iterator:
            held.append(batch)
            yield held.pop(0)
        yield from held


class OnThread(HoldsBack):
    """Draws in a thread of its own."""

    def __iter__(self) -> Iterator[Tensor]:
        queue: Queue[Any] = Queue(self.ahead)

        def draw() -> None:
            try:
                for batch in self.loader:
                    queue.put(batch)
                queue.put(None)
            except PolError as error:
                queue.put(error)

        threading.Thread(target=draw, daemon=True).start()
        while (found := queue.get()) is not None:
            if isinstance(found, PolError):
                raise found
            yield found


def loader(data: Any = None, **options: Any) -> DataLoader[Tensor]:
    options = {"batch_size": BATCH, "shuffle": True, **options}
    return DataLoader(Points() if data is None else data, **options)


def own(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


Take = Callable[[Training, Any, int], Any]


def through(
    make: Callable[[], Any] = loader, take: Take = lambda t, made, epoch: t.recorder.batches(made)
) -> Callable[[Training], None]:
    """A loop over what ``take`` gives of a loader in each epoch."""

    def run(t: Training) -> None:
        made = make()
        t.loop(lambda epoch: take(t, made, epoch))

    return run


def short(numbered: Iterable[tuple[int, Tensor]]) -> Iterator[Tensor]:
    """Leaves an epoch after some batches."""
    for number, batch in numbered:
        yield batch
        if number + 1 == SHORT:
            break


def pairs(drawn: Iterator[Tensor]) -> Iterator[Tensor]:
    """Two batches to a step."""
    for first in drawn:
        yield torch.cat([first, next(drawn)])


def told_epoch(t: Training, made: Any, epoch: int) -> Any:
    made.sampler.set_epoch(epoch + 7)
    return t.recorder.batches(made)


def zipped(t: Training, made: Any, epoch: int) -> Iterator[Tensor]:
    both = (t.recorder.batches(one, name=f"number {number}") for number, one in enumerate(made))
    return (torch.cat(batches) for batches in zip(*both, strict=False))


def zipped_unevenly(t: Training, made: Any, epoch: int) -> Iterator[Tensor]:
    """The longer one first: a batch of it is drawn for nothing when the other one ends."""
    long, short_one = made
    both = zip(t.recorder.batches(long, name="long"), t.recorder.batches(short_one, name="short"), strict=False)
    return (torch.cat(batches) for batches in both)


def one_after_the_other(t: Training, made: Any, epoch: int) -> Iterator[Tensor]:
    for number, one in enumerate(made):
        yield from t.recorder.batches(one, name=f"number {number}")


def curriculum(t: Training, made: Any, epoch: int) -> Any:
    """Another data set in each epoch."""
    return t.recorder.batches(loader(Points(count=EPOCH * BATCH + 4 * epoch)))


def validated(t: Training, made: Any, epoch: int) -> Iterator[Tensor]:
    """Validates within an epoch and at its end."""
    train, other = made
    for number, batch in t.recorder.enumerate(train):
        yield batch
        if number % 3 == 2:
            for _ in t.recorder.batches(other, name="validation"):
                torch.rand(1)


def scheduled(at_top: bool) -> Callable[[Training], None]:
    def run(t: Training) -> None:
        made = loader()
        schedule = torch.optim.lr_scheduler.StepLR(t.optimizer, 1, 0.5)
        recorder = t.record(scheduler=schedule)
        for _ in range(recorder.resume(), EPOCHS):
            if at_top:
                schedule.step()
            losses = [t.step(batch) for batch in recorder.batches(made)]
            t.end(sum(losses) / len(losses))
            if not at_top:
                schedule.step()
        recorder.close()

    return run


def thawed(t: Training) -> None:
    """A layer that is frozen in the first epoch."""
    made = loader()
    t.model[0].requires_grad_(False)

    def batches(epoch: int) -> Any:
        if epoch == 1:
            t.model[0].requires_grad_(True)
        return t.recorder.batches(made)

    t.loop(batches)


def half_precision(t: Training) -> None:
    """Parameters of bfloat16 with moments of float32."""
    made = loader()
    t.model.bfloat16()
    t.optimizer = torch.optim.SGD(t.model.parameters(), lr=1e-2, momentum=0.9)
    for parameter in t.model.parameters():
        t.optimizer.state[parameter] = {"momentum_buffer": torch.full_like(parameter, 1.001, dtype=torch.float32)}

    def step(batch: Tensor) -> float:
        t.at("begin")
        loss = t.model(batch.bfloat16()).square().mean()
        loss.backward()
        with torch.no_grad():
            for parameter in t.model.parameters():
                moment = t.optimizer.state[parameter]["momentum_buffer"]
                moment.mul_(0.9).add_(parameter.grad)
                parameter.sub_(0.01 * moment)
        t.optimizer.zero_grad()
        t.recorder.step()
        t.at("step")
        return float(loss.detach())

    t.step = step  # type: ignore[method-assign]  # another step
    t.loop(lambda epoch: t.recorder.batches(made))


def remembered(t: Training) -> None:
    """Decides by variables of the loop, which are a part."""
    made, values = loader(), Values(best=1e9, total=0.0)

    def batches(epoch: int) -> Iterator[Tensor]:
        values.total *= 0.5
        for batch in t.recorder.batches(made):
            yield batch * (2 if values.total > values.best else 1)
            values.total += float(batch.square().mean())
            values.best = min(values.best, values.total)

    t.loop(batches, parts={"values": values})


def placed(t: Training) -> None:
    made = PlacedStream()
    t.loop(lambda epoch: t.recorder.batches(made), parts={"loader": made})


def moving() -> Iterable[Tensor]:
    draw = np.random.default_rng(5)
    return loader(Points(lambda: float(draw.normal())))


def heads(t: Training) -> None:
    """A head that some steps leave out; its weights decay all the same, as its gradient is zero and not None."""
    made, other = loader(), nn.Linear(3, 1)
    t.model = nn.Sequential(t.model, nn.ModuleList([other]))
    t.optimizer = torch.optim.AdamW(t.model.parameters(), lr=1e-2, weight_decay=0.1)
    recorder = t.record()

    def step(batch: Tensor) -> None:
        t.at("begin")
        t.optimizer.zero_grad(set_to_none=False)
        (other if recorder._steps % 7 == 2 else t.model[0])(batch).square().mean().backward()
        t.optimizer.step()
        recorder.step()
        t.at("step")

    for _ in range(recorder.resume(), EPOCHS):
        for batch in recorder.batches(made):
            step(batch)
        t.end(0.0)
    recorder.close()


def shared(t: Training) -> None:
    """Two parts hold one list, and one of them changes it."""
    made, losses = loader(), [1.0]
    written, read = Values(losses=losses), Values(losses=losses)

    def batches(epoch: int) -> Iterator[Tensor]:
        for batch in t.recorder.batches(made):
            yield batch * read.losses[-1]
            written.losses.append(0.9 * written.losses[-1])

    t.loop(batches, parts={"written": written, "read": read})


def begun_anew(t: Training) -> None:
    """An optimizer whose state begins anew in each epoch."""

    def batches(epoch: int) -> Any:
        t.optimizer.state.clear()
        return t.recorder.batches(made)

    made = loader()
    t.loop(batches)


def cached(t: Training) -> None:
    """A cache of random draws that is a part."""
    made = loader(CachingAsAPart())
    t.loop(lambda epoch: t.recorder.batches(made), parts={"dataset": made.dataset})


Loop = Callable[[Training], None]
LOOPS: dict[str, Loop] = {
    "plain": through(),
    "generator of the loader": through(lambda: loader(generator=own(2))),
    "generators of loader and sampler": through(
        lambda: loader(shuffle=False, sampler=RandomSampler(Points(), generator=own(2)), generator=own(3))
    ),
    "generator in a batch sampler": through(
        lambda: DataLoader(
            Points(), batch_sampler=BatchSampler(RandomSampler(Points(), generator=own(4)), BATCH, drop_last=False)
        )
    ),
    "generator made late": through(lambda: loader(shuffle=False, sampler=MadeLate(counts=False))),
    "order of a subset": through(lambda: loader(shuffle=False, sampler=SubsetRandomSampler(range(EPOCH * BATCH)))),
    "shuffled in place": through(lambda: loader(shuffle=False, sampler=ShufflesItsList())),
    "moves by torch": through(lambda: loader(Points(lambda: torch.rand(1).item()))),
    "moves by numpy": through(lambda: loader(Points(np.random.rand))),
    "moves by python": through(lambda: loader(Points(random.random))),
    "moves by a generator of numpy": through(lambda: loader(Points(np.random.default_rng(5).random))),
    "moves by a method": through(lambda: loader(Points(random.Random(5).random))),
    "moves by a function": through(moving),
    "workers": through(lambda: loader(Points(np.random.rand), num_workers=2)),
    "persistent workers": through(lambda: loader(Points(np.random.rand), num_workers=1, persistent_workers=True)),
    "break": through(take=lambda t, made, epoch: short(enumerate(t.recorder.batches(made)))),
    "break by enumerate": through(take=lambda t, made, epoch: short(t.recorder.enumerate(made))),
    "islice": through(take=lambda t, made, epoch: itertools.islice(t.recorder.batches(made), SHORT)),
    "length": through(take=lambda t, made, epoch: itertools.islice(t.recorder.batches(made, length=SHORT), SHORT)),
    "told epochs": through(lambda: loader(shuffle=False, sampler=CountsEpochs(counts=False)), told_epoch),
    "own epochs": through(lambda: loader(shuffle=False, sampler=CountsEpochs(counts=True))),
    "own epochs, untold": through(lambda: loader(shuffle=False, sampler=Untold(counts=True))),
    "stream": through(lambda: loader(Stream(), shuffle=False)),
    "placed stream": placed,
    "zip": through(lambda: (loader(), loader(Points(np.random.rand), generator=own(3), batch_size=3)), zipped),
    "zip, the longer first": through(lambda: (loader(), loader(Points(count=16))), zipped_unevenly),
    "one after the other": through(lambda: (loader(), loader(Points(count=8))), one_after_the_other),
    "curriculum": through(lambda: None, curriculum),
    "validation": through(lambda: (loader(), loader(batch_size=8)), validated),
    "rebuilt": through(lambda: None, lambda t, made, epoch: t.recorder.batches(loader(generator=own(epoch)))),
    "accumulated": through(lambda: loader(batch_size=2), lambda t, made, epoch: pairs(t.recorder.batches(made))),
    "holds 1": through(lambda: HoldsBack(loader(Points(torch.rand(1).item)), 1)),
    "holds 2": through(lambda: HoldsBack(loader(Points(lambda: torch.rand(1).item())), 2)),
    "holds 3": through(lambda: HoldsBack(loader(Points(lambda: torch.rand(1).item())), 3)),
    "held outside": through(take=lambda t, made, epoch: HoldsBack(t.recorder.batches(made), 1)),
    "thread outside": through(take=lambda t, made, epoch: OnThread(t.recorder.batches(made), 1)),
    "schedule at the end": scheduled(at_top=False),
    "schedule at the top": scheduled(at_top=True),
    "thawed": thawed,
    "half precision": half_precision,
    "values": remembered,
    "heads, zeros": heads,
    "shared values": shared,
    "optimizer begun anew": begun_anew,
    "cache as a part": cached,
}


REFUSED = {"held outside", "thread outside"}
"""Loops that are refused in the first epoch, before they are killed."""
PARTLY = {"stream", "break", "islice"}
"""Loops that are refused where nothing tells what they hold, and equal elsewhere."""


def launch(loop: str | Loop, store: str, kill: Kill | None = None) -> tuple[int, bytes] | None:
    """Steps and complete root at the end; None if it was killed."""
    training = Training(store, kill)
    try:
        (LOOPS[loop] if isinstance(loop, str) else loop)(training)
    except Killed:
        return None
    return training.recorder.steps, training.recorder.record.checkpoints[-1].root


def outcome(loop: str | Loop, cuts: Sequence[Kill], store: str, whole: tuple[int, bytes] | None) -> str:
    """Equal, refused, warned (it is other, and was said to be) or silently other; after which kills."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            if any(launch(loop, store, kill) is not None for kill in cuts):
                return "not reached"
            if launch(loop, store) == whole:
                return "equal"
        except PolError as error:
            return f"refused: {error}"
    return "warned" if any("resumption" in str(warning.message) for warning in said) else "other"


@functools.cache
def outcomes(loop: Loop) -> Sequence[str]:
    """What becomes of a loop after each series of kills."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a loop that the recorder changes, as persistent workers
        whole = launch(loop, f"memory://{id(loop)}/whole")
    found = [outcome(loop, cuts, f"memory://{id(loop)}/{number}", whole) for number, cuts in enumerate(CUTS)]
    fsspec.filesystem("memory").rm(f"/{id(loop)}", recursive=True)  # it looks through all that it holds for each object
    return [ended.partition(":")[0] for ended in found]


def resume_figures() -> dict[str, Figure]:
    """Every loop after every series of kills."""
    found: Counter[str] = Counter()
    gc.freeze()  # each resumption and each collection would look through all of torch's objects
    for name in LOOPS.keys() - REFUSED:
        for cuts, ended in zip(CUTS, outcomes(LOOPS[name]), strict=True):
            found[ended] += len(cuts) if ended != "not reached" else 0
    count = sum(found.values())
    return {
        "cuts": Figure(count, "kills"),
        "silent_differences": Figure(found["other"], "kills"),
        "warned_differences": Figure(found["warned"], "kills"),
        "equal_share": Figure(found["equal"] / count, "of kills"),
    }
