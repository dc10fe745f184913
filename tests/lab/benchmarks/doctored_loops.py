"""`pol doctor` on the loops of `resumed_loops`, each a program of its own, and on loops that lose something.

Its verdict is compared with the truth: what becomes of the same loop when it is killed at all kinds of places.
"""

import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from forked_programs import PROCESSES
from lab.benchmarks.figure import Figure
from lab.benchmarks.resumed_loops import EPOCHS, LOOPS, REFUSED, Caching, Loop, Training, launch, loader, outcomes, own
from pol.errors import OperationalError
from pol.verification.runs.resume_check import EXACT, NOT_EXACT, SEEN, ProgramExit, ResumeReport, check_resumption


def counted(t: Training) -> None:
    """A counter of steps that each step reads."""
    made = loader()
    recorder, count = t.record(), 0
    for _ in range(recorder.resume(), EPOCHS):
        for batch in recorder.batches(made):
            t.step(batch * (1 + count / 10))
            count += 1
    recorder.close()


def enumerated(t: Training) -> None:
    """The number of a batch, which each step reads, is counted outside of the recorder."""
    made, recorder = loader(), t.record()
    for _ in range(recorder.resume(), EPOCHS):
        for number, batch in enumerate(recorder.batches(made)):
            t.step(batch * (1 + number / 10))
    recorder.close()


def noisy(t: Training) -> None:
    """Noise from a generator that isn't recorded."""
    made, noise = loader(), own(9)
    t.loop(lambda epoch: (batch + torch.randn((), generator=noise) for batch in t.recorder.batches(made)))


def decided(t: Training) -> None:
    """A decision at the end of an epoch, by the mean loss of all its batches."""
    made, recorder = loader(), t.record()
    for _ in range(recorder.resume(), EPOCHS):
        losses = []
        for batch in recorder.batches(made):
            losses.append(t.step(batch))
        t.end(sum(losses))
        t.optimizer.param_groups[0]["lr"] *= 1 / (1 + sum(losses))
    recorder.close()


def remembers(t: Training) -> None:
    """What the epoch before has left, which only the next one reads."""
    made, recorder, last = loader(), t.record(), 1.0
    for _ in range(recorder.resume(), EPOCHS):
        for batch in recorder.batches(made):
            t.step(batch * last)
        last = last / 2
    recorder.close()


class Counting(nn.Module):
    """Counts its calls in an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.calls = nn.Linear(3, 1), 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        scaled: Tensor = self.layer(x) / self.calls
        return scaled


def counting_model(t: Training) -> None:
    made = loader()
    t.model = Counting()  # type: ignore[assignment]  # another model
    t.optimizer = torch.optim.SGD(t.model.parameters(), lr=1e-2)
    t.loop(lambda epoch: t.recorder.batches(made))


class Momentum:
    """A part that gives one of its two values."""

    def __init__(self) -> None:
        self.scale, self.hidden = 1.0, 1.0

    def state_dict(self) -> dict[str, float]:
        return {"scale": self.scale}

    def load_state_dict(self, state: dict[str, float]) -> None:
        self.scale = state["scale"]


def half_given(t: Training) -> None:
    made, part = loader(), Momentum()

    def batches(epoch: int) -> Iterator[Tensor]:
        for batch in t.recorder.batches(made):
            part.hidden *= 0.9
            yield batch * part.hidden

    t.loop(batches, parts={"momentum": part})


def unscheduled(t: Training) -> None:
    """A schedule that isn't recorded; its period isn't that of the checkpoints, which would hide it."""
    made = loader()
    schedule = torch.optim.lr_scheduler.StepLR(t.optimizer, 3, 0.5)

    def batches(epoch: int) -> Iterator[Tensor]:
        for batch in t.recorder.batches(made):
            yield batch
            schedule.step()

    t.loop(batches)


def past_the_recorder(t: Training) -> None:
    """The recorder sees no batch."""
    made = loader()
    t.loop(lambda epoch: made)


def by_hand(t: Training) -> None:
    """Draws each batch by hand, from recorded generators."""
    recorder = t.record()
    recorder.resume()
    while recorder.steps < 18:
        t.step(torch.rand(4, 3) + random.random())
    recorder.close()


def ordered_by_hand(t: Training) -> None:
    """A place in the data that the loop keeps itself."""
    recorder, place = t.record(), 0
    recorder.resume()
    while recorder.steps < 18:
        t.step(torch.full((4, 3), place / 10))
        place = (place + 1) % 7
    recorder.close()


def caching(t: Training) -> None:
    """A cache that the recorder doesn't hold."""
    made = loader(Caching())
    t.loop(lambda epoch: t.recorder.batches(made))


BROKEN: dict[str, Loop] = {
    "cache": caching,
    "counter": counted,
    "enumerate": enumerated,
    "generator": noisy,
    "mean of an epoch": decided,
    "left by an epoch": remembers,
    "attribute of the model": counting_model,
    "attribute of a part": half_given,
    "schedule": unscheduled,
    "past the recorder": past_the_recorder,
    "order by hand": ordered_by_hand,
}
"""Loops that lose something without a word."""
PROGRAMS: dict[str, Loop] = {**LOOPS, "by hand": by_hand, **BROKEN}


def examined(name: str, folder: Path, steps: int = 20) -> ResumeReport | str:
    """Doctor's report on a loop, or why it can't be examined."""

    def run(variables: Mapping[str, str]) -> ProgramExit:
        process = PROCESSES.Process(target=_program, args=(name, dict(variables)))
        process.start()
        process.join()
        return ProgramExit(process.exitcode or 0, "")

    try:
        return check_resumption(run, folder, steps)
    except OperationalError as error:
        return str(error)


def truth(name: str) -> set[str]:
    """What becomes of a loop at all kinds of places: some of equal, refused, warned and other."""
    return {"refused"} if name in REFUSED else set(outcomes(PROGRAMS[name])) - {"not reached"}


def is_right(found: ResumeReport | str, ended: set[str]) -> bool:
    """Whether a verdict is true: exact only if all resumptions are equal, else with a reason, or with a gap named."""
    if isinstance(found, str):
        return ended == {"refused"}
    if found.verdict == EXACT:
        return ended == {"equal"}
    if found.verdict == SEEN:
        return "other" not in ended and bool(found.not_seen)
    return found.verdict == NOT_EXACT and ended != {"equal"} and bool(found.advice)


def doctor_figures() -> dict[str, Figure]:
    """Verdicts of doctor on all loops, and how many of them are wrong."""
    verdicts, wrong = Counter[str](), 0
    with tempfile.TemporaryDirectory() as folder:
        for number, name in enumerate(PROGRAMS):
            found = examined(name, Path(folder) / str(number))
            verdicts["refused" if isinstance(found, str) else found.verdict] += 1
            wrong += not is_right(found, truth(name))
            shutil.rmtree(Path(folder) / str(number), ignore_errors=True)
    return {
        "doctor_wrong": Figure(wrong, "verdicts"),
        "doctor_exact": Figure(verdicts[EXACT], "loops"),
        "doctor_not_exact": Figure(verdicts[NOT_EXACT], "loops"),
        "doctor_not_seen": Figure(verdicts[SEEN], "loops"),
    }


def _program(name: str, variables: Mapping[str, str]) -> None:
    os.environ.update(variables)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    launch(PROGRAMS[name], "memory://never-used")
