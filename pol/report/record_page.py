"""A self-contained page about a learning record that names no task: its log, and how far each tensor moves."""

from __future__ import annotations

from pol.report.elements.html_elements import element, table
from pol.report.elements.page_parts import box, bullets, card, counted, facts, folded, moment, note, page_of, pairs
from pol.report.training_cards import course_cards
from pol.report.verification_scope import Occasion
from pol.training.record.recorded_run import RecordedRun
from pol.verification.examination.training_course import TrainingCourse

MOST_ROWS = 500
UNCHECKED = (
    "The steps between checkpoints: the record names no task, so nobody can replay them. Recorder(..., task=) makes a "
    "record whose training can be replayed.",
    "Whether checkpoints that this page doesn't compare hold what the log says: `pol check` reads them all.",
)


def page(run: RecordedRun, course: TrainingCourse, occasion: Occasion) -> str:
    """The page as HTML."""
    record = run.record
    steps = run.steps
    told = [
        ("checkpoints", f"{len(steps):,}"),
        ("steps", f"{steps[0]:,} to {steps[-1]:,}" if steps else "none yet"),
        ("signed heads", f"{len(record.heads):,}"),
        ("reported", moment(occasion.time)),
        ("by", occasion.by or "not named"),
    ]
    rows = [(str(c.step), element("code", c.root.hex())) for c in record.checkpoints[:MOST_ROWS]]
    left = len(steps) - MOST_ROWS
    more = [note(f"and {left:,} more, which pol log lists")] if left > 0 else []
    log = folded(f"All {counted(len(steps), 'checkpoint')}", table(("step", "root of the state"), rows), *more)
    digests = {
        "run": record.run.hex(),
        "checkpoint log": record.log_root.hex() if record.checkpoints else "empty",
        "signer": "nobody" if record.signer is None else record.signer.hex(),
    }
    lead = "A log of checkpoints. Nothing in it can be changed without another root; its steps can't be replayed."
    return page_of(
        "pol report: a learning record",
        element("h1", "A learning record"),
        box("card verdict", element("b", "RECORDED"), element("p", lead, class_="lead")),
        card("", facts(told)),
        *course_cards(course),
        card("Checkpoints", log),
        card("What wasn't checked", bullets(UNCHECKED)),
        card("Repeat it", element("pre", occasion.command)),
        card("Digests", pairs(digests)),
    )
