"""What a verification says, what it leaves open, and how it is repeated: sentences for whoever gets its report."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from pol.verification.examination.verification_report import VerificationReport
from pol.verification.verdict.verdict import Outcome


@dataclass(frozen=True)
class Occasion:
    """The circumstances of a verification that nothing else says.

    ``time`` is in seconds of Unix time. ``by`` names the verifier as it names itself. ``command`` repeats it all.
    ``is_log_committed`` says whether the root of the checkpoint log came from outside of the store.
    """

    time: int
    by: str
    command: str
    is_log_committed: bool = False


def meaning(found: VerificationReport) -> str:
    """The verdict in a sentence."""
    outcome, verdict = found.verdict.outcome, found.verdict
    if outcome is Outcome.INCONCLUSIVE:
        return "Nothing is known: some of the evidence couldn't be read. That blames nobody."
    if outcome is Outcome.REJECTED and not verdict.examined:
        return "The evidence contradicts itself: it is no proof of this training."
    if outcome is Outcome.REJECTED:
        return "This training wasn't done as its task says: at least one replay contradicts what its author published."
    if found.is_exact:
        return "Every replayed segment ends, bit for bit, where the task's program leads from its published start."
    return (
        "Every replayed segment ends where the task's program leads from its published start, up to differences that "
        "honest hardware shows."
    )


def unchecked(found: VerificationReport, occasion: Occasion) -> list[str]:
    """What this verification didn't look at, or can't tell, in sentences."""
    told, draw = [], found.draw
    if found.verdict.outcome is Outcome.INCONCLUSIVE or draw is None:
        told.append("Whatever depends on the evidence that couldn't be read.")
    if draw is not None and len(draw.replayed) < draw.segments:
        left = draw.segments - len(draw.replayed)
        odds = len(draw.drawn) / draw.segments
        told.append(
            f"{left} of {draw.segments} segments weren't replayed. A single bad one would have been drawn with "
            f"probability {odds:.3g}."
        )
    if draw is not None and draw.seed is not None and not found.given_seed:
        told.append(
            "That the seed was drawn without a preference: it is this verifier's own. Whoever doubts it repeats the "
            "verification with a seed of their own."
        )
    if not occasion.is_log_committed:
        told.append(
            "That the checkpoints are those from before the draw: no root of their log came from outside of the store "
            "(--log-root)."
        )
    if not found.is_exact:
        told.append("Changes within the limits: of the last bits, or of what counts for nothing beside the rest.")
    if found.uncompared:
        told.append(f"What the record's own checkpoints hold besides the task: {', '.join(found.uncompared)}.")
    if found.unread:
        told.append(f"{found.unread} of the record's own checkpoints: they end no replayed segment (--all).")
    if not found.suspicions:
        told.append("Whether checkpoints that weren't replayed look like their neighbors (--suspicious).")
    told.append("Whether the data are good, or the ones that somebody promised: the task names them by their digest.")
    told.append("Who trained, and on which machines: what the solver says about itself is shown and not checked.")
    return told


def repeat_command(found: VerificationReport, options: Sequence[str] = ()) -> str:
    """The command that repeats a verification with the same draw, on any machine that can read the store."""
    words = ["pol", "verify", found.store, *([found.proof] if found.proof else [])]
    if found.profile is not None:
        words += ["--profile", found.profile]
    elif found.is_exact:
        words.append("--exact")
    draw = found.draw
    if draw is not None:
        words += ["--all"] if draw.seed is None else ["--draws", str(len(draw.drawn))]
        if seed := draw.seed or found.sketched:
            words += ["--seed", seed.hex()]
        if draw.suspected:
            words += ["--suspicious", str(len(draw.suspected))]
    return shlex.join([*words, *options])
