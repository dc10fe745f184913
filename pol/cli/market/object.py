"""``pol object``: an objection to one segment of a committed learning proof, by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pol.cli.examples import example
from pol.cli.market.party_options import MarketAccess, chain_options, signer_of, signer_options
from pol.cli.verification.verification_options import device_option, party_executors
from pol.errors import OperationalError, ProtocolError
from pol.training.task import learning_proof

if TYPE_CHECKING:
    from pol.roles.whistleblower.objector import UnseenSegment
    from pol.roles.whistleblower.whistleblower import Whistleblower


EXIT_TRUE, EXIT_UNSEEN = 1, 3
"""The segment is true; it can't be replayed, which is an operational failure."""
TASK_DIGITS = 8


@click.command(name="object", epilog=example("pol object s3://bucket/store 1a2b3c4d --segment 3 --dry-run"))
@click.argument("store", metavar="STORE")
@click.argument("proof", metavar="PROOF|TASK")
@chain_options
@signer_options
@click.option("--segment", type=click.IntRange(0), required=True, metavar="K", help="The segment, from 0.")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The folder of `pol run whistleblower --data DIR`; it keeps the evidence for the moves.",
)
@click.option("--test-terms", is_flag=True, help="Accept the short windows of test networks.")
@device_option
@click.option("--dry-run", is_flag=True, help="Replay, and say what it would lock; send nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def object(  # noqa: A001  # a command is named like its verb
    proof: str,
    market: MarketAccess,
    segment: int,
    data: Path | None,
    test_terms: bool,
    device: str,
    dry_run: bool,
    as_json: bool,
    **signer: Any,
) -> int:
    """Object to segment K of a committed learning proof: replay it twice here, lock the bond, open the dispute.

    STORE holds the task and the proof; PROOF is the digest that the solver has committed to. A task is named by eight
    digits of its id or more, where several have the same proof. A segment that is true by a replay costs nothing:
    nothing is sent, and the exit status is 1. It is 3 if the segment can't be replayed, which says nothing about it.
    Afterwards `pol run whistleblower` with the same key and the same --data makes the moves, claims timeouts and brings
    the reward.
    """
    from pol.roles.party.policy import PUBLIC_CHAIN, TEST_NETWORK
    from pol.roles.whistleblower.objector import UnseenSegment
    from pol.roles.whistleblower.whistleblower import Whistleblower

    if data is None and not dry_run:
        raise click.UsageError(
            "the moves after an objection need its evidence: add --data DIR, the same folder as for `pol run "
            "whistleblower --data DIR`, or --dry-run"
        )
    policy = TEST_NETWORK if test_terms else PUBLIC_CHAIN
    signs = signer_of(signer, market.connection.chain_id)
    about = market.connection, market.deployment, signs, market.store_url, policy
    role = Whistleblower(*about, evidence=data, executors=party_executors(device))
    task_id = _task_of(role, proof)
    desk, terms = role.market.objections, role.market.registry.terms(task_id)
    shown: dict[str, Any] = {
        "task": task_id.hex(),
        "segment": segment,
        "rule": "exact" if terms.is_exact else "thresholds",
    }
    with role.about(task_id):
        role.require_open(task_id, segment)
        if not dry_run:
            role.require_money(task_id)
        found = role.examine_segment(task_id, segment)
        if isinstance(found, UnseenSegment):
            return _unseen(shown, found, market.store_url, as_json)
        shown |= {"false": found is not None, "bond": desk.bond_of(task_id)}
        if found is not None and not dry_run:
            with role.wallet.once():
                number = role.object(task_id, found)
                shown |= _opened(role, task_id, number)
    if as_json:
        print(json.dumps(shown))
    else:
        for line in _lines(shown, dry_run):
            click.echo(line)
    return 0 if shown["false"] else EXIT_TRUE


def _task_of(role: Whistleblower, named: str) -> bytes:
    """The task whose solver has committed to a proof, or that begins so."""
    digits, committed = named.lower().removeprefix("0x"), dict[bytes, Mapping[str, Any]]()
    for event in role.market.proofs.events("ProofCommitted"):
        committed[bytes(event["taskId"])] = event  # the last one counts: a task may get another solver
    found = [task_id for task_id, event in committed.items() if bytes(event["proofDigest"]).hex() == digits]
    if len(found) > 1:
        # Anybody may commit to the digest of another task's proof; the proof says which task it is of.
        proof = learning_proof.decode(role.store, digits)
        told = (bytes.fromhex(proof.task), proof.log_root)
        terms, logs = role.market.registry.terms, {task_id: bytes(committed[task_id]["logRoot"]) for task_id in found}
        found = [task_id for task_id in found if (terms(task_id).document, logs[task_id]) == told] or found
    if not found and len(digits) >= TASK_DIGITS:
        found = [task_id for task_id in committed if task_id.hex().startswith(digits)]
    if not found:
        raise ProtocolError(
            f"no solver of this market has committed to proof {named}, and no task with a proof begins so: name the "
            "digest or eight digits of the task, as `pol explain TASK` shows them, and the deployment that it is on"
        )
    if len(found) > 1:
        ids = ", ".join(task_id.hex() for task_id in found)
        raise ProtocolError(f"{named} names {len(found)} tasks: name one of them instead, {ids}")
    return found[0]


def _unseen(shown: dict[str, Any], found: UnseenSegment, url: str, as_json: bool) -> int:
    """Say that a segment can't be replayed. Raises OperationalError: it is said to people."""
    why = (
        f"segment {found.segment} of task {shown['task'][:12]} can't be replayed, and nothing was sent: its states "
        f"aren't in the store {url} (log entries {', '.join(map(str, found.lost))}); name a store that has them, or "
        "let `pol run whistleblower` demand one on chain: a solver that can't show it loses its stake"
    )
    if not found.lost:
        why = (
            f"segment {found.segment} of task {shown['task'][:12]} can't be replayed, and nothing was sent: the replay "
            "fails on this machine; see that it has enough memory, and try again"
        )
    if not as_json:
        raise OperationalError(why)
    print(json.dumps(shown | {"false": None, "lost": list(found.lost), "error": why}))
    return EXIT_UNSEEN


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
        f"{what} until second {shown['until']}",
        "run `pol run whistleblower` with this key and the same --data, so that no clock runs down",
    ]
