"""A whistleblower's side of the disputes that it began: rebuilt from chain and store alone."""

from __future__ import annotations

from pol.roles.party.dispute_session import Duel
from pol.roles.whistleblower.whistleblower import Finding, Whistleblower


def attacks(role: Whistleblower, task_id: bytes) -> list[Duel]:
    """This party's attacks in the disputes that the profile or the verdict of a task waits for.

    Raises:
        OperationalError: the node or the store failed.
    """
    own, profiles, challenges = role.wallet.address, role.market.profiles, role.market.challenges
    duels = [
        role.attack_profile(task_id, profiles.charge(number), number)
        for number in profiles.disputes(task_id)
        if profiles.dispute(number).challenger == own
    ]
    for number in challenges.disputes(task_id):
        if challenges.dispute(number).challenger == own:
            duels.append(role.attack(task_id, disputed(role, task_id, number), number))
    return duels


def disputed(role: Whistleblower, task_id: bytes, number: int) -> Finding:
    """What a dispute about a verdict is about."""
    seating, verdicts = role.market.challenges.dispute(number).subject, role.market.verdicts
    charge, params = role.market.challenges.charge(number), role.market.game.params(number)
    posted = verdicts.looks(task_id, seating).get(charge.index)
    charge = role.looks(task_id).charged(charge, params, posted)
    claim = verdicts.claims(task_id, seating)[charge.index]
    return Finding(charge.index, claim, charge.kind, charge.component, charge.rerun)
