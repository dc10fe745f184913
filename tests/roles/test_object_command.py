"""``pol object`` on a real node: what it refuses before a long replay, what it can't see, and which task it means."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from all_parties import Solver, Whistleblower
from log_market import EXACT, INTERVAL, JUMP, TOLERANT, Hidden, honest, jumped, leave, long_capture, not_drawn, sitting
from role_market import Town, awarded

from cli_runner import Said, pol
from pol.cli.market import object as object_command
from pol.commitments.checkpoint_log import CheckpointLog
from pol.commitments.keccak import keccak256
from pol.errors import OperationalError
from pol.roles.submitter.submitter import Offer, Submitter

pytestmark = pytest.mark.long


@dataclass
class Desk:
    """A market with its node, and the command line of the party ``w``."""

    town: Town
    document: Path

    def object(self, named: str, segment: int, *more: str | Path) -> Said:
        chain = (
            "--deployment",
            self.document,
            "--rpc",
            self.town.connection.name,
            "--key-env",
            "SEER_KEY",
            "--test-terms",
        )
        return pol("object", self.town.store_url, named, "--segment", str(segment), *chain, *more)

    def shown(self, named: str, segment: int, *more: str | Path) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.object(named, segment, "--json", *more).out)
        return found


@pytest.fixture
def desk(town: Town, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Desk:
    monkeypatch.setenv("SEER_KEY", keccak256(b"w").hex())
    document = tmp_path / "deployment.json"
    document.write_text(town.deployment.to_json())
    return Desk(town, document)


def digest_of(desk: Desk, task_id: bytes) -> str:
    market = desk.town.deployment.market(desk.town.connection)
    return bytes(market.proofs.events("ProofCommitted", taskId=task_id)[-1]["proofDigest"]).hex()


def test_its_evidence_is_where_the_process_looks_for_it(desk: Desk, tmp_path: Path) -> None:
    task_id = jumped(desk.town, EXACT)
    digest, seer = digest_of(desk, task_id), desk.town.join(Whistleblower, "w")
    said = desk.object(digest, JUMP)
    assert said == Said(2, match="add --data DIR, the same folder as for `pol run whistleblower --data DIR`")
    assert seer.market.objections.objected(task_id).objections == 0
    assert desk.shown(digest, JUMP, "--dry-run")["false"] is True
    assert desk.shown(digest, JUMP, "--data", tmp_path)["dispute"] == 1
    # What `pol run whistleblower --data` names its own.
    kept = {path.name for path in (tmp_path / "evidence").glob("??/*")}
    assert {seer.proof(task_id).checkpoints[JUMP + i].object for i in range(2)} <= kept
    assert desk.object(digest, 0, "--dry-run").code == 1


@pytest.mark.parametrize("offer", [EXACT, TOLERANT], ids=["exact", "tolerant"])
def test_a_command_that_is_started_again_objects_once(
    desk: Desk, offer: Offer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first objection has doubled the bond, and so the highest one that it accepts."""
    task_id, opened = jumped(desk.town, offer), object_command._opened
    digest, seer = digest_of(desk, task_id), desk.town.join(Whistleblower, "w")

    def killed(*about: object) -> dict[str, Any]:
        raise OperationalError("killed before it told")

    monkeypatch.setattr(object_command, "_opened", killed)
    assert desk.object(digest, JUMP, "--data", tmp_path).code == 3
    monkeypatch.setattr(object_command, "_opened", opened)
    assert desk.object(digest, JUMP, "--data", tmp_path).code == 0
    assert seer.market.objections.objected(task_id).objections == 1


def test_what_cannot_be_read_is_neither_true_nor_false(desk: Desk) -> None:
    task_id = jumped(desk.town, EXACT)
    hidden = Hidden(desk.town, desk.town.join(Whistleblower, "w"), task_id, JUMP + 1)
    digest = digest_of(desk, task_id)
    said = desk.object(digest, JUMP, "--dry-run")
    assert said == Said(3, match="can't be replayed, and nothing was sent: its states aren't in the store")
    assert "true" not in said.out
    said = desk.object(digest, JUMP, "--dry-run", "--json")
    shown = json.loads(said.out)
    assert (said.code, shown["false"], shown["lost"]) == (3, None, [JUMP + 1])
    assert "name a store that has them" in shown["error"]
    hidden.show()


def test_drawn_segments_and_an_empty_purse_are_told_before_any_replay(desk: Desk, tmp_path: Path) -> None:
    task_id = jumped(desk.town, EXACT)
    sitting(desk.town, task_id)
    seer, digest = desk.town.join(Whistleblower, "w"), digest_of(desk, task_id)
    (drawn, *_) = (s for s in range(8) if s not in not_drawn(seer, task_id))
    # Nothing can be replayed, so whatever is said is said before.
    hidden = Hidden(desk.town, seer, task_id, JUMP, JUMP + 1, drawn + 1)
    assert desk.object(digest, drawn, "--dry-run") == Said(
        1, match=f"segment {drawn} is drawn, and left to the verdict"
    )
    leave(seer, 1)
    said = desk.object(digest, JUMP, "--data", tmp_path)
    assert said == Said(1, match="has 1 wei free in the vault: add some with `pol stake deposit`")
    hidden.show()


def test_a_proof_of_several_tasks_names_none(desk: Desk) -> None:
    first, second = honest(desk.town, EXACT), honest(desk.town, EXACT)
    digest = digest_of(desk, first)
    assert digest == digest_of(desk, second)
    said = desk.object(digest, 0, "--dry-run")
    assert said == Said(1, match=f"names 2 tasks: name one of them instead, {first.hex()}, {second.hex()}")
    for task_id in (first, second):
        assert desk.shown(task_id.hex()[:12], 0, "--dry-run")["task"] == task_id.hex()
    assert desk.object("12345678", 1, "--dry-run") == Said(1, match="no solver of this market has committed")


def test_who_commits_to_the_proof_of_another_task_is_not_meant(desk: Desk) -> None:
    task_id = jumped(desk.town, EXACT)
    digest, solver = digest_of(desk, task_id), desk.town.join(Solver, "t")
    other = desk.town.join(Submitter, "s").submit(long_capture(), replace(EXACT, interval=2 * INTERVAL))
    awarded(solver, other)
    task = solver.task(other)
    start = CheckpointLog([task.document.initial_state_root, *[b"\1" * 32] * task.document.segments])
    log = (task.document.segments + 1, start.root())
    solver.market.proofs.commit(solver.wallet, other, *log, [], bytes.fromhex(digest), start.inclusion(0))
    assert digest_of(desk, other) == digest
    assert desk.shown(digest, JUMP, "--dry-run")["task"] == task_id.hex()
