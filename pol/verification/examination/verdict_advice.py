"""Advice after a verdict, in sentences for people."""

from __future__ import annotations

from collections.abc import Sequence

from pol.errors import Fault
from pol.verification.verdict.verdict import Outcome, Reason, Reasons, Verdict

SELDOM = 8
"""One segment in so many, rounded up, may need a second look without a remark: ReLU networks need one in 200."""

NEXT = {
    Outcome.ACCEPTED: "Nothing to do: the drawn segments were trained as claimed. Draw again for more confidence.",
    Outcome.REJECTED: "Don't pay for this training. Repeat the verification with the same seed to see it for yourself; "
    "on chain, post the verdict, or challenge the one that accepted it.",
    Outcome.INCONCLUSIVE: "Nothing is known yet, and nobody is to blame. Remove the obstacle, and verify again with "
    "the same seed.",
}
REASONS: dict[Reason | Fault, str] = {
    Reason.CORRUPT_OBJECT: "The store returns other bytes than those asked for: fetch another copy.",
    Reason.NOT_AVAILABLE: "An object is missing, or can't be read: ask its publisher, or try later.",
    Reason.WORKER_LOST: "A process ended without a result: give it more memory, or fewer segments at a time.",
    Reason.UNSUPPORTED: "This version of pol can't lower the task: try the version that it was published with.",
    Reason.DISTANCE_ABOVE_THRESHOLD: "A segment ends farther from the replay than honest hardware explains: steps were "
    "left out, changed or made up, or the profile was measured for other hardware.",
    Reason.WITHIN_SECOND_LOOK: "A segment exceeds the thresholds, but reruns of it diverge as far: it is weaker "
    "evidence than the others.",
    Reason.DRIFT: "Each segment is within the limits, but what the solver's states add to the replays points in one "
    "direction: somebody pushes the training. Kernels that round in one direction share up to a fifth of theirs.",
    Reason.OUTSIDE_SPAN: "A segment diverges as far as reruns of it, but elsewhere. One in hundreds of honest segments "
    "does; if many do, it is lower precision, or a push.",
    Reason.PAIR: "Each segment is within the limits, but replayed on from its own states the training goes elsewhere: "
    "something in the checkpoints acts later. Adam makes whole weights of small averages.",
    Reason.SLOT: "A tensor isn't where its steps lead, though its component is within the limit: other tensors move so "
    "far that it counts for nothing. `pol profile --scale` gives each its own limit.",
    Reason.INTEGERS_DIFFER: "A counter or another integer isn't what the steps give: steps left out or done twice.",
    Reason.ROOTS_DIFFER: "Exact mode accepts canonical bits only: was this training run canonically?",
    Fault.BROKEN_LOG: "The proof isn't over the log that was committed to: a checkpoint was exchanged afterwards.",
    Fault.WRONG_START: "The training doesn't begin where the task does.",
}


def advice(outcome: Outcome, reasons: Reasons) -> list[str]:
    """The next step: one sentence for the outcome, and one for each reason that has advice."""
    return [NEXT[outcome], *(REASONS[reason] for reason in reasons if reason in REASONS)]


def frequent_second_looks(verdicts: Sequence[Verdict]) -> list[str]:
    """A sentence if more segments passed by a second look than kinks alone explain; it rejects nothing."""
    looked = sum(verdict.outcome is Outcome.ACCEPTED and verdict.second_look is not None for verdict in verdicts)
    if looked * SELDOM <= len(verdicts) + SELDOM - 1:
        return []
    return [
        f"{looked} of {len(verdicts)} segments passed by a second look only. Running statistics that settle and a "
        "training that stands still do that, and so does lower precision. If the submitter can't tell which, ask for a "
        "profile over more segments, or for exact mode; --looks 0 shows what the thresholds alone say."
    ]


def pairs_apart(pairs: Sequence[Verdict]) -> list[str]:
    """A sentence if pairs of segments, replayed as one, weren't accepted; few of them reject nothing."""
    apart = [pair for pair in pairs if pair.outcome is not Outcome.ACCEPTED]
    if not apart:
        return []
    named = ", ".join(f"{2 * pair.segment} and {2 * pair.segment + 1}" for pair in apart)
    return [
        f"Of {len(pairs)} pairs of segments that were replayed as one, {len(apart)} weren't accepted: {named}. One in "
        "a hundred may be honest; replay more of them (--draws, --all)."
    ]
