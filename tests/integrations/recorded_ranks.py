"""A training on some processes that is recorded, cut and resumed; test_distributed.py runs one per rank."""

import json
import os
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Shard, distribute_tensor
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from pol.collectives import IntegerGradients, make_reproducible
from pol.errors import OperationalError, ProtocolError
from pol.integrations.distributed import DistributedRecorder
from pol.integrations.distributed_state import gather
from pol.training import Checkpoints
from pol.training.record import learning_record, newest_checkpoint
from pol.training.record.learning_record import LearningRecord
from pol.training.state import components
from pol.training.storage import stored_checkpoint
from pol.training.storage.store import Store

STEPS = 12
Exchange = Literal["ordered", "integer"]


class Average:
    """A part of its own: the average of a weight, spread by columns or by rows."""

    def __init__(self, weight: Tensor, dim: int = 1):
        self.weight = weight
        self.cut = [Shard(dim)]
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        self.value = distribute_tensor(torch.zeros(17, 9), mesh, self.cut)

    def update(self) -> None:
        full = self.weight.full_tensor() if isinstance(self.weight, DTensor) else self.weight
        self.value = 0.9 * self.value + 0.1 * distribute_tensor(
            full.detach().mean() * torch.ones(17, 9).cumsum(1), self.value.device_mesh, self.cut
        )

    def state_dict(self) -> dict[str, Tensor]:
        return {"value": self.value}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        assert list(state["value"].placements) == self.cut
        self.value = state["value"]


def train(
    store: str, sharded: bool, stop: int | None = None, warm: bool = False, exchange: Exchange | None = None
) -> LearningRecord | None:
    """Dropout with generators that differ, a shuffled sampler, a schedule; rows that no number of processes divides.

    `warm`: a pass before the recorder begins, in which DistributedDataParallel arranges its buckets. `exchange`:
    gradients are averaged with defined bits.
    """
    torch.manual_seed(0)
    layers = [nn.Linear(8, 1009), nn.Dropout(0.2), nn.Linear(1009, 33), nn.ReLU(), nn.Linear(33, 1)]
    model: nn.Module = nn.Sequential(*layers)
    own: dict[str, IntegerGradients] = {}
    if sharded:
        for layer in (model[0], model[2], model[4]):
            fully_shard(layer)
        fully_shard(model)
    else:
        model = DistributedDataParallel(model)
        if exchange is not None:
            averages = make_reproducible(model, exchange, feedback=exchange == "integer")
            if isinstance(averages, IntegerGradients):
                own["rests"] = averages
    first = next(iter(model.parameters()))
    average = Average(first, dim=0 if sharded else 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    torch.manual_seed(100 + dist.get_rank())
    x = torch.randn(80, 8, generator=torch.Generator().manual_seed(1))
    data = TensorDataset(x, x.sum(1, keepdim=True))
    loader = DataLoader(data, batch_size=10, sampler=DistributedSampler(data))

    if warm:
        model(x[:2]).sum().backward()
        optimizer.zero_grad()
    parts = {"average": average, **own}
    recorder = DistributedRecorder(
        store, model, optimizer, every=3, scheduler=scheduler, parts=parts, per_process=tuple(own)
    )
    epoch = recorder.resume()
    # Each process has read the first one's file and its own, unless a tensor is cut otherwise than by rows.
    assert recorder.state.by_rows == (sharded and recorder.steps > 0)
    for _ in range(epoch, -(-STEPS // len(loader))):
        for inputs, targets in recorder.batches(loader):
            loss = ((model(inputs) - targets) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            average.update()
            recorder.step()
            if recorder.steps == stop:
                return None
            if recorder.steps == 9:
                recorder.close()
                whole = components.encode(dict(gathered(recorder)))
                assert whole.root == recorder.record.checkpoints[-1].root, "the root isn't that of the whole state"
    return recorder.close()


def gathered(recorder: DistributedRecorder) -> Iterator[tuple[str, object]]:
    """The complete state as one process would have it, every tensor whole."""
    for name, value in recorder.state.components().items():
        if name in recorder.state.per_process:
            everywhere = gather(value, None)
            yield name, {"ranks": [other["ranks"][rank] for rank, other in enumerate(everywhere)]}
        else:
            yield name, full(value)
    yield "progress", {"steps": recorder.steps}


def full(value: object) -> object:
    if isinstance(value, DTensor):
        return value.full_tensor()
    if isinstance(value, dict):
        return {key: full(item) for key, item in value.items()}
    if isinstance(value, list):
        return [full(item) for item in value]
    return value


class Failing(Store):
    """A disk that is full, on one process only."""

    def put_file(self, *arguments: object, **named: object) -> None:
        raise OperationalError("no space left")


def cut(folder: str, kind: str, sharded: bool, warm: bool = False, exchange: Exchange | None = None) -> list[bool]:
    """Cut in the middle of an epoch and resumed: for each checkpoint, whether its root is the uninterrupted run's."""
    whole = train(f"file://{folder}/{kind}_whole", sharded, None, warm, exchange)
    assert train(f"file://{folder}/{kind}_cut", sharded, 5, warm, exchange) is None
    resumed = train(f"file://{folder}/{kind}_cut", sharded, None, warm, exchange)
    assert whole is not None
    assert resumed is not None
    assert [c.step for c in resumed.checkpoints] == [0, 3, 6, 9, 12]
    assert len({c.root for c in resumed.checkpoints}) == 5
    return [a.root == b.root for a, b in zip(whole.checkpoints, resumed.checkpoints, strict=True)]


def two(folder: str, rank: int) -> None:
    assert cut(folder, "sharded", sharded=True) == [True] * 5
    assert cut(folder, "replicas", sharded=False) == [True] * 5
    url = f"file://{folder}/failing"
    recorder = DistributedRecorder(Failing(url) if rank else Store(url), fully_shard(nn.Linear(8, 8)))
    with pytest.raises(OperationalError, match="process 1: no space left"):
        recorder.resume()  # on both: or one would wait for ever
    assert newest_checkpoint.load_newest_checkpoint(Store(url)) is None


def three(folder: str) -> None:
    assert cut(folder, "sharded", sharded=True) == [True] * 5
    assert cut(folder, "warm", sharded=False, warm=True) == [True] * 5
    assert cut(folder, "ordered", sharded=False, exchange="ordered") == [True] * 5
    assert cut(folder, "integers", sharded=False, exchange="integer") == [True] * 5
    assert cut(folder, "cold", sharded=False) == [True, True, False, False, False]


class Forgetful(Average):
    """Takes its state back in its own way."""

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        self.value = state["value"] * 2


def forgetting(folder: str) -> None:
    url = f"file://{folder}/forgetting"
    layer = fully_shard(nn.Linear(8, 9))
    part = Forgetful(layer.weight)
    part.value = part.value + 1
    DistributedRecorder(url, layer, parts={"average": part}).resume()
    recorder = DistributedRecorder(url, layer, parts={"average": Forgetful(layer.weight)})
    with pytest.raises(ProtocolError, match="average/state/value isn't what the checkpoint of step 0 commits to"):
        recorder.resume()


def corrupt(folder: str, rank: int) -> None:
    """The rows that only one process reads."""
    store = Store(f"file://{folder}/corrupt")
    layer = fully_shard(nn.Linear(8, 9))
    DistributedRecorder(store, layer).resume()
    if rank == 1:
        saved = stored_checkpoint.load_document(store, learning_record.load_record(store).checkpoints[0].object)
        (path,) = Path(f"{folder}/corrupt").rglob(list(stored_checkpoint.sizes(saved))[1])
        data = bytearray(path.read_bytes())
        begin = 8 + int.from_bytes(data[:8], "little")
        data[begin + json.loads(data[8:begin])["parameters/weight"]["data_offsets"][0]] ^= 1
        path.write_bytes(data)
    dist.barrier()
    with pytest.raises(ProtocolError, match="parameters/weight isn't what the checkpoint of step 0 commits to"):
        DistributedRecorder(store, layer).resume()


def branched(
    store: str, cut: int = 0, *, by_hand: bool, clears: str = "", none: bool = False, kept: bool = False, apart: int = 1
) -> bytes | None:
    """The last root of steps that use one of two sharded heads; gradients are averaged every ``apart`` steps."""
    torch.manual_seed(0)
    layers: list[Any] = [fully_shard(nn.Linear(4, 4)) for _ in range(2)]
    heads: Any = nn.ModuleList(layers)
    optimizer = torch.optim.SGD(heads.parameters(), 0.1, momentum=0.9, weight_decay=0.1)
    recorder = DistributedRecorder(store, heads, optimizer, every=2, checkpoints=Checkpoints(gradients=kept))
    epoch, loader = recorder.resume(), DataLoader(TensorDataset(torch.zeros(12, 1)), batch_size=2)
    batches = (batch for _ in range(epoch, 2) for batch in recorder.batches(loader))
    for _ in iter(lambda: recorder.steps < 12, False) if by_hand else batches:
        head = heads[recorder.steps % 5 == 2]
        if clears == "top":
            optimizer.zero_grad(none)
        head.set_requires_gradient_sync(recorder.steps % apart == apart - 1)
        head(torch.randn(3, 4)).square().mean().backward()
        optimizer.step()
        recorder.step()
        if recorder.steps == cut:
            return None
        if clears == "end":
            optimizer.zero_grad(none)
    return recorder.close().checkpoints[-1].root


def sharded_gradients(folder: str, by_hand: bool) -> None:
    """That live over a checkpoint: they are recorded, put back as what the loop leaves, or refused."""
    url = f"file://{folder}/gradients-{by_hand}"
    rows: list[dict[str, Any]] = [
        {"clears": clears, "none": none} for clears in ("top", "end") for none in (True, False)
    ]
    for number, how in enumerate([*rows, {"kept": True}]):
        assert branched(f"{url}{number}-cut", 3, by_hand=by_hand, **how) is None
        assert branched(f"{url}{number}-cut", by_hand=by_hand, **how) == branched(
            f"{url}{number}", by_hand=by_hand, **how
        )
    with pytest.raises(ProtocolError, match=r"gradient of 0.weight at the checkpoint is used in the step behind"):
        branched(f"{url}-used", by_hand=by_hand)
    with pytest.raises(ProtocolError, match="module 0 holds gradients that aren't averaged at a checkpoint"):
        branched(f"{url}-apart", by_hand=by_hand, clears="top", apart=3)


def main(folder: str, rank: int, count: int) -> None:
    meet = f"file://{folder}/meet"
    dist.init_process_group("gloo", init_method=meet, rank=rank, world_size=count, timeout=timedelta(seconds=900))
    if count == 2:
        two(folder, rank)
        forgetting(folder)
        corrupt(folder, rank)
        sharded_gradients(folder, by_hand=False)
        sharded_gradients(folder, by_hand=True)
    else:
        three(folder)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))
    sys.stdout.flush()
    os._exit(0)  # what is asserted has held; torch may abort when it frees sharded tensors and gloo's threads
