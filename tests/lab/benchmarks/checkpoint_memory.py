"""Memory that checkpoints take: of commands that read them, and of a training that records and resumes.

`PYTHONPATH=tests python -m lab.benchmarks.checkpoint_memory WAY FOLDER` measures one way to record, in its own process.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from lab.benchmarks.figure import Figure, forget_peak, measured_apart, peak_memory
from pol.commitments.array import Array, ArrayType, ElementType, array_root
from pol.commitments.complete_state import StateEntry, complete_root, document_root
from pol.errors import OperationalError
from pol.training.record import learning_record
from pol.training.record.learning_record import GIVEN, LearningRecord, RecordedCheckpoint
from pol.training.storage import safetensors_format, stored_checkpoint
from pol.training.storage.store import Store
from pol.training.storage.stored_checkpoint import StoredCheckpoint

TENSOR = ArrayType(ElementType.F32, (1 << 11, 1 << 12))
"""32 MiB."""
SMALL = ArrayType(ElementType.F32, (1,))
COUNT = 32
SHARDS = 4
WAYS = ("waiting", "background", "updates", "resume")


def write_model(folder: Path, type_: ArrayType = TENSOR, mark: int = 0) -> Path:
    """A model of `COUNT` tensors in shards with an index, as Hugging Face writes it; holes on the disk. Its index.

    Each tensor is zero except for its first byte, which is ``mark``.
    """
    folder.mkdir()
    placed: dict[str, str] = {}
    for shard in range(SHARDS):
        file = f"model-{shard + 1:05}-of-{SHARDS:05}.safetensors"
        types = {f"layers.{number}.weight": type_ for number in range(shard, COUNT, SHARDS)}
        _write_holes(folder / file, types, mark)
        placed |= dict.fromkeys(types, file)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": COUNT * type_.nbytes}, "weight_map": placed}))
    return index


def write_record(folder: Path, type_: ArrayType = TENSOR, mark: int = 0) -> Path:
    """The learning record of one checkpoint with these tensors; holes on the disk. Its folder."""
    data = np.zeros(type_.nbytes, np.uint8)
    data[0] = mark
    root = array_root(Array(type_, data))
    names = sorted(f"parameters/layers.{number}.weight" for number in range(COUNT))
    document = b'{"value":{"dict":[]}}'
    entries = [StateEntry("parameters", None, document_root(document)), *(StateEntry(n, type_, root) for n in names)]
    saved = StoredCheckpoint(0, tuple(entries), {"parameters": document}, {"form": stored_checkpoint.FULL})
    store = Store(f"file://{folder}")
    file = stored_checkpoint.full_file(complete_root(entries))
    (folder / file[:2]).mkdir(parents=True)
    _write_holes(folder / file[:2] / file, dict.fromkeys(names, type_), mark)
    checkpoint = RecordedCheckpoint(0, saved.root, store.put(saved.encode()))
    learning_record.publish(store, LearningRecord(bytes(32), GIVEN, 1, (checkpoint,)))
    return folder


def _write_holes(path: Path, types: Mapping[str, ArrayType], mark: int) -> None:
    with path.open("wb") as file:
        head = safetensors_format.header(types)
        file.write(head)
        begin = len(head)
        for type_ in types.values():
            file.seek(begin)
            file.write(bytes([mark]))
            begin += type_.nbytes
        file.truncate(safetensors_format.size(types))


def memory_figures() -> dict[str, Figure]:
    """Peak memory of commands beyond that on as many numbers as tensors, and of recording beyond the training's."""
    state = COUNT * TENSOR.nbytes
    figures = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for size, type_ in (("small", SMALL), ("great", TENSOR)):
            (folder / size).mkdir()
            for mark in (0, 1):
                write_record(folder / size / f"record{mark}", type_, mark)
            index = write_model(folder / size / "model", type_)
            _peak_of("commit", index, "--out", folder / size / "commitment.json")
        commands: dict[str, list[tuple[str, ...]]] = {
            "commit": [("commit", "model"), ("commit", "record0")],
            "check": [("check", "model", "commitment.json"), ("check", "record0")],
            "diff": [("diff", "record0", "record1"), ("diff", "model", "record1")],
        }
        for verb, calls in commands.items():
            beyond = []
            for _, *paths in calls:
                peaks = {size: _peak_of(verb, *(folder / size / path for path in paths)) for size in ("small", "great")}
                beyond.append(peaks["great"] - peaks["small"])
            most = max(beyond)
            figures[f"{verb}_memory"] = Figure(most / 2**20, "MiB", f"a state of {state >> 20} MiB", most / state)
        for way in WAYS:
            found = recording(way, folder / "recorded")
            figures[f"record_memory_{way}"] = Figure(
                found["bytes"] / 2**20,
                "MiB",
                f"a state of {found['state'] / 2**20:.0f} MiB",
                found["bytes"] / found["state"],
            )
    return figures


def _peak_of(*arguments: str | Path) -> int:
    """Bytes that `pol` with these arguments holds at most."""
    command = [sys.executable, "-m", "pol.cli.main", *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise OperationalError(f"pol {' '.join(map(str, arguments))} failed")
    return usage.ru_maxrss * 1024


def recording(way: str, folder: Path) -> dict[str, float]:
    """Bytes that one checkpoint takes beyond the training, and those of the state, in a process of its own."""
    found: dict[str, float] = json.loads(measured_apart("lab.benchmarks.checkpoint_memory", way, str(folder / way)))
    return found


def _record(way: str, folder: str) -> dict[str, float]:
    import torch

    from pol.training import Checkpoints
    from pol.training.recorder.recorder import Recorder

    torch.set_num_threads(1)
    model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024, bias=False) for _ in range(40)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step() -> None:
        model(torch.ones(1, 1024)).sum().backward()
        optimizer.step()

    def recorder() -> Recorder:
        options = Checkpoints(background=way == "background", updates=way == "updates")
        return Recorder(f"file://{folder}", model, optimizer, every=1, checkpoints=options)

    step()
    if way == "resume":
        first = recorder()
        first.resume()
        first.close()
    forget_peak()
    step()
    before = peak_memory()  # the training's own
    if way == "resume":  # which makes no step: what a step takes for a moment is free by then
        forget_peak()
        before = peak_memory()
    recording_ = recorder()
    recording_.resume()
    if way != "resume":
        step()
        recording_.step()
    recording_.close()
    state = 2 * sum(parameter.nbytes for parameter in model.parameters())
    return {"bytes": peak_memory() - before, "state": state}


if __name__ == "__main__":
    print(json.dumps(_record(*sys.argv[1:])))
