"""Where `pol doctor` cuts a run: inside of the first epoch, right behind the end of one, and inside of a later one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from pol.training.record.recorded_run import RecordedRun
from pol.training.state import readable
from pol.verification.runs.run_comparison import component_of

FIRST, BEHIND, LATER = "inside of the first epoch", "right behind the end of an epoch", "inside of a later epoch"
ANYWHERE = "in the middle"
"""Where nothing tells epochs."""
AFTER_A_CUT = 2
"""Steps that a run goes on at least after the checkpoint of a cut: one that is repeated, and one more."""


@dataclass(frozen=True)
class Cut:
    """The checkpoint of ``step`` is to be resumed: where it is, as one of the words above."""

    step: int
    where: str


@dataclass(frozen=True)
class _Place:
    epoch: int
    batch: int
    size: int | None


def parameters_of(run: RecordedRun, step: int) -> list[bytes]:
    """Contents of the parameters after a step."""
    entries = run.document(run.checkpoint(step)).entries
    return [entry.content for entry in entries if component_of(entry.name) == "parameters"]


def cursor_of(run: RecordedRun, step: int) -> Mapping[str, readable.Tree]:
    """The cursor of the loader that the steps are taken with; empty if the recorder saw no batch so far."""
    document = run.document(run.checkpoint(step)).documents.get("cursor")
    tree = readable.of_document("cursor", document) if document is not None else ""
    if isinstance(tree, dict) and isinstance(ranks := tree.get("ranks"), dict):
        tree = ranks["0"]
    if not isinstance(tree, dict) or not isinstance(loaders := tree.get("loaders"), dict):
        return {}
    found = loaders.get(str(tree["stepped"]).strip('"'), "")
    return {} if isinstance(found, str) or set(str(found.get("seen"))) <= set("0x") else found


def cuts_of(run: RecordedRun) -> list[Cut]:
    """The cuts of a run that doctor makes, in order: those of three places that it reaches."""
    places = {step: _place(run, step) for step in run.steps}
    last = run.steps[-1]
    chosen = [step for step in run.steps if 0 < step <= last - AFTER_A_CUT]
    epochs = {step: place for step, place in places.items() if place is not None}
    if not epochs:
        middle = _middle(run, chosen[:-1])
        return [Cut(middle, ANYWHERE), Cut(middle + 1, ANYWHERE)]  # one of them may be an epoch's end
    first = [step for step in chosen if step in epochs and epochs[step].epoch == 0 and epochs[step].batch]
    behind = next((step for step in chosen if step in epochs and epochs[step].epoch and not epochs[step].batch), last)
    later = [step for step in chosen if step > behind and step in epochs and epochs[step].batch]
    second = [step for step in later if epochs[step].epoch == epochs[later[0]].epoch]
    return [
        *([Cut(_middle(run, first), FIRST)] if first else []),
        *([Cut(behind, BEHIND)] if behind < last else []),
        *([Cut(_middle(run, second), LATER)] if second else []),
    ]


def steps_to_see(run: RecordedRun) -> tuple[int, int] | None:
    """The steps after which a run has shown all places, and those after which the second epoch's end is seen as well.

    None if nothing tells how long an epoch is.
    """
    last = run.steps[-1]
    place = _place(run, last)
    if place is None:
        return None
    begun = [step for step in run.steps if (found := _place(run, step)) is not None and found.epoch]
    if not begun and (place.size is None or not place.batch):
        return None
    epoch = begun[0] if begun else ceil((place.size or 0) * last / place.batch)
    return epoch + 1 + AFTER_A_CUT, 2 * epoch + AFTER_A_CUT


def unseen(run: RecordedRun, cuts: Sequence[Cut], limit: int) -> list[str]:
    """What the cuts of a run didn't show, and what to do."""
    missing = [where for where in (FIRST, BEHIND, LATER) if where not in [cut.where for cut in cuts]]
    if not missing:
        return []
    words = f"a cut {' or '.join(missing)}: "
    if not cursor_of(run, run.steps[-1]):
        return [f"{words}the recorder saw no batch, so it knows of no epochs. If the loop has none, say --one-epoch"]
    needed = steps_to_see(run)
    if needed is None:
        return [f"{words}the loader tells no length. Give more --steps than two epochs have, or say --one-epoch"]
    return [
        f"{words}{needed[0]} steps would show it, and doctor goes to {limit} by itself. Say --steps {needed[0]}, or "
        "--one-epoch if the training has one epoch"
    ]


def _place(run: RecordedRun, step: int) -> _Place | None:
    cursor = cursor_of(run, step)
    if not cursor:
        return None
    began = cursor.get("began")
    size = str(began.get("size")) if isinstance(began, dict) else ""
    return _Place(int(str(cursor["epoch"])), int(str(cursor["batch"])), int(size) if size.isdecimal() else None)


def _middle(run: RecordedRun, steps: Sequence[int]) -> int:
    """The middle one of some steps, if possible between backward passes that add up."""
    kept = [
        step for step in steps if step - 1 in run.steps and parameters_of(run, step) == parameters_of(run, step - 1)
    ]
    found = kept or list(steps)
    return found[len(found) // 2]
