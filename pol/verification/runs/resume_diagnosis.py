"""Advice on a difference between two runs of a trainer: a table by component, and one by kind of unrecorded state.

docs/quickstarts/reproducible_training.md, "Traps", has the lines that a loop needs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pol.training.recorder.unrecorded_state import (
    ATTRIBUTE,
    GENERATOR,
    MODULE,
    PLAIN,
    SCALER,
    SCHEDULER,
    STATEFUL,
    TENSOR,
    VALUE,
)
from pol.verification.runs.rehearsed_run import UnrecordedState
from pol.verification.runs.run_comparison import StateComparison

_RANKED = re.compile(r"([^/]+/)ranks/(\d+)/(.+)")
_ITEM = re.compile(r"(\[[^]]*\])+(?= \(|$)")
SEEDS = {
    "python": "import random; random.seed(0)",
    "numpy": "import numpy; numpy.random.seed(0)",
    "torch": "torch.manual_seed(0)",
}
"""The line that seeds each generator of a process."""
_TRAINED = ("parameters", "buffers", "gradients")
_WHAT_A_STEP_READS = (
    "give what the step reads beside the model as parts={'name': object}: a second model, a generator, a variable "
    "(pol.Values). If gradients add up over a checkpoint: checkpoints=Checkpoints(gradients=True)"
)
_BATCHES = "loop over recorder.batches(loader), and count by recorder.enumerate(loader), or keep the place in a part"
_AFTER_RESUMPTION = {
    "environment": "set modes and threads before the recorder is made, the same in every run",
    "cursor": _BATCHES,
    "random": f"{_BATCHES}; draw what a step needs after recorder.resume()",
    **dict.fromkeys(_TRAINED, _WHAT_A_STEP_READS),
    "scheduler": "step the schedule before the next batch is drawn, and set no rates anew after resume()",
    "optimizer": "give the recorder scheduler=scheduler, and set no rates anew after resume()",
}
"""By component: the line that a loop lacks most often. What differs first comes before what follows from it."""
_OF_A_PART = "let its state_dict hold all of it, and change it before recorder.step() if the loop has no loader"
_BETWEEN_LAUNCHES = {
    "environment": _AFTER_RESUMPTION["environment"],
    "random": "seed every generator: random.seed, numpy.random.seed, torch.manual_seed",
    "cursor": "seed what augments and shuffles, also in the workers of a loader, and not by the time",
    **dict.fromkeys(
        _TRAINED,
        "call torch.manual_seed before the model is built, seed each generator of your own, and don't seed by the "
        "time; if all are, call torch.use_deterministic_algorithms(True)",
    ),
}
_HELD = {
    SCHEDULER: "give the recorder scheduler={0}, or parts={{'{1}': {0}}} beside another one",
    SCALER: "give the recorder scaler={0}",
    ATTRIBUTE: "return it from get_extra_state of a module, or from state_dict of a part; or make a tensor a buffer",
    **dict.fromkeys((GENERATOR, MODULE, STATEFUL), "give the recorder parts={{'{1}': {0}}}"),
}
"""By kind of unrecorded state that is lost, whether or not a step depends on it so far."""


@dataclass(frozen=True)
class Advice:
    """A cause in words, and what to do."""

    cause: str
    remedy: str


def explain_resumption(found: StateComparison, beside: Sequence[UnrecordedState], where: str = "") -> list[Advice]:
    """Unrecorded state that differs when a resumed run does, or the component in which the run differs first.

    ``where``: words for the process whose record differs, if several have their own.
    """
    lost = [_lost(item) for item in beside if is_held(item) or item.kind == PLAIN]
    names = _named([item for item in beside if item.kind in (VALUE, TENSOR) and item.read >= 0])
    if not lost and names:
        lost = [
            Advice(
                f"{', '.join(names)} differ after the resumption and aren't recorded; the first one is read next",
                "make a number a value of parts={'values': pol.Values(...)}, an object with state_dict a part, and "
                "draw a batch at the beginning of its step",
            )
        ]
    return lost or _by_component(found, where, _AFTER_RESUMPTION)


def explain_different_runs(found: StateComparison, beside: Sequence[UnrecordedState]) -> list[Advice]:
    """Generators that differ in two uninterrupted runs, or the component in which the runs differ first."""
    unseeded = [
        Advice(f"{item.name}{item.where} is a generator in another state", "seed it")
        for item in beside
        if item.kind == GENERATOR
    ]
    return unseeded or _by_component(found, "", _BETWEEN_LAUNCHES)


def explain_failure(code: int, refused: str, output: str) -> Advice:
    """A resumed program that doesn't go on; ``refused`` is what a recorder said."""
    if refused:
        return Advice(
            f"the recorder refuses the resumption: {refused}",
            "change what the message names, and examine the program again",
        )
    return Advice(
        f"the resumed program ended with code {code}: {output}",
        "let it go on from a checkpoint: few batches, or none, may be left of the epoch, and what it has written "
        "before may be there",
    )


def is_held(item: UnrecordedState) -> bool:
    """Whether something is lost, whether or not a step depends on it; plain values are for the user to judge."""
    return item.kind in _HELD


def explain_lost(beside: Sequence[UnrecordedState]) -> list[Advice]:
    """State that no recorded one depends on so far, and that a resumption loses all the same."""
    return [_lost(item) for item in beside if is_held(item)]


def doubts(beside: Sequence[UnrecordedState]) -> list[str]:
    """What equal records leave open: variables that are lost and that the loop reads next, without effect so far."""
    names = _named([item for item in beside if item.kind in (VALUE, TENSOR) and item.read > 0])
    if not names:
        return []
    return [
        f"an effect of {', '.join(names)}: the loop reads it behind a resumption, and it isn't recorded. Make it a "
        "value of parts={'values': pol.Values(...)}, or set it anew before it is read"
    ]


def explain_not_portable(found: StateComparison) -> Advice:
    """Why a training has other bits with other instructions or threads."""
    trained = sorted(set(_TRAINED) & set(found.components))
    if trained:
        return Advice(
            f"{', '.join(trained)} differ from step {found.step} on: torch computed them, and its sums, products "
            "and functions depend on the processor and on the number of threads",
            "take the steps with pol.exact, and draw the first weights inside of "
            "pol.TaskRandomness(seed).initialization() (docs/guides/exact.md)",
        )
    names = ", ".join(sorted(found.components))
    return Advice(
        f"{names} differ from step {found.step} on", "make it from seeds and integers alone, or leave it out of parts="
    )


def explain_unseeded(sources: Sequence[str]) -> Advice:
    """Advice on unused generators, by name, that begin in another state at each launch."""
    lines = list(
        dict.fromkeys(SEEDS.get(name, "seed each generator that is given to the recorder") for name in sources)
    )
    return Advice(
        f"the generators {', '.join(sources)} begin in another state in every launch. Nothing draws from them, but "
        "they are part of the complete state, so all complete roots differ from those of the next launch",
        f"add at the top of the program: {'; '.join(lines)}",
    )


def some(paths: Sequence[str]) -> str:
    """The first paths in words."""
    paths = [_RANKED.sub(r"\1\3 of rank \2", path) for path in paths]
    return ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")


def _by_component(found: StateComparison, where: str, table: dict[str, str]) -> list[Advice]:
    """The line of the first component in the order of the table; others follow from it."""
    component = next((name for name in table if name in found.components), found.components[0])
    paths = found.in_component(component) or [component]
    remedy = table.get(component, _OF_A_PART)
    return [Advice(f"{component}{where} differ from step {found.step} on: {some(paths)}", remedy)]


def _lost(item: UnrecordedState) -> Advice:
    is_attribute = item.kind in (ATTRIBUTE, PLAIN)
    remedy = _HELD[ATTRIBUTE if is_attribute else item.kind].format(item.expression, item.key)
    what = item.name if is_attribute else f"{item.kind} {item.name}"
    return Advice(f"{what}{item.where} isn't recorded, and differs after the resumption", remedy)


def _named(items: Sequence[UnrecordedState]) -> list[str]:
    """Names of variables; items of one container, if there are several, by the container's."""
    held = Counter(_ITEM.sub("", item.name) for item in items)
    stems = ((_ITEM.sub("", item.name), item) for item in items)
    return list(dict.fromkeys((stem if held[stem] > 1 else item.name) + item.where for stem, item in stems))
