"""``pol log RECORD``: the log of a learning record, its signed heads, consistency paths, and its attestation."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import click
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from rich.console import Console

from pol.cli.examples import example
from pol.cli.file_output import json_option, read_file, write_file
from pol.cli.key_option import signing_key
from pol.commitments.checkpoint_log import verify_consistency
from pol.errors import ProtocolError
from pol.training.record import attestation, learning_record, signed_heads
from pol.training.record.learning_record import LearningRecord
from pol.training.record.recorded_run import RecordedRun
from pol.training.record.signed_heads import LogHead
from pol.training.storage.store import Store


@click.command(epilog=example("pol log runs/first --verify --keep head.json"))
@click.argument("record", metavar="RECORD")
@click.option("--verify", is_flag=True, help="Verify every signed head.")
@click.option("--signer", metavar="HEX", help="The public key that has to have signed; implies --verify.")
@click.option("--consistency", nargs=2, type=int, metavar="OLD NEW", help="The path between two sizes of the log.")
@click.option("--keep", type=click.Path(path_type=Path), metavar="FILE", help="Keep the newest signed head.")
@click.option("--since", type=click.Path(path_type=Path), metavar="FILE", help="Check against a head that was kept.")
@click.option("--in-toto", "attested", type=click.Path(path_type=Path), metavar="FILE", help="Write an attestation.")
@click.option(
    "--key",
    type=click.Path(path_type=Path),
    metavar="PEM",
    callback=signing_key,
    help="Ed25519 key that signs the attestation.",
)
@json_option
def log(
    record: str,
    verify: bool,
    signer: str | None,
    consistency: tuple[int, int] | None,
    keep: Path | None,
    since: Path | None,
    attested: Path | None,
    key: Ed25519PrivateKey | None,
    as_json: bool,
) -> None:
    """Show the log of the learning record in a store (a folder or a URL), and check that nothing in it was rewritten.

    With a signed head that was kept earlier (--keep), --since checks that the record still begins with it.
    """
    if signer is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", signer):
        raise click.UsageError(f"--signer {signer}: a public key is 64 hexadecimal digits")
    if (attested is None) != (key is None):
        raise click.UsageError("an attestation needs both --in-toto FILE and --key PEM")
    store = Store(record.removesuffix(learning_record.HEAD))
    found = learning_record.load_record(store)
    shown = _summary(found)
    if verify and signer is None and not found.heads:
        # An unsigned log is not bad, but it has no head to verify.
        shown["verified_heads"] = "not checked: the record isn't signed"
    elif verify or signer is not None:
        shown["verified_heads"] = _verify(found, signer)
    if verify or signer is not None:
        told = RecordedRun(store, found).changes(found.checkpoints)
        shown["changes"] = [{"step": step, "change": change} for step, change in told]
    if consistency is not None:
        shown["consistency"] = _consistency(found, *consistency)
    if since is not None:
        kept = read_file(since, hint=f"; make it with: pol log RECORD --keep {since}")
        shown["extends"] = _extends(found, LogHead.decode(kept))
    if keep is not None:
        write_file(keep, signed_heads.newest_head(found).encode())
        shown["kept"] = str(keep)
    if attested is not None:
        shown["in_toto"] = _attest(attested, store, found, key)
    _print(shown, as_json)


def _summary(record: LearningRecord) -> dict[str, Any]:
    checkpoints = record.checkpoints
    return {
        "run": record.run.hex(),
        "start": dict(record.start),
        "interval": record.interval,
        "steps": checkpoints[-1].step if checkpoints else 0,
        "size": len(checkpoints),
        "root": record.log_root.hex() if checkpoints else "",
        "signer": "" if record.signer is None else record.signer.hex(),
        "heads": len(record.heads),
    }


def _verify(record: LearningRecord, signer: str | None) -> int:
    newest = signed_heads.verify_heads(record)
    if signer is not None and newest.signer.hex() != signer.lower():
        raise ProtocolError(f"the record is signed by {newest.signer.hex()}, not by {signer}")
    return len(record.heads)


def _consistency(record: LearningRecord, old: int, new: int) -> dict[str, Any]:
    log_ = record.log
    if not 1 <= old <= new <= len(log_):
        raise click.UsageError(
            f"--consistency {old} {new}: sizes are from 1 to {len(log_)} here, the smaller one first"
        )
    path = log_.consistency(old, new)
    verify_consistency(log_.root(old), old, log_.root(new), new, path)
    roots = {"old_root": log_.root(old).hex(), "new_root": log_.root(new).hex()}
    return {"old": old, "new": new, **roots, "path": [node.hex() for node in path]}


def _extends(record: LearningRecord, kept: LogHead) -> dict[str, Any]:
    newest = signed_heads.newest_head(record)
    if kept.size > newest.size:
        raise ProtocolError(
            f"the record has {newest.size} checkpoints, the head that was kept {kept.size}: older copy?"
        )
    path = record.log.consistency(kept.size)
    signed_heads.verify_extension(kept, newest, path)
    return {"size": kept.size, "root": kept.root.hex(), "path": [node.hex() for node in path]}


def _attest(file: Path, store: Store, record: LearningRecord, key: Ed25519PrivateKey | None) -> str:
    if key is None:
        raise click.UsageError("an attestation needs --key PEM")
    write_file(file, attestation.attest(store, record, key))
    return str(file)


def _print(shown: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(shown, indent=2))
        return
    console = Console(highlight=False)
    for name, value in shown.items():
        if isinstance(value, dict) and "path" in value:
            nodes, rest = value["path"], {k: v for k, v in value.items() if k != "path"}
            text = "  ".join(f"{k} {v}" for k, v in rest.items()) + "".join(f"\n  {node}" for node in nodes)
        else:
            text = json.dumps(value) if isinstance(value, dict) else str(value) or "none"
            if name == "changes":
                text = "".join(f"\n  step {told['step']}: {told['change']}" for told in value) or "none"
        console.print(f"{name.replace('_', ' '):<15} {text}", markup=False, soft_wrap=True)
