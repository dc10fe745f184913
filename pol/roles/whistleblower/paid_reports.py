"""Rewarded reports: announced in one block, shown in a later one (docs/spec/market.md)."""

from __future__ import annotations

from pol.chain.desks.profiles import PostedProfile, Witness, conviction_evidence
from pol.chain.desks.verdicts import leak_evidence
from pol.errors import ProtocolError
from pol.graph.step_program import Component
from pol.incentives.forced_errors import commitment
from pol.roles.party.role import Role


def report_leak(role: Role, task_id: bytes, secret: bytes) -> None:
    """Show a seated verifier's secret before it may be disclosed, for half of its stake.

    Pay for inclusion in the next block: the second transaction makes the secret public.

    Raises:
        ProtocolError: it isn't the secret of that seat; nothing is announced.
        Reverted: it is too late, or somebody has shown it.
        OperationalError: the node failed; repeat the call, the announcement stays.
    """
    seating = role.market.seats.seating(task_id)
    if seating.commitment != commitment(bytes.fromhex(seating.holder[2:]), task_id, secret):
        raise ProtocolError(f"this isn't the secret of seat {seating.number}: its source is wrong")
    role.market.verdicts.announce_evidence(role.wallet, task_id, leak_evidence(secret))
    role.market.verdicts.report_leak(role.wallet, task_id, secret)


def convict(role: Role, task_id: bytes, posted: PostedProfile, rerun: Witness, component: Component) -> None:
    """Show a rerun that implies a higher threshold than the posted one, for half of the profiler's stake.

    Raises:
        Reverted: the posted threshold covers the rerun, it is too late, or somebody has shown it.
        OperationalError: the node failed; repeat the call, the announcement stays.
    """
    role.market.profiles.announce_evidence(role.wallet, task_id, conviction_evidence(rerun, component))
    role.market.profiles.convict(role.wallet, task_id, posted.portions, rerun, component)
