"""``pol object``: an objection to one segment of a committed learning proof, by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from pol.cli.market.party_options import MarketAccess, chain_options, signer_of, signer_options
from pol.errors import ProtocolError
from pol.roles.party.policy import PUBLIC_CHAIN, TEST_NETWORK
from pol.roles.whistleblower.whistleblower import Whistleblower

EXIT_TRUE = 1


@click.command(name="object")
@click.argument("store", metavar="STORE")
@click.argument("proof", metavar="PROOF")
@chain_options
@signer_options
@click.option("--segment", type=click.IntRange(0), required=True, metavar="K", help="The segment, from 0.")
@click.option("--data", type=click.Path(path_type=Path), metavar="DIR", help="A folder for the evidence.")
@click.option("--test-terms", is_flag=True, help="Accept the short windows of test networks.")
@click.option("--dry-run", is_flag=True, help="Replay, and say what it would lock; send nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def object(  # noqa: A001  # a command is named like its verb
    store: str,
    proof: str,
    market: MarketAccess,
    segment: int,
    data: Path | None,
    test_terms: bool,
    dry_run: bool,
    as_json: bool,
    **signer: Any,
) -> int:
    """Object to segment K of a committed learning proof: replay it twice here, lock the bond, open the dispute.

    STORE holds the task and the proof; PROOF is the digest that the solver has committed to. A segment that is true by
    a replay costs nothing: nothing is sent, and the exit status is 1. Afterwards `pol run whistleblower` with the same
    key makes the moves, claims timeouts and brings the reward.
    """
    url = store if "://" in store else f"file://{Path(store).resolve()}"
    policy = TEST_NETWORK if test_terms else PUBLIC_CHAIN
    signs = signer_of(signer, market.connection.chain_id)
    role = Whistleblower(market.connection, market.deployment, signs, url, policy, evidence=data)
    task_id = _task_of(role, proof)
    desk, terms = role.market.objections, role.market.registry.terms(task_id)
    shown: dict[str, Any] = {
        "task": task_id.hex(),
        "segment": segment,
        "rule": "exact" if terms.is_exact else "thresholds",
    }
    with role.about(task_id):
        role.committed_segment(task_id, segment)
        found = role.examine_segment(task_id, segment)
        shown |= {"false": found is not None, "bond": desk.bond_of(task_id)}
        if found is not None and not dry_run:
            number = role.object(task_id, found)
            shown |= _opened(role, task_id, number)
    if as_json:
        print(json.dumps(shown))
    else:
        for line in _lines(shown, dry_run):
            click.echo(line)
    return 0 if shown["false"] else EXIT_TRUE


def _task_of(role: Whistleblower, proof: str) -> bytes:
    """The task whose solver has committed to a proof."""
    digest = proof.lower().removeprefix("0x")
    committed = role.market.proofs.events("ProofCommitted")
    found = [bytes(event["taskId"]) for event in committed if bytes(event["proofDigest"]).hex() == digest]
    if not found:
        raise ProtocolError(
            f"no solver of this market has committed to proof {proof}: name the digest that `pol explain TASK` shows, "
            "and the deployment that the task is on"
        )
    return found[-1]


def _opened(role: Whistleblower, task_id: bytes, number: int) -> dict[str, Any]:
    if not number:
        return {"decided": True}
    if role.market.registry.terms(task_id).is_exact:
        return {"dispute": number, "until": role.market.objection_game.deadline(number) - 1}
    return {"counterclaim": number, "until": role.market.counterclaims.counterclaimed(number).until}


def _lines(shown: dict[str, Any], dry_run: bool) -> list[str]:
    segment = f"segment {shown['segment']} of task {shown['task'][:12]}"
    if not shown["false"]:
        return [
            f"{segment} is true by a replay on this machine: nothing was sent, and an objection would lose its bond"
        ]
    if dry_run:
        return [f"{segment} is false by two replays; an objection locks {shown['bond']} wei. Nothing was sent."]
    if shown.get("decided"):
        return [f"{segment} begins or ends with zero, which is no state: the proof is rejected, and you are paid"]
    if "dispute" in shown:
        what = f"dispute {shown['dispute']}: the solver answers"
    else:
        what = f"counterclaim {shown['counterclaim']}: anybody may contest it"
    return [
        f"{segment} is false by two replays; {shown['bond']} wei are locked",
        f"{what} until second {shown['until']}; run `pol run whistleblower` with this key, so that no clock runs down",
    ]
