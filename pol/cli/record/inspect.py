"""``pol inspect PATH``: the content of a store, a document or a file, in plain values."""

from __future__ import annotations

import itertools
import json
import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.tree import Tree as RichTree

from pol.cli.examples import example
from pol.cli.file_output import FINE, SHOWN_ROWS, console, json_option, read_file, shown_bytes, unsupported_is_unseen
from pol.commitments import canonical_json
from pol.commitments.complete_state import StateEntry
from pol.errors import OperationalError, ProtocolError, reason_of
from pol.training.record.learning_record import LearningRecord
from pol.training.record.recorded_run import RecordedRun, is_run, open_run, open_store, split_step
from pol.training.state import readable
from pol.training.storage.commitment import Commitment
from pol.training.storage.tensor_folder import ENDING, INDEX, open_tensors
from pol.training.task.learning_proof import LearningProof
from pol.training.task.task_document import TaskDocument

DOCUMENT_LIMIT = 1 << 28
FEW = 12


@click.command(epilog=example("pol inspect runs/first@20"))
@click.argument("path")
@click.argument("digest", required=False)
@json_option
@unsupported_is_unseen
def inspect(path: str, digest: str | None, as_json: bool) -> int:
    """Say what PATH holds: a store (its learning record; RECORD@STEP: a checkpoint; or the object DIGEST), or a file.

    Knows learning records, checkpoints, tasks, learning proofs, commitments and safetensors files. It shows what they
    say; `pol check` checks it.
    """
    found = describe(path, digest)
    if as_json:
        print(json.dumps(found, indent=2))
        return FINE
    terminal = console()
    for name, value in found.items():
        _show(terminal, name, value)
    return FINE


def describe(path: str, digest: str | None = None) -> dict[str, Any]:
    """The content of a store, document or file, as plain values. Raises UnsupportedError: a pickled file."""
    if digest is not None:
        if not re.fullmatch(r"[0-9a-f]{64}", digest):
            raise click.UsageError(f"{digest!r} isn't a digest: 64 lower-case hexadecimal digits")
        return _document(open_store(path).get(digest, limit=DOCUMENT_LIMIT), f"the object {digest}")
    place, step = split_step(path)
    if is_run(place):
        run = open_run(place)
        return _record(run.record, run) if step is None else _checkpoint(run, step)
    file = Path(path)
    if file.is_file() and not file.name.endswith((ENDING, INDEX)) and _is_json(file):
        return _document(read_file(file, limit=DOCUMENT_LIMIT), str(file))
    try:
        tensors = open_tensors(file)
    except OperationalError as error:
        if not file.is_dir():
            raise
        raise OperationalError(f"{error}; if it is a store of tasks and proofs, give the digest of one") from error
    return {
        "kind": "safetensors",
        "bytes": sum(type_.nbytes for type_ in tensors.types.values()),
        "tensors": {n: f"{t.element.name} {list(t.shape)}" for n, t in tensors.types.items()},
        "left_out": list(tensors.left_out),
    }


def _document(data: bytes, what: str) -> dict[str, Any]:
    document = canonical_json.parse(data, what)
    kind = document.get("kind") if isinstance(document, dict) else None
    if kind == "pol/learning-record":
        return _record(LearningRecord.decode(data), None)
    if kind == "pol/checkpoint":
        from pol.training.storage.stored_checkpoint import StoredCheckpoint

        return _saved(StoredCheckpoint.decode(data))
    if kind == "pol/task":
        return _task(TaskDocument.decode(data))
    if kind == "pol/learning-proof":
        return dict(canonical_json.parse(LearningProof.decode(data).encode(), "the proof"))
    if kind == "pol/commitment":
        commitment = Commitment.decode(data)
        return {"kind": kind, "root": commitment.root.hex(), "components": _components(commitment.entries, {})}
    raise ProtocolError(
        f"{what} is no document that pol writes: expected a learning record, checkpoint, task, learning proof or "
        "commitment"
    )


def _record(record: LearningRecord, run: RecordedRun | None) -> dict[str, Any]:
    found: dict[str, Any] = {
        "kind": "pol/learning-record",
        "run": record.run.hex(),
        "start": dict(record.start),
        "interval": record.interval,
        "log_root": record.log_root.hex() if record.checkpoints else "",
        "signer": "" if record.signer is None else record.signer.hex(),
        "signed_heads": [head.size for head in record.heads],
        "checkpoints": [{"step": c.step, "root": c.root.hex(), "document": c.object} for c in record.checkpoints],
    }
    if run is not None and record.checkpoints:
        found["newest"] = _checkpoint(run, None)
    return found


def _checkpoint(run: RecordedRun, step: int | None) -> dict[str, Any]:
    checkpoint = run.checkpoint(step)
    before = [other for other in run.record.checkpoints if other.step < checkpoint.step][-1:]
    changed = [change for _, change in run.changes([*before, checkpoint])]
    return {**_saved(run.document(checkpoint)), "changed": changed}


def _saved(saved: Any) -> dict[str, Any]:
    return {
        "kind": "pol/checkpoint",
        "step": saved.step,
        "root": saved.root.hex(),
        "stored": dict(saved.data),
        "bytes": sum(type_.nbytes for type_ in saved.types.values()),
        "components": _components(saved.entries, saved.documents),
        "values": {
            name: tree
            for name, data in saved.documents.items()
            if (tree := readable.without_tensors(readable.of_document(name, data))) is not None
        },
    }


def _components(entries: tuple[StateEntry, ...], documents: Mapping[str, bytes]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = defaultdict(lambda: {"tensors": 0, "bytes": 0, "document": 0})
    for entry in entries:
        component = found[entry.name.partition("/")[0]]
        if entry.type is not None:
            component["tensors"] += 1
            component["bytes"] += entry.type.nbytes
    for name, data in documents.items():
        found[name]["document"] = len(data)
    return dict(sorted(found.items()))


def _task(task: TaskDocument) -> dict[str, Any]:
    return {**canonical_json.parse(task.encode(), "the task"), "segments": task.segments}


def _is_json(file: Path) -> bool:
    """Whether a file is a JSON document, by its name or its first byte."""
    try:
        with file.open("rb") as opened:
            return file.suffix == ".json" or opened.read(1) in (b"{", b"[")
    except OSError as error:
        raise OperationalError(f"can't read {file}: {reason_of(error)}") from error


def _show(terminal: Console, name: str, value: Any) -> None:
    if name == "components":
        table = Table("component", "tensors", "in tensors", "document")
        for component, sizes in value.items():
            row = [str(sizes["tensors"]), shown_bytes(sizes["bytes"]), shown_bytes(sizes["document"])]
            table.add_row(component, *row)
        terminal.print(table)
    elif name == "checkpoints":
        table = Table("step", "root", "document")
        for item in value[: FEW // 2] + value[max(FEW // 2, len(value) - FEW // 2) :]:
            root = item.get("root") or item.get("state_root", "")
            table.add_row(str(item["step"]), root, item.get("document") or item.get("object", ""))
        terminal.print(f"{len(value)} checkpoints" + (", the first and the last:" if len(value) > FEW else ":"))
        terminal.print(table)
    elif name in ("newest", "values") or isinstance(value, dict):
        if name == "newest":
            terminal.print("newest checkpoint:")
            for inner, below in value.items():
                _show(terminal, inner, below)
            return
        tree = RichTree(name)
        _grow(tree, value)
        terminal.print(tree)
    elif name == "bytes":
        terminal.print(f"{'size':<12} {shown_bytes(value)}")
    elif value not in ("", []):
        shown = ", ".join(map(str, value)) if isinstance(value, list) else value
        terminal.print(f"{name:<12} {shown}", soft_wrap=True)


def _grow(tree: RichTree, value: Mapping[str, Any]) -> None:
    for name, below in itertools.islice(value.items(), SHOWN_ROWS):
        if isinstance(below, dict):
            _grow(tree.add(_plain(str(name))), below)
        else:
            tree.add(_plain(f"{name}: {_short(str(below))}"))
    if len(value) > SHOWN_ROWS:
        tree.add(_plain(f"and {len(value) - SHOWN_ROWS} more: --json has all"))


def _plain(text: str) -> Any:
    from rich.text import Text

    return Text(text)


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}..."
