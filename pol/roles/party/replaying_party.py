"""The base of parties that replay segments: their sides of disputes, by their own evidence."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from pol.chain.desks.market import Matter
from pol.dispute.dispute_needs import RESTING_BYTES
from pol.dispute.play.honest_players import ReplayPlayer
from pol.roles.party.dispute_session import DisputeSession
from pol.roles.party.evidence import Evidence
from pol.roles.party.execution_journal import forget_executions
from pol.roles.party.kept_store import KeptStore
from pol.roles.party.open_disputes import open_disputes
from pol.roles.party.role import Role
from pol.roles.party.trace_publications import TracePublications


class ReplayingParty(Role, Evidence):
    """A party that replays segments."""

    @cached_property
    def published_traces(self) -> TracePublications:
        """The traces of disputed steps, one's own and those of others."""
        return TracePublications(self.store)

    def _is_in_dispute(self, task_id: bytes) -> bool:
        return any(each.task_id == task_id for each in open_disputes(self))

    def rest(self) -> None:
        """Let go of large executions that the disk remembers."""
        self._traces.drop(lambda trace: trace.is_journaled and trace.most_bytes > RESTING_BYTES)

    def release(self, task_id: bytes) -> None:
        """As `Role.release`, with the journals of executions."""
        super().release(task_id)
        if isinstance(self.store, KeptStore):
            forget_executions(self.store.database, task_id)

    def session(self, task_id: bytes, number: int, matter: Matter = Matter.VERDICT) -> DisputeSession:
        """This party's side of a dispute, rebuilt from chain and store. Raises as `disputed`."""
        program, player = self.evidence_in(task_id, number, matter)
        if isinstance(player, ReplayPlayer):
            player = replace(player, published=self.published_traces)
        court = self.market.courts[matter]
        return DisputeSession(court.game, self.wallet, program, number, player, court.desk, self.published_traces)

    def sessions(self, task_id: bytes) -> list[DisputeSession]:
        """This party's sides of all open disputes about a task. Raises as `disputed`.

        Ask again after every round of moves.
        """
        own = self.wallet.address
        found = []
        for matter, court in self.market.courts.items():
            for number in court.desk.disputes(task_id):
                params = court.game.params(number)
                if own in {params.asserter, params.challenger}:
                    found.append(self.session(task_id, number, matter))
        return found

    def own_disputes(self, task_id: bytes) -> list[tuple[Matter, int]]:
        """The disputes of this party that no game has ended, and for which a task waits."""
        open_here = [(each.matter, each.number) for each in open_disputes(self) if each.task_id == task_id]
        waiting = {matter: self.market.courts[matter].desk.disputes(task_id) for matter, _ in open_here}
        return [(matter, number) for matter, number in open_here if number in waiting[matter]]
