"""What a watcher is owed once a task is closed, from the chain alone."""

from __future__ import annotations

from pol.chain.challenges import ChargeKind
from pol.chain.verdicts import evidence
from pol.chain.wallet import Reverted
from pol.roles.whistleblower import Finding, Whistleblower


def caught(role: Whistleblower, task_id: bytes) -> list[tuple[int, Finding]]:
    """Seatings of a closed task, each with the error that this party committed to and that isn't paid yet.

    Raises:
        OperationalError: the node or the store failed.
    """
    jackpot, own = role.market.jackpot, role.wallet.address
    until, hidden = jackpot.catch_until(role.market.verdicts.closed_at(task_id)), dict[int, bytes]()
    if jackpot.reserved_of(task_id) and role.connection.now() <= until:
        for event in jackpot.events("Watched", taskId=task_id, account=own):
            seating, ticket = int(event["seating"]), int(event["ticket"])
            if any(jackpot.commitment(task_id, seating, own, ticket)):
                hidden[seating] = bytes(event["commitment"])
    found = [(seating, _finding(role, task_id, seating, commitment)) for seating, commitment in hidden.items()]
    return [(seating, finding) for seating, finding in found if finding is not None]


def _finding(role: Whistleblower, task_id: bytes, seating: int, commitment: bytes) -> Finding | None:
    """What a commitment was made to; None if no claim fits it, or if the claim has stood."""
    verdicts = role.market.verdicts
    for index, claim in enumerate(verdicts.claims_as_posted(task_id, seating)):
        finding = Finding(index, claim, ChargeKind.REPLAY, 0)
        if role.commitment(task_id, seating, finding) == commitment:
            said = verdicts.placed(task_id, seating, index, as_posted=True)
            last = verdicts.placed(task_id, role.market.registry.task(task_id).seating, index)
            try:
                verdicts.read("refuted", task_id, seating, index, evidence(said, last))
            except Reverted:
                return None
            return finding
    return None
