"""Diagnosis: causes and remedies of a difference between two runs of a trainer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pol.verification.runs.run_comparison import StateComparison

GENERATOR, MODULE, STATEFUL, ATTRIBUTE, GRADIENTS = "generator", "module", "stateful", "attribute", "gradients"
TENSOR, LOADER = "tensor", "loader"
"""Kinds of unrecorded state (`pol.training.recorder.unrecorded_state`); a plain variable has another."""

_RANKED = re.compile(r"([^/]+/)ranks/(\d+)/(.+)")
_SCHEDULED = re.compile(
    r"optimizer/(ranks/\d+/)?state/param_groups/\d+/(lr|initial_lr|momentum|betas/\d+|weight_decay)"
)
SEEDS = {
    "python": "import random; random.seed(0)",
    "numpy": "import numpy; numpy.random.seed(0)",
    "torch": "torch.manual_seed(0)",
}
"""The line that seeds each generator of a process."""
_HELD = {GENERATOR, MODULE, STATEFUL, ATTRIBUTE}
_TRAINED = {"parameters", "buffers", "gradients"}


@dataclass(frozen=True)
class Advice:
    """A cause in words, and what to do."""

    cause: str
    remedy: str


@dataclass(frozen=True)
class UnrecordedState:
    """State of the program that isn't recorded: where it is, what it is, and its digest or its value.

    where: words for the process that has it, if it is one of several.
    """

    name: str
    kind: str
    value: str
    where: str = ""


@dataclass(frozen=True)
class RunDifference:
    """The facts about the first step at which two runs differ.

    paths: tensors and values that differ, by component. follows_data: whether the recorder saw any batch. beside:
    unrecorded state that differs at that step. lost: by process in words, entries that weren't as recorded right after
    the resumption. pending: the checkpoint resumed from lies between backward passes that add up, and holds no
    gradients. loaders: variables of the loop that hold a loader. where: words for the process whose record differs, if
    several have their own.
    """

    difference: StateComparison
    paths: Mapping[str, Sequence[str]]
    follows_data: bool
    beside: Sequence[UnrecordedState]
    lost: Mapping[str, Sequence[str]] = field(default_factory=dict)
    pending: bool = False
    loaders: Sequence[str] = ()
    where: str = ""

    @property
    def components(self) -> set[str]:
        """The components that differ."""
        return set(self.difference.components)

    @property
    def trained(self) -> bool:
        """Whether the model differs."""
        return bool(self.components & _TRAINED)


def explain_resumption(facts: RunDifference) -> list[Advice]:
    """Why a resumed run differs from an uninterrupted one; the likeliest cause first."""
    return list(_resumption(facts)) or [
        Advice(
            f"{', '.join(sorted(facts.components))}{facts.where} differ after the resumption",
            "compare the two runs with pol diff, from the first step that differs",
        )
    ]


def explain_failure(code: int, said: str) -> Advice:
    """A resumed program that doesn't go on."""
    if _SCHEDULED.search(said) or "about the scheduler" in said:
        remedy = "give the recorder of every process scheduler=scheduler, and set none of it anew after resume()"
    else:
        remedy = "make it run on from its checkpoint"
    return Advice(f"the resumed program ended with code {code}: {said}", remedy)


def explain_lost(beside: Sequence[UnrecordedState], lost: Mapping[str, Sequence[str]]) -> list[Advice]:
    """State that no recorded one depends on so far, and that a resumption loses all the same."""
    return [*_unrestored(lost), *(_give(found) for found in beside if found.kind in _HELD)]


def explain_different_runs(facts: RunDifference) -> list[Advice]:
    """Why two uninterrupted runs differ; the likeliest cause first."""
    found, first = facts.components, facts.difference.step == 0
    unseeded = [item for item in facts.beside if item.kind == GENERATOR]
    advice = []
    if "environment" in found:
        advice.append(_environment(facts))
    if first and (found & _TRAINED):
        advice.append(Advice("the model begins in another state", "call torch.manual_seed before it is built"))
    elif "random" in found and first:
        advice.append(
            Advice(
                f"random generators begin in another state: {some(facts.paths['random'])}",
                "seed each of them: random.seed, numpy.random.seed, torch.manual_seed",
            )
        )
    elif _has(facts, "cursor", "cursor/seen"):
        advice.append(
            Advice(
                "the batches are others: their order, or how they are made",
                "seed what augments and shuffles, also in the workers of a loader, and not by the time",
            )
        )
    elif facts.trained:
        advice.append(
            Advice(
                "the model differs, although data and generators are the same" if facts.follows_data else "it differs",
                "seed each generator of your own and don't seed by the time; if there is none, call "
                "torch.use_deterministic_algorithms(True)",
            )
        )
    advice += [Advice(f"{item.name} is a generator in another state", "seed it") for item in unseeded]
    return advice or [Advice(f"{', '.join(sorted(found))} differ", "compare the runs with pol diff")]


def explain_not_portable(difference: StateComparison) -> Advice:
    """Why a training has other bits with other instructions or threads."""
    trained = sorted(_TRAINED & set(difference.components))
    if trained:
        return Advice(
            f"{', '.join(trained)} differ from step {difference.step} on: torch computed them, and its sums, products "
            "and functions depend on the processor and on the number of threads",
            "take the steps with pol.exact, and draw the first weights inside of "
            "pol.TaskRandomness(seed).initialization() (docs/guides/exact.md)",
        )
    names = ", ".join(sorted(difference.components))
    return Advice(
        f"{names} differ from step {difference.step} on",
        "make it from seeds and integers alone, or leave it out of parts=",
    )


def _resumption(facts: RunDifference) -> Iterator[Advice]:
    found = facts.components
    held = [item for item in facts.beside if item.kind in _HELD]
    if "environment" in found:
        yield _environment(facts)
    yield from _unrestored(facts.lost)
    if not facts.follows_data:
        yield _unseen_data(facts)
    elif _has(facts, "cursor", "cursor/seen"):
        yield Advice(
            f"the batches after the resumption{facts.where} are others",
            "give recorder.batches the loader itself, and what it draws from as parts={'data': generator}",
        )
    scheduled = [path for path in facts.paths.get("optimizer", ()) if _SCHEDULED.fullmatch(path)]
    if scheduled and not facts.trained:
        yield Advice(
            f"a schedule{facts.where} starts anew: {some(scheduled)} differs",
            f"give the recorder{facts.where} scheduler=scheduler",
        )
        held = [item for item in held if item.kind != STATEFUL]
    elif facts.pending:
        yield _pending()
    yield from (_give(item) for item in held)
    if "random" in found and facts.follows_data and not held:
        yield Advice(
            f"generators{facts.where} are in another state: {some(facts.paths['random'])}",
            "draw nothing between resume() and the first batch that an uninterrupted run doesn't draw there, and give "
            "generators of your own as parts={'name': generator}",
        )
    if (
        facts.trained
        and facts.follows_data
        and not (found & {"random", "cursor"})
        and not held
        and not facts.lost
        and not facts.pending
    ):
        variables = [item.name for item in facts.beside if item.kind not in (*_HELD, GRADIENTS)]
        hint = f"; these variables differ: {some(variables)}" if variables else ""
        yield Advice(
            f"the model{facts.where} differs while data and generators are the same: the step depends on something "
            f"unrecorded{hint}",
            "make it a buffer of the model, or an object with state_dict given as parts={'name': object}",
        )


def _unseen_data(facts: RunDifference) -> Advice:
    """Advice for a loop whose batches don't go through the recorder."""
    if facts.loaders:
        loader = re.split(r"[. (]", facts.loaders[0])[0]
        return Advice(
            f"the recorder doesn't see the data of {facts.loaders[0]}: after a resumption the epoch begins anew",
            f"loop over recorder.batches({loader}) instead of {loader}",
        )
    kept = [item.name for item in facts.beside if item.kind == TENSOR]
    if kept:
        return Advice(
            f"the batches are drawn by hand, and {some(kept)} are in hand when a step is over: a checkpoint doesn't "
            "have them, and a resumption draws others",
            "draw the batch at the beginning of each step, after recorder.resume(), or give the batch that is drawn "
            "ahead as parts={'ahead': object} (docs/guides/record.md, \"Batches drawn by hand\")",
        )
    return Advice(
        "the recorder doesn't see the data: the loop draws it by hand, from something that isn't recorded",
        "draw it after recorder.resume() from the generators of torch, numpy and python, or from generators that are "
        "given as parts={'data': generator}",
    )


def explain_unseeded(entries: Sequence[str]) -> Advice:
    """Advice on unused generators that begin in another state at each launch.

    entries: names of a complete state, below ``random/``.
    """
    sources = list(dict.fromkeys(_RANKED.sub(r"\1\3", entry).split("/")[1] for entry in entries))
    lines = [SEEDS.get(source, "seed each generator that is given to the recorder") for source in sources]
    return Advice(
        f"the generators {', '.join(sources)} begin in another state in every launch. Nothing draws from them, but "
        "they are part of the complete state, so all complete roots differ from those of the next launch",
        f"add at the top of the program: {'; '.join(lines)}",
    )


def _unrestored(lost: Mapping[str, Sequence[str]]) -> Iterator[Advice]:
    for where, every in lost.items():
        for component in sorted({name.partition("/")[0] for name in every}):
            names = [name for name in every if name.partition("/")[0] == component]
            yield Advice(
                f"{component}{where} doesn't come back as it was recorded: {some(names)}",
                f"let load_state_dict of {component} restore all that its state_dict gives",
            )


def _pending() -> Advice:
    return Advice(
        "gradients that add up over several backward passes are lost",
        "give the recorder checkpoints=Checkpoints(gradients=True), or call recorder.step() only after the optimizer's "
        "step",
    )


def _give(item: UnrecordedState) -> Advice:
    name = re.split(r"[. (]", item.name)[0]
    remedies = {
        GENERATOR: f"give the recorder parts={{'{name}': ...}}",
        MODULE: f"give the recorder parts={{'{name}': ...}}",
        STATEFUL: f"give the recorder parts={{'{name}': ...}}, or scheduler= or scaler= if it is one",
        ATTRIBUTE: "make it a buffer, or return it from the module's get_extra_state",
    }
    what = item.name if item.kind == ATTRIBUTE else f"{item.kind} {item.name}"
    return Advice(f"{what}{item.where} isn't recorded, and differs after the resumption", remedies[item.kind])


def _environment(facts: RunDifference) -> Advice:
    return Advice(
        f"the environment differs: {some(facts.paths['environment'])}",
        "set modes and threads before the recorder is made, the same in every run",
    )


def _has(facts: RunDifference, component: str, path: str) -> bool:
    return path in {_RANKED.sub(r"\1\3", found) for found in facts.paths.get(component, ())}


def some(paths: Sequence[str]) -> str:
    """The first paths in words."""
    paths = [_RANKED.sub(r"\1\3 of rank \2", path) for path in paths]
    return ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
