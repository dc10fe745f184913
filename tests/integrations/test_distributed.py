"""Two processes on loopback: sharded and replicated state, read back on one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from cli_runner import Said, pol
from pol.training.record import learning_record, newest_checkpoint
from pol.training.storage import stored_checkpoint
from pol.training.storage.store import Store

pytestmark = pytest.mark.long

SCRIPT = Path(__file__).parent / "recorded_ranks.py"


def run(folder: Path, count: int) -> None:
    """What the processes assert themselves has held when this returns."""
    processes = [
        subprocess.Popen(
            [sys.executable, SCRIPT, folder],
            env={**os.environ, "WORLD_SIZE": str(count), "RANK": str(rank), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(count)
    ]
    outputs = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * count, "\n".join(outputs)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stores of both kinds of training on two processes."""
    folder = tmp_path_factory.mktemp("processes")
    run(folder, 2)
    return folder


@pytest.mark.slow
def test_three_processes(tmp_path: Path) -> None:
    """DistributedDataParallel arranges its buckets in the first pass, and they fix the order in which three numbers are
    added: exact only if that pass lies before the recorder begins, or if the order is defined by `pol.collectives`
    (docs/guides/integrations.md)."""
    run(tmp_path, 3)


def test_one_process_reads_what_two_have_stored(folder: Path) -> None:
    """Every array has been hashed against the document when this returns."""
    store = Store(f"file://{folder}/sharded_cut")
    found = newest_checkpoint.load_newest_checkpoint(store)
    assert found is not None
    assert found.components["parameters"]["0.weight"].shape == (1009, 8)
    assert found.components["average"]["state"]["value"].shape == (17, 9)
    assert [type(ranks) for ranks in found.components["random"]["ranks"]] == [dict, dict]
    saved = stored_checkpoint.load_document(store, found.record.checkpoints[-1].object)
    held = [len(file["pieces"]) for file in saved.data["files"]]
    assert len(held) == 2
    assert min(held) > 10
    assert pol("check", folder / "sharded_cut", "--sample", "1", "--seed", "3") == Said(0)


def test_the_processes_go_apart_in_what_is_their_own(folder: Path) -> None:
    found = newest_checkpoint.load_newest_checkpoint(Store(f"file://{folder}/sharded_cut"))
    assert found is not None
    first, second = found.components["random"]["ranks"]
    assert not torch.equal(first["torch"], second["torch"])
    one, other = (place["loaders"]["data"] for place in found.components["cursor"]["ranks"])
    assert (one["epoch"], one["batch"]) == (other["epoch"], other["batch"])
    assert one["seen"] != other["seen"]


def test_replicas_are_stored_once(folder: Path) -> None:
    store = Store(f"file://{folder}/replicas_cut")
    record = learning_record.load_record(store)
    saved = stored_checkpoint.load_document(store, record.checkpoints[-1].object)
    pieces = [piece for file in saved.data["files"] for piece in file["pieces"]]
    assert len([piece for piece in pieces if piece[0] == "parameters/0.weight"]) == 1
