"""A training in rounds that `pol explore` shows while it runs: read again whenever its log has grown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pol.execution.cpu import CpuExecutor
from pol.report.elements.html_elements import Markup, element, table
from pol.report.elements.page_parts import badge, card
from pol.report.rounds_page import RoundsFigures, seats_of, standing, state, training
from pol.rounds.auditing.drawn_audit import RoundsAudit, audit_claims, open_rounds
from pol.rounds.rounds_course import rounds_course
from pol.training.record.recorded_run import open_store

MOST_CLAIMS = 60
"""Claims whose loss is looked at: a live page has little time."""


@dataclass
class WatchedTraining:
    """A training by its folder or URL. Roots are checked, nothing but single steps is replayed."""

    url: str
    _entries: int = -1
    _audit: RoundsAudit | None = None
    _page: Markup = field(default_factory=Markup)

    def look(self) -> RoundsAudit:
        """The audit of its roots as of now."""
        rounds = open_rounds(open_store(self.url))
        if self._audit is None or len(rounds.entries) != self._entries:
            self._audit = audit_claims(rounds, [], is_all_roots=True)
            figures = RoundsFigures(rounds_course(rounds, CpuExecutor, most=MOST_CLAIMS))
            self._page = training(self._audit, figures, None)
            self._entries = len(rounds.entries)
        return self._audit

    def page(self) -> Markup:
        """The content of its page."""
        self.look()
        return self._page


def trainings_card(trainings: Sequence[WatchedTraining]) -> list[Markup]:
    """All trainings with their rounds, workers and standing; nothing if there are none."""
    rows = []
    for number, watched in enumerate(trainings):
        audit = watched.look()
        rows.append(
            (
                element("a", audit.plan.system, href=f"/training/{number}"),
                badge(*state(audit)),
                f"{len(audit.rounds.rosters)} of {audit.plan.rounds}",
                str(len(seats_of(audit))),
                str(len(audit.rounds.claims)),
                standing(audit),
            )
        )
    head = ("training", "state", "rounds", "workers", "claims", "where it stands")
    return [card("Trainings of many workers", table(head, rows))] if rows else []
