"""What to do after a verdict, in sentences for people."""

from __future__ import annotations

from pol.verification.verdict import Outcome, Reason

NEXT = {
    Outcome.ACCEPTED: "Nothing to do: what was drawn was done as the proof says. Draw again for more confidence.",
    Outcome.REJECTED: "Don't pay for this training. Repeat the verification with the same seed to see it for yourself; "
    "on chain, post the verdict, or challenge the one that accepted it.",
    Outcome.INCONCLUSIVE: "Nothing is known yet, and nobody is to blame. Remove what kept the verifier from looking, "
    "and run it again with the same seed.",
}
REASONS = {
    Reason.CORRUPT_OBJECT: "The store hands out other bytes than were asked for: fetch another copy.",
    Reason.NOT_AVAILABLE: "Something isn't there, or can't be read: ask its publisher, or try later.",
    Reason.WORKER_LOST: "A process ended before it had an answer: give it more memory, or less to do at a time.",
    Reason.UNSUPPORTED: "This version of pol can't lower the task: try the version that it was published with.",
    Reason.DISTANCE_ABOVE_THRESHOLD: "A segment ends farther from the replay than honest hardware explains: steps were "
    "left out, changed or made up, or the profile was measured for other hardware.",
    Reason.INTEGERS_DIFFER: "A counter or another integer isn't what the steps give: steps left out or done twice.",
    Reason.ROOTS_DIFFER: "Exact mode takes the canonical bits only: was this training run canonically?",
    Reason.BROKEN_LOG: "The proof isn't over the log that was committed to: a checkpoint was exchanged afterwards.",
    Reason.WRONG_START: "The training doesn't begin where the task does.",
}


def advice(outcome: Outcome, reasons: tuple[Reason, ...]) -> list[str]:
    """What to do next: one sentence for the outcome, and what is known about the reasons."""
    return [NEXT[outcome], *(REASONS[reason] for reason in reasons if reason in REASONS)]
