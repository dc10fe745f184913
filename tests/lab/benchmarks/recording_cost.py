"""What recording costs: time beside other ways to save, throughput beside other hashes and a copy, memory."""

import hashlib
import statistics
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lab.benchmarks.figure import Figure
from lab.benchmarks.measured_models import GPT, GPTSize, next_token_loss
from pol.commitments.array import Array, ArrayType, ElementType, array_root
from pol.training import Checkpoints
from pol.training.recorder.recorder import Recorder
from pol.training.storage import stored_checkpoint
from pol.training.storage.store import Store

SIZE = GPTSize(vocabulary=8192, block=256, layers=6, heads=6, width=384)
BATCH = 4
INTERVAL = 50
"""Steps between checkpoints for which the cost is stated."""
BLOCK = 8
"""Steps that are timed with and without a checkpoint among them: enough for it to be stored beside them."""


class _Training:
    """A GPT in training, a block of steps at a time."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = GPT(SIZE)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        self.tokens = torch.randint(0, SIZE.vocabulary, (BATCH, SIZE.block + 1))

    def run(self, steps: int, after: Callable[[], None] = lambda: None) -> None:
        for _ in range(steps):
            self.optimizer.zero_grad()
            next_token_loss(self.model(self.tokens[:, :-1]), self.tokens[:, 1:]).backward()  # type: ignore[no-untyped-call]  # torch declares no types
            self.optimizer.step()
            after()

    def state(self) -> dict[str, Any]:
        return {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}


def overheads(rounds: int = 3) -> dict[str, float]:
    """Share of time that one checkpoint in 50 steps adds, for each way to save.

    What a checkpoint adds to a short block of steps, which is waited for to its end, over the time of 50 steps: in
    long blocks the machine's own unsteadiness would be greater than what is looked for. ``noise`` is what a second
    block without a checkpoint seems to add.
    """
    training = _Training()
    training.run(2)
    with tempfile.TemporaryDirectory() as folder:
        ways = _ways(training, Path(folder))
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, block in ways.items():
                began = time.perf_counter()
                block()
                seconds[name].append(time.perf_counter() - began)
    # Blocks of a round follow each other closely, so that a slow minute of the machine meets all of them.
    plain = seconds.pop("plain")
    interval = statistics.median(plain) / BLOCK * INTERVAL
    return {
        name: statistics.median(mine - base for mine, base in zip(times, plain, strict=True)) / interval
        for name, times in seconds.items()
    }


def _ways(training: _Training, folder: Path) -> Mapping[str, Callable[[], None]]:
    recorders = {
        way: Recorder(
            f"file://{folder}/{way}",
            training.model,
            training.optimizer,
            every=BLOCK,
            checkpoints=Checkpoints(background=way == "recorder"),
        )
        for way in ("recorder", "recorder_waiting")
    }
    for recorder in recorders.values():
        recorder.resume()
        # So the checkpoint falls into the middle of a block, with steps after it beside which it is stored.
        for _ in range(BLOCK // 2):
            recorder.step()

    def recorded(recorder: Recorder) -> None:
        training.run(BLOCK, recorder.step)
        recorder.flush()

    def torch_saved() -> None:
        training.run(BLOCK // 2)
        torch.save(training.state(), folder / "state.pt")
        training.run(BLOCK - BLOCK // 2)

    return {
        "plain": lambda: training.run(BLOCK),
        "noise": lambda: training.run(BLOCK),
        "recorder": lambda: recorded(recorders["recorder"]),
        "recorder_waiting": lambda: recorded(recorders["recorder_waiting"]),
        "torch_save": torch_saved,
    }


def hashing(size: int = 1 << 28, rounds: int = 5) -> dict[str, float]:
    """GB/s from tensor data to a root on one and two cores, and of other hashes of one stream, one after another."""
    from Crypto.Hash import keccak

    data = np.random.default_rng(0).integers(0, 256, size, dtype=np.uint8)
    array = Array(ArrayType(ElementType.F32, (size // 4,)), data)
    calls: dict[str, Callable[[], object]] = {
        "commit_1": lambda: array_root(array, 1),
        "commit_2": lambda: array_root(array, 2),
        "sha256": lambda: hashlib.sha256(data.data).digest(),
        "keccak": lambda: keccak.new(digest_bits=256, data=data.data).digest(),
    }
    with suppress(ImportError):  # a peer, not a dependency
        import blake3

        calls["blake3"] = lambda: blake3.blake3(data.data, max_threads=1).digest()
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - began)
    return {name: size / statistics.median(times) / 1e9 for name, times in seconds.items()}


def update_bytes(checkpoints: int = 30, every: int = 10) -> dict[str, float]:
    """Bytes of updates over bytes of the same arrays in full: a GPT trained with AdamW, a checkpoint every ten steps.

    By component, and ``all``; checkpoints that are stored in full, every tenth, count as they are.
    """
    torch.manual_seed(0)
    model = GPT(GPTSize(vocabulary=512, block=64, layers=2, heads=4, width=128))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    store = Store(f"memory://pol-bench-{uuid.uuid4().hex}")
    recorder = Recorder(store, model, optimizer, every=every, checkpoints=Checkpoints(background=False, updates=True))
    recorder.resume()
    for _ in range((checkpoints - 1) * every):
        # A language in which each token follows from the one before, mostly: there is something to learn.
        first = torch.randint(0, 512, (8, 1))
        tokens = (first * 5 ** torch.arange(65) + torch.randint(0, 2, (8, 65))) % 512
        optimizer.zero_grad()
        next_token_loss(model(tokens[:, :-1]), tokens[:, 1:]).backward()  # type: ignore[no-untyped-call]  # torch declares no types
        optimizer.step()
        recorder.step()
    stored, full = Counter[str](), Counter[str]()
    for checkpoint in recorder.close().checkpoints:
        saved = stored_checkpoint.load_document(store, checkpoint.object)
        for name, type_ in saved.types.items():
            full[name.split("/")[0]] += type_.nbytes
            if saved.data["form"] == stored_checkpoint.FULL:
                stored[name.split("/")[0]] += type_.nbytes
        for part in saved.data.get("arrays", []):
            stored[part["name"].split("/")[0]] += part["bytes"]
    shares = {name: stored[name] / full[name] for name in full if full[name]}
    return {"all": stored.total() / full.total(), **shares}


def record_figures() -> dict[str, Figure]:
    """Shares of time, throughput, and bytes of updates."""
    speeds = hashing()
    ours = speeds["commit_1"]
    shares = overheads()
    updates = update_bytes()
    return {
        "recorder_overhead": Figure(shares["recorder"], "of the time of 50 steps"),
        **{
            f"{name}_overhead": Figure(share, "of the time of 50 steps")
            for name, share in shares.items()
            if name != "recorder"
        },
        "commit_throughput": Figure(ours, "GB/s, one core"),
        "commit_throughput_two_cores": Figure(speeds["commit_2"], "GB/s", "one core", speeds["commit_2"] / ours),
        **{
            f"commit_vs_{peer}": Figure(ours / speeds[peer], "times", f"{peer}, one core", ours / speeds[peer])
            for peer in ("keccak", "sha256", "blake3")
            if peer in speeds
        },
        "updates_vs_full": Figure(updates.pop("all"), "of the bytes of full checkpoints"),
        **{
            f"updates_vs_full_{component}": Figure(share, "of the bytes of full checkpoints")
            for component, share in updates.items()
        },
    }
