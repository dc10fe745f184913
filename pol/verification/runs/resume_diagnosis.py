"""Diagnosis: causes and remedies of a difference between two runs of a trainer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

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
_SCHEDULED = re.compile(
    r"optimizer/(ranks/\d+/)?state/param_groups/\d+/(lr|initial_lr|momentum|betas/\d+|weight_decay)"
)
_PLACE = re.compile(r"/(epoch|batch)$")
_ITEM = re.compile(r"(\[[^]]*\])+(?= \(|$)")
SEEDS = {
    "python": "import random; random.seed(0)",
    "numpy": "import numpy; numpy.random.seed(0)",
    "torch": "torch.manual_seed(0)",
}
"""The line that seeds each generator of a process."""
_LOST = {GENERATOR, MODULE, STATEFUL, SCHEDULER, SCALER, ATTRIBUTE}
"""Kinds of which something is lost, whether or not a step depends on it so far."""
_HELD = _LOST | {PLAIN}
_TRAINED = {"parameters", "buffers", "gradients"}


@dataclass(frozen=True)
class Advice:
    """A cause in words, and what to do."""

    cause: str
    remedy: str


@dataclass(frozen=True)
class RunDifference:
    """The facts about the first step at which two runs differ.

    paths: tensors and values that differ, by component. follows_data: whether the recorder saw any batch. beside:
    unrecorded state that differs at that step. pending: the checkpoint resumed from lies between backward passes that
    add up, and holds no gradients. loaders: variables of the loop that hold a loader. where: words for the process
    whose record differs, if several have their own. parts: types of the parts by name. place: epoch, batch and steps of
    the first step after the checkpoint. deterministic: torch's deterministic algorithms are on.
    """

    difference: StateComparison
    paths: Mapping[str, Sequence[str]]
    follows_data: bool
    beside: Sequence[UnrecordedState]
    pending: bool = False
    loaders: Sequence[str] = ()
    where: str = ""
    parts: Mapping[str, str] = field(default_factory=dict)
    place: Mapping[str, int] = field(default_factory=dict)
    deterministic: bool = False

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
    return list(_resumption(facts))


def explain_failure(code: int, refused: str, output: str, parts: Mapping[str, str]) -> Advice:
    """A resumed program that doesn't go on; ``refused`` is what a recorder said."""
    if not refused:
        return Advice(
            f"the resumed program ended with code {code}: {output}",
            "let it go on from a checkpoint: few batches, or none, may be left of the epoch, and what it has written "
            "before may be there",
        )
    remedy = "change what the message names, and examine the program again"
    if _SCHEDULED.search(refused) or "about the scheduler" in refused:
        given = "set no rates anew after resume()"
        remedy = (
            given if "scheduler" in parts else f"give the recorder of every process scheduler=scheduler, and {given}"
        )
    return Advice(f"the recorder refuses the resumption: {refused}", remedy)


def is_held(item: UnrecordedState) -> bool:
    """Whether something is lost, whether or not a step depends on it; plain values are for the user to judge."""
    return item.kind in _LOST


def explain_lost(beside: Sequence[UnrecordedState]) -> list[Advice]:
    """State that no recorded one depends on so far, and that a resumption loses all the same."""
    return [_give(found, {}) for found in beside if is_held(found)]


def note_on_variables(beside: Sequence[UnrecordedState]) -> list[str]:
    """Plain values that a resumption has lost, all of them; nobody can know whether anything depends on them."""
    plain = [item for item in beside if item.kind in (VALUE, TENSOR, PLAIN)]
    inner = [item for item in plain if item.kind != PLAIN and item.name.startswith("attribute ")]
    read, unread = (
        _named([item for item in plain if item not in inner and (item.read >= 0) is is_read])
        for is_read in (True, False)
    )
    notes = []
    if inner:
        notes.append(f"what a library keeps beside its state_dict() differs, as caches do: {', '.join(_named(inner))}")
    if read:
        notes.append(
            f"variables that differ after a resumption, and aren't recorded, what is read next first: "
            f"{', '.join(read)}. If a step or a decision depends on one, make it a value of "
            "parts={'values': pol.Values(...)}"
        )
    if unread:
        notes.append(
            f"variables that differ after a resumption, and are set anew before they are read: {', '.join(unread)}"
        )
    return notes


def doubts(beside: Sequence[UnrecordedState]) -> list[str]:
    """What equal records leave open: variables that are lost and that the loop reads next, without effect so far."""
    names = _named([item for item in beside if item.kind in (VALUE, TENSOR) and item.read > 0])
    if not names:
        return []
    return [
        f"an effect of {', '.join(names)}: the loop reads it behind a resumption, and it isn't recorded. Make it a "
        "value of parts={'values': pol.Values(...)}, or set it anew before it is read"
    ]


def explain_different_runs(facts: RunDifference) -> list[Advice]:
    """Why two uninterrupted runs differ; the likeliest cause first."""
    found, first = facts.components, facts.difference.step == 0
    unseeded = [item for item in facts.beside if item.kind == GENERATOR]
    advice = []
    if "environment" in found:
        advice.append(_environment(facts))
    if first and (found & _TRAINED):
        advice.append(
            Advice(
                "the model begins in another state", "call torch.manual_seed, with a fixed number, before it is built"
            )
        )
    elif "random" in found and first:
        advice.append(
            Advice(
                f"random generators begin in another state: {some(facts.paths['random'])}",
                "seed each of them: random.seed, numpy.random.seed, torch.manual_seed",
            )
        )
    elif _has_other_batches(facts):
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
                "seed each generator of your own and don't seed by the time"
                + ("" if facts.deterministic else "; if there is none, call torch.use_deterministic_algorithms(True)"),
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
    """Causes that are seen, and if there are none, those that may be."""
    found, known = facts.components, False
    held = [item for item in facts.beside if item.kind in _HELD]
    if "environment" in found:
        yield _environment(facts)
    if not facts.follows_data and facts.loaders:
        known = True
        loader = re.split(r"[. (]", facts.loaders[0])[0]
        yield Advice(
            f"the recorder doesn't see the data of {facts.loaders[0]}: after a resumption the epoch begins anew",
            f"loop over recorder.batches({loader}) instead of {loader}",
        )
    scheduled = [path for path in facts.paths.get("optimizer", ()) if _SCHEDULED.fullmatch(path)]
    variables = [item for item in facts.beside if item.kind in (VALUE, TENSOR) and item.read >= 0]
    schedules = [item for item in held if item.kind == SCHEDULER]
    if scheduled and not facts.trained and (schedules or not variables):
        known = True
        yield _scheduled(facts, scheduled, schedules)
        held = [item for item in held if item not in schedules]
    elif facts.pending:
        known = True
        yield Advice(
            "gradients that add up over several backward passes are lost",
            "give the recorder checkpoints=Checkpoints(gradients=True), or call recorder.step() only after the "
            "optimizer's step",
        )
    yield from (_give(item, facts.parts) for item in held)
    if not known and not held:
        yield from _unseen(facts, variables)


def _scheduled(facts: RunDifference, rates: Sequence[str], schedules: Sequence[UnrecordedState]) -> Advice:
    """Rates differ, and the model doesn't yet."""
    if "scheduler" in facts.parts and not schedules:
        return Advice(
            f"rates{facts.where} that the recorded scheduler doesn't set are others: {some(rates)}",
            "set them from recorder.steps, or by an object with state_dict that is given as a part",
        )
    name = schedules[0].expression if schedules else "scheduler"
    given = f"parts={{'{schedules[0].key}': {name}}}" if "scheduler" in facts.parts else f"scheduler={name}"
    given += "" if schedules else ", or set the rates from recorder.steps"
    return Advice(
        f"a schedule{facts.where} starts anew: {some(rates)} differs", f"give the recorder{facts.where} {given}"
    )


def _unseen(facts: RunDifference, variables: Sequence[UnrecordedState]) -> Iterator[Advice]:
    """No object is known to be lost: variables that differ, what the next step reads first before the rest."""
    kept = [item.name for item in variables if item.kind == TENSOR]
    if not facts.follows_data and kept:
        yield Advice(
            f"the batches are drawn by hand, and {some(kept)} are in hand when a step is over: a checkpoint doesn't "
            "have them, and a resumption draws others",
            "draw the batch at the beginning of each step, after recorder.resume(), or give the batch that is drawn "
            "ahead as parts={'ahead': object} (docs/guides/record.md, \"Batches drawn by hand\")",
        )
    elif variables:
        first, (name, *others) = variables[0], _named(variables)
        is_short = max(len(first.value), len(first.now)) < len(bytes(32).hex()) and "values, " not in first.value
        values = f": it is {first.now or 'not there'} then, and {first.value} uninterrupted" if is_short else ""
        then = f". Then it reads {', '.join(others)}, which differ too" if others else ""
        yield Advice(f"{name} isn't recorded, and the loop reads it next{values}{then}", _record_variable(first, facts))
    elif counted := [item for item in facts.beside if item.read < 0 and _counts(item, facts, "batch")]:
        name = counted[0].name + counted[0].where
        yield Advice(
            f"{name} counts the batches of an epoch outside of the recorder, and from 0 after a resumption",
            f"for {counted[0].key}, batch in recorder.enumerate(loader)",
        )
    elif any(_PLACE.search(path) for path in facts.paths.get("cursor", ())):
        yield Advice(
            f"an epoch{facts.where} ends elsewhere after the resumption: the loop counts its batches itself, from 0",
            "count by `for i, batch in recorder.enumerate(loader)`, or say recorder.batches(loader, length=...)",
        )
    elif _has_other_batches(facts):
        yield Advice(
            f"the batches after the resumption{facts.where} are others",
            "give what they are drawn from as parts={'data': object}, or keep it where an attribute of the loader or "
            "its data set leads to it",
        )
    else:
        where, odd = facts.where, sorted(facts.components)
        changed = [name for name in odd if facts.parts.get(name) == "Values" and not facts.follows_data]
        yield Advice(
            f"{', '.join(odd)}{where} differ, and no variable or object in sight does: the step, or what draws its "
            "batch, depends on something that lives in a running function, in a library or outside of the process",
            "".join(f"change {name} before recorder.step(), where such a loop goes on; or " for name in changed)
            + "keep it in an object with state_dict that is given as parts={'name': object}",
        )


def _record_variable(item: UnrecordedState, facts: RunDifference) -> str:
    """How a loop says a variable to the recorder."""
    holder = item.expression.partition("[")[0].rpartition(".")[0]
    if holder:
        part = f"parts={{'{holder.rpartition('.')[2]}': {holder}}}"
        return (
            f"give the class of {holder} state_dict and load_state_dict that hold it, and the recorder {part}. A cache "
            "may be filled before the training instead, or keep nothing that is drawn at random"
        )
    ways = []
    if _counts(item, facts, "batch"):
        ways.append(f"if it counts the batches of an epoch: for {item.key}, batch in recorder.enumerate(loader)")
    if _counts(item, facts, "steps"):
        ways.append("if it counts steps: recorder.steps")
    known = [name for name, type_ in facts.parts.items() if type_ == "Values"]
    made = f"one more value of the part {known[0]!r}" if known else f"parts={{'values': pol.Values({item.key}=...)}}"
    when = "" if facts.follows_data else ", and change it before recorder.step(), where such a loop goes on"
    return "; ".join([*ways, f"{'else' if ways else 'make it'} {made}{when}"])


def _counts(item: UnrecordedState, facts: RunDifference, what: str) -> bool:
    """Whether a variable is the number of batches or of steps, counted before or after the present one."""
    number = facts.place.get(what, -1)
    return item.kind == VALUE and item.value in (str(number), str(number - 1))


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


def _give(item: UnrecordedState, parts: Mapping[str, str]) -> Advice:
    """How the recorder gets an object."""
    remedy = f"give the recorder parts={{'{item.key}': {item.expression}}}"
    if item.kind in (SCHEDULER, SCALER) and item.kind not in parts:
        remedy = f"give the recorder {item.kind}={item.expression}"
    elif item.kind in (ATTRIBUTE, PLAIN):
        is_modules = " of the model" in item.name or " of module " in item.name
        remedy = (
            "return it from the module's get_extra_state and take it in set_extra_state, or make a tensor a buffer"
            if is_modules
            else "return it from the part's state_dict, and take it in load_state_dict"
        )
    what = item.name if item.kind in (ATTRIBUTE, PLAIN) else f"{item.kind} {item.name}"
    return Advice(f"{what}{item.where} isn't recorded, and differs after the resumption", remedy)


def _environment(facts: RunDifference) -> Advice:
    return Advice(
        f"the environment differs: {some(facts.paths['environment'])}",
        "set modes and threads before the recorder is made, the same in every run",
    )


def _has_other_batches(facts: RunDifference) -> bool:
    return any(path.endswith("/seen") for path in facts.paths.get("cursor", ()))


def _named(items: Sequence[UnrecordedState]) -> list[str]:
    """Names of variables; items of one container, if there are several, by the container's."""
    held = Counter(_ITEM.sub("", item.name) for item in items)
    stems = ((_ITEM.sub("", item.name), item) for item in items)
    return list(dict.fromkeys((stem if held[stem] > 1 else item.name) + item.where for stem, item in stems))


def some(paths: Sequence[str]) -> str:
    """The first paths in words."""
    paths = [_RANKED.sub(r"\1\3 of rank \2", path) for path in paths]
    return ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
