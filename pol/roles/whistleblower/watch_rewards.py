"""Unpaid watch rewards of a closed task, from the chain alone."""

from __future__ import annotations

from pol.chain.account.wallet import Reverted
from pol.chain.desks.verdicts import evidence
from pol.roles.whistleblower.whistleblower import Whistleblower


def unpaid_errors(role: Whistleblower, task_id: bytes) -> list[tuple[int, int]]:
    """Seatings of a closed task with an unpaid error that this party committed to, each with the index of the error."""
    jackpot, own = role.market.jackpot, role.wallet.address
    until, hidden = jackpot.catch_until(role.market.verdicts.closed_at(task_id)), dict[int, bytes]()
    if jackpot.reserved_of(task_id) and role.connection.now() <= until:
        for event in jackpot.events("Watched", taskId=task_id, account=own):
            seating, ticket = int(event["seating"]), int(event["ticket"])
            if any(jackpot.commitment(task_id, seating, own, ticket)):
                hidden[seating] = bytes(event["commitment"])
    found = [(seating, _index(role, task_id, seating, commitment)) for seating, commitment in hidden.items()]
    return [(seating, index) for seating, index in found if index is not None]


def _index(role: Whistleblower, task_id: bytes, seating: int, commitment: bytes) -> int | None:
    """The index at which a commitment opens to the final entry; None if there is none, or if the entry stood."""
    verdicts, last = role.market.verdicts, role.market.registry.task(task_id).seating
    for index in range(len(verdicts.claims_as_posted(task_id, seating))):
        stands = verdicts.placed(task_id, last, index)
        if role.commitment(task_id, seating, index, stands.entries[index]) != commitment:
            continue
        said = verdicts.placed(task_id, seating, index, as_posted=True)
        try:
            verdicts.read("refuted", task_id, seating, index, evidence(said, stands))
        except Reverted:
            return None
        return index
    return None
