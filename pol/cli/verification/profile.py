"""``pol profile``: measure how much honest runs of a task diverge, and the thresholds that follow."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from rich.console import Console
from rich.progress import Progress

from pol.cli.examples import defaulted, example
from pol.cli.file_output import DIFFERS, FINE, console, unsupported_is_unseen
from pol.cli.key_option import signing_key
from pol.cli.verification import profile_picture
from pol.cli.verification.verification_options import device_option
from pol.commitments import canonical_json
from pol.errors import ProtocolError
from pol.execution.device.open_device import executors_on
from pol.execution.executor import ExecutorFactory
from pol.training.record.signed_heads import public_bytes
from pol.training.storage.store import Store
from pol.training.task.published_task import load as load_task
from pol.training.task.task_document import LoadedTask
from pol.verification.profile import profile_document as profile_signature
from pol.verification.profile.profile_challenge import ProfileCharge, find_false_parts
from pol.verification.profile.profile_claim import MARGIN
from pol.verification.profile.profile_document import Profile, load_profile
from pol.verification.profile.profiling import (
    PROFILED,
    RERUNS,
    measure_profile,
    require_thresholds,
    rerun_programs_root,
)
from pol.verification.profile.slot_scales import require_scaled, scales_of, with_scales
from pol.verification.profile.torch_reruns import NativeReruns, rerun_natively
from pol.verification.profile.torch_setting import settings_here

_HASH = re.compile(r"[0-9a-f]{64}", re.IGNORECASE)
_FILE_LIMIT = 1 << 16


@click.command(epilog=example("pol profile store task.json --reruns 8"))
@click.argument("store")
@click.argument("task")
@defaulted("--reruns", type=click.IntRange(0), default=RERUNS, help="Reruns of each segment.")
@click.option("--segments", type=click.IntRange(0), metavar="M", help=f"Profile the first M segments.  [{PROFILED}]")
@defaulted("--margin", type=click.IntRange(0), default=MARGIN, help="0: exact mode.")
@click.option(
    "--key", type=click.Path(path_type=Path), callback=signing_key, help="PEM file of an Ed25519 key: sign the profile."
)
@click.option("--against", metavar="DIGEST", help="Measure on the terms of this profile, and list its false parts.")
@click.option("--scale", is_flag=True, help="Publish the task anew, each tensor weighed by its noise; profile that.")
@click.option("--native", is_flag=True, help="Execute the segments with torch too, in the settings of this machine.")
@click.option("--compile", "compiled", is_flag=True, help="With --native: torch.compile as well; takes a minute.")
@click.option("--threads", type=click.IntRange(0), default=0, help="Threads of the canonical kernels; all by default.")
@device_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@unsupported_is_unseen
def profile(
    store: str,
    task: str,
    reruns: int,
    segments: int | None,
    margin: int,
    key: Ed25519PrivateKey | None,
    against: str | None,
    scale: bool,
    native: bool,
    compiled: bool,
    threads: int,
    device: str,
    as_json: bool,
) -> int:
    """Measure how much honest runs of TASK (its digest, or a file with it) in STORE diverge; store the profile there.

    The same task and options give the same bytes on any machine. Native reruns don't: they are stored apart.
    """
    if compiled and not native:
        raise click.UsageError("--compile is for the native reruns: add --native")
    if scale and against is not None:
        raise click.UsageError("--scale gives another task, --against is a profile of this one: leave out one of them")
    opened = Store(store)
    loaded = load_task(opened, _digest(task))
    posted = load_profile(opened, against, loaded) if against is not None else None
    if posted is not None:
        count, reruns, margin = len(posted.claim.portions), posted.claim.rerun_count, posted.claim.margin
    elif margin == 0:
        count, reruns = 0, 0
    else:
        count = min(PROFILED, loaded.document.segments) if segments is None else segments
    terminal = console()
    executor = executors_on(device, threads)
    if scale and not count:
        raise click.UsageError("without profiled segments no tensor has a limit (exact mode): leave out --scale")
    with _progress(as_json) as advance:
        found = measure_profile(loaded, executor, count, reruns, margin, advance)
        if scale:
            loaded = load_task(opened, with_scales(opened, loaded, scales_of(found.slots)))
            found = measure_profile(loaded, executor, count, reruns, margin, advance)
    charges = find_false_parts(found.claim, posted.claim) if posted is not None else []
    (require_scaled if scale else require_thresholds)(found)
    document: dict[str, Any] = {"digest": opened.put(found.encode()), "thresholds": [str(t) for t in found.thresholds]}
    if scale:
        document["task"] = loaded.digest
    # A submitter puts it into the terms, so that all parties rerun the same programs.
    document["reruns"] = rerun_programs_root(found.programs).hex()
    if posted is not None:
        document |= {"against": against, "equal": posted == found, "charges": [_charge_json(c) for c in charges]}
    if key is not None:
        envelope = opened.put(profile_signature.sign(found, key))
        document |= {"envelope": envelope, "signer": public_bytes(key).hex()}
    seen = _native(loaded, executor, found, compiled) if native and found.claim.portions else None
    if seen is not None:
        document |= {"native": opened.put(seen.encode()), "warnings": seen.warnings}
    code = DIFFERS if posted is not None and posted != found else FINE
    if as_json:
        print(json.dumps(document | {"profile": canonical_json.parse(found.encode(), "the profile")}, indent=2))
        return code
    _show(terminal, found, seen, document)
    if posted is not None:
        _show_charges(terminal, charges, posted == found)
    return code


def _digest(task: str) -> str:
    """A digest, given directly or in a file: the digest alone, or the `task.json` of `pol demo --out`."""
    if _HASH.fullmatch(task):
        return task.lower()
    try:
        text = Path(task).read_bytes()[:_FILE_LIMIT].decode(errors="replace").strip()
    except OSError as error:
        raise click.UsageError(f"{task} is neither a digest (64 hexadecimal digits) nor a file with one") from error
    if text.startswith("{"):
        document = canonical_json.parse(text.encode(), task).get("document")
        text = document if isinstance(document, str) else ""
    if not _HASH.fullmatch(text):
        raise ProtocolError(f"{task} holds no digest of a task (64 hexadecimal digits)")
    return text.lower()


def _native(task: LoadedTask, executor: ExecutorFactory, found: Profile, compiled: bool) -> NativeReruns:
    # The only part of this command that needs torch.
    import torch

    devices = tuple(f"cuda:{number}" for number in range(torch.cuda.device_count()))
    return rerun_natively(task, executor, found, settings_here(compiled, devices))


@contextmanager
def _progress(quiet: bool) -> Iterator[Callable[[int, int], None]]:
    with Progress(console=Console(stderr=True), transient=True, disable=quiet) as bar:
        row = bar.add_task("executing segments", total=None)
        yield lambda done, whole: bar.update(row, completed=done, total=whole)


def _show(terminal: Console, found: Profile, native: NativeReruns | None, document: dict[str, Any]) -> None:
    if found.claim.portions:
        terminal.print(profile_picture.distributions(found))
        terminal.print(profile_picture.thresholds(found, native))
        terminal.print(profile_picture.loosest(found))
        terminal.print(profile_picture.promises(found), soft_wrap=True)
    else:
        terminal.print("exact mode: nothing is profiled, the thresholds are zero and roots have to be equal")
    if native is not None:
        terminal.print(profile_picture.settings(native))
        for setting, reason in native.failed:
            terminal.print(f"not possible here: {setting.name}: {reason}")
        for warning in native.warnings:
            terminal.print(f"warning: {warning}", soft_wrap=True)
    for name in ("task", "digest", "reruns", "envelope", "signer", "native"):
        if name in document:
            terminal.print(f"{name:<9} {document[name]}", soft_wrap=True)


def _show_charges(terminal: Console, charges: list[ProfileCharge], equal: bool) -> None:
    for charge in charges:
        component = f", {charge.component.name.lower()}" if charge.component is not None else ""
        terminal.print(f"false: {charge.kind.name} {charge.index}{component}")
    if equal:
        terminal.print("the profile is the one that was measured here, byte for byte")
    elif not charges:
        terminal.print("nothing that can be challenged is false, but the documents differ")


def _charge_json(charge: ProfileCharge) -> dict[str, Any]:
    component = charge.component.name.lower() if charge.component is not None else None
    return {"kind": charge.kind.name, "index": charge.index, "component": component}
