"""What a recorded training goes on from, down any number of levels; what is forged is noticed at every level."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import rfc8785
import torch
from torch import Tensor, nn

from pol import Recorder
from pol.errors import OperationalError, ProtocolError, UnsupportedError
from pol.integrations.distributed import DistributedRecorder
from pol.training import Checkpoints
from pol.training.lineage.base_training import StartOfRecord, from_initialization, from_record
from pol.training.lineage.lineage import verify_lineage
from pol.training.record import learning_record
from pol.training.record.learning_record import LearningRecord
from pol.training.storage.store import Store
from pol.verification.runs.record_check import CheckOutcome, check_record


class Model(nn.Module):
    """A body with running statistics and a head of any size."""

    def __init__(self, classes: int = 3) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 70), nn.BatchNorm1d(70))
        self.head = nn.Linear(70, classes)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.head(self.body(x))
        return scores


def build() -> Model:
    return Model()


def train(
    store: Path, model: nn.Module, start: StartOfRecord | None = None, steps: int = 4, updates: bool = False
) -> LearningRecord:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    options = {"every": 2, "start": start, "checkpoints": Checkpoints(background=False, updates=updates)}
    with Recorder(f"file://{store}", model, optimizer, **options) as recorder:  # type: ignore[arg-type]  # options of any type
        recorder.resume()
        for _ in range(steps):
            optimizer.zero_grad()
            model(torch.randn(6, 4)).square().mean().backward()
            optimizer.step()
            recorder.step()
        return recorder.close()


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[LearningRecord]]:
    """Three trainings: drawn weights, a fine-tune with another head, a fine-tune of that from its checkpoint 1."""
    folder = tmp_path_factory.mktemp("chain")
    torch.manual_seed(0)
    first = train(folder / "first", Model(), from_initialization(build, 7))
    other_head = from_record(f"file://{folder}/first", new=["head.weight", "head.bias"])
    second = train(folder / "second", Model(5), other_head)
    assert sorted(other_head.new) == ["head.bias", "head.weight"]
    third = train(folder / "third", Model(5), from_record(f"file://{folder}/second", index=1))
    return folder, [first, second, third]


def store(chain: tuple[Path, list[LearningRecord]], name: str = "third") -> Store:
    return Store(f"file://{chain[0]}/{name}")


def test_three_levels(chain: tuple[Path, list[LearningRecord]]) -> None:
    """The last one's store alone is enough, and of the bases it holds no tensors."""
    own = store(chain)
    top, middle, bottom = verify_lineage(own)
    first, second, third = (Store("memory://digests").put(record.encode()) for record in chain[1])
    assert [level.kind for level in (top, middle, bottom)] == ["record", "record", "initialisation"]
    assert [level.document for level in (top, middle, bottom)] == [third, second, first]
    assert [level.base for level in (top, middle, bottom)] == [second, first, None]
    assert top.rest == bottom.rest == ()
    assert middle.rest == ("parameters/head.bias", "parameters/head.weight")
    assert "buffers/body.1.num_batches_tracked" in bottom.drawn
    assert verify_lineage(own, second) == (middle, bottom)
    starts = [finding for finding in check_record(own) if finding.check == "start"]
    assert [(f.about.split(",")[0], f.outcome) for f in starts] == [
        (kind, CheckOutcome.GOOD) for kind in ("record", "record", "initialisation")
    ]
    assert len(list((chain[0] / "third").rglob("*.safetensors"))) == len(chain[1][2].checkpoints)


def test_the_model_begins_with_the_base(chain: tuple[Path, list[LearningRecord]], tmp_path: Path) -> None:
    model = Model(5)
    before = model.head.weight.detach().clone()
    record = train(tmp_path, model, from_record(store(chain, "first"), new=["head.weight", "head.bias"]), steps=0)
    ends = json.loads(store(chain, "first").get(chain[1][0].checkpoints[-1].object))
    begins = json.loads(Store(f"file://{tmp_path}").get(record.checkpoints[0].object))
    roots = {array["name"]: array["root"] for array in ends["arrays"]}
    own = {array["name"]: array["root"] for array in begins["arrays"]}
    assert own["parameters/body.0.weight"] == roots["parameters/body.0.weight"]
    assert own["buffers/body.1.running_mean"] == roots["buffers/body.1.running_mean"]
    assert torch.equal(model.head.weight, before)


class Adapted(nn.Module):
    """A base that stands under another name, and a new part beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.base, self.adapter = Model(), nn.Linear(4, 3, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.base(x) + self.adapter(x)
        return scores


def test_an_adapter_around_a_base_that_was_stored_as_updates(tmp_path: Path) -> None:
    base = Model()
    train(tmp_path / "base", base, updates=True)
    start = from_record(f"file://{tmp_path}/base", rename=lambda name: name.removeprefix("base."))
    model = Adapted()
    train(tmp_path / "adapted", model, start, steps=0)
    assert start.new == ["adapter.weight"]
    assert all(torch.equal(value, model.base.state_dict()[name]) for name, value in base.state_dict().items())
    top, bottom = verify_lineage(Store(f"file://{tmp_path}/adapted"))
    assert top.taken["parameters/base.head.bias"] == "parameters/head.bias"
    assert (top.rest, bottom.kind) == (("parameters/adapter.weight",), "given")


def forged(chain: tuple[Path, list[LearningRecord]], change: Callable[[Any], object], level: int = 2) -> str:
    """The digest of a record of the chain with changes, in the store of the last."""
    document = json.loads(chain[1][level].encode())
    change(document)
    return store(chain).put(rfc8785.dumps(document))


WEIGHT, BIAS = "parameters/body.0.weight", "parameters/body.0.bias"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda s: s["arrays"].update({BIAS: "buffers/body.1.running_mean"}), "isn't buffers/body.1.running_mean"),
        (lambda s: s["arrays"].update({WEIGHT: BIAS}), r"F32 \(70, 4\), parameters/body.0.bias of the base is F32"),
        (lambda s: s["arrays"].update({WEIGHT: "parameters/none"}), "lacks it"),
        (lambda s: s["arrays"].update({"parameters/none": WEIGHT}), "lacks it"),
        (lambda s: s["arrays"].update({"random/torch": "random/torch"}), "lacks it"),
        (lambda s: s.update(index=0), "of the base: its root"),
        (lambda s: s.update(index=9), "no checkpoint 9"),
        (lambda s: s.update(arrays={}), "at least one array"),
        (lambda s: s.update(kind="borrowed"), "is unknown"),
        (lambda s: s.pop("index"), "members"),
    ],
)
def test_a_false_start_is_noticed(
    chain: tuple[Path, list[LearningRecord]], change: Callable[[Any], object], problem: str
) -> None:
    with pytest.raises(ProtocolError, match=problem):
        verify_lineage(store(chain), forged(chain, lambda document: change(document["start"])))


def test_a_base_of_another_training_is_noticed(chain: tuple[Path, list[LearningRecord]], tmp_path: Path) -> None:
    """A record that is whole in itself, but not the one whose weights were taken."""
    torch.manual_seed(5)
    other = train(tmp_path, Model(5))
    own, foreign = store(chain), Store(f"file://{tmp_path}")
    for checkpoint in other.checkpoints:
        own.put(foreign.get(checkpoint.object))
    base = own.put(other.encode())
    with pytest.raises(ProtocolError, match="of the base: its root"):
        verify_lineage(own, forged(chain, lambda document: document["start"].update(record=base)))


def test_a_forged_base_is_noticed(chain: tuple[Path, list[LearningRecord]]) -> None:
    """Another checkpoint under the base's log, and a log that was made to fit: the checkpoint's own root is left."""
    own = store(chain)
    document = json.loads(chain[1][1].encode())
    document["checkpoints"][1]["object"] = document["checkpoints"][0]["object"]
    base = own.put(rfc8785.dumps(document))
    with pytest.raises(ProtocolError, match="isn't the one in the log"):
        verify_lineage(own, forged(chain, lambda d: d["start"].update(record=base)))
    document["checkpoints"][1]["root"] = document["checkpoints"][0]["root"]
    base = own.put(rfc8785.dumps(document))
    with pytest.raises(ProtocolError, match="another log"):
        verify_lineage(own, forged(chain, lambda d: d["start"].update(record=base)))


def test_forged_drawn_weights_are_noticed_two_levels_up(chain: tuple[Path, list[LearningRecord]]) -> None:
    own = store(chain)
    first = forged(chain, lambda d: d["start"]["initialisation"].update(seed="8"), 0)
    second = forged(chain, lambda d: d["start"].update(record=first), 1)
    with pytest.raises(ProtocolError, match="isn't what is drawn"):
        verify_lineage(own, forged(chain, lambda d: d["start"].update(record=second)))


def test_a_record_without_its_beginning_is_noticed(chain: tuple[Path, list[LearningRecord]]) -> None:
    """What was before its first checkpoint could be anything."""
    own, record = store(chain), chain[1][2]
    later = own.put(dataclasses.replace(record, checkpoints=record.checkpoints[1:]).encode())
    with pytest.raises(ProtocolError, match="begins at step 2"):
        verify_lineage(own, later)


def test_a_base_that_does_not_exist(chain: tuple[Path, list[LearningRecord]]) -> None:
    with pytest.raises(OperationalError):
        verify_lineage(store(chain), forged(chain, lambda d: d["start"].update(record="ab" * 32)))


def test_a_cycle_is_refused(chain: tuple[Path, list[LearningRecord]]) -> None:
    """A record that names an earlier state of its own run as its base."""
    own = store(chain)
    base = own.put(learning_record.LearningRecord.decode(chain[1][2].encode()).encode())
    start = {"kind": "record", "record": base, "index": 0, "arrays": {WEIGHT: WEIGHT}}
    with pytest.raises(ProtocolError, match="continues itself"):
        verify_lineage(own, forged(chain, lambda d: d.update(start=start)))


def test_no_more_than_32_levels(chain: tuple[Path, list[LearningRecord]]) -> None:
    """Bases that differ in their names only, each under the next."""
    own = store(chain)
    base = ""
    for level in range(33):

        def stack(document: Any, level: int = level, base: str = base) -> None:
            document.update(run=f"{level:064x}", start={"kind": "given"})
            if base:
                document["start"] = {"kind": "record", "record": base, "index": 0, "arrays": {WEIGHT: WEIGHT}}

        base = forged(chain, stack, 2)
        if level == 31:
            assert len(verify_lineage(own, base)) == 32
    with pytest.raises(ProtocolError, match="32 at most"):
        verify_lineage(own, base)


def test_another_shape_and_nothing_in_common_are_refused(
    chain: tuple[Path, list[LearningRecord]], tmp_path: Path
) -> None:
    with pytest.raises(ProtocolError, match=r"head.weight is .*\(9, 70\).*new="):
        train(tmp_path, Model(9), from_record(store(chain, "first")))
    with pytest.raises(ProtocolError, match="no parameter"):
        train(tmp_path, nn.Linear(2, 2), from_record(store(chain, "first")))


def test_other_weights_than_drawn_are_noticed(tmp_path: Path) -> None:
    """A run that says that its weights were drawn, and changed them before its first checkpoint."""

    class Changed:
        def begin(self, model: nn.Module, store: Store) -> Any:
            start = from_initialization(build, 7).begin(model, store)
            with torch.no_grad():
                model.get_parameter("head.bias")[1] += 1e-7
            return start

    train(tmp_path, Model(), Changed(), steps=0)
    with pytest.raises(ProtocolError, match=r"head\.bias isn't what is drawn"):
        verify_lineage(Store(f"file://{tmp_path}"))
    (bad,) = [finding for finding in check_record(Store(f"file://{tmp_path}")) if finding.outcome is CheckOutcome.BAD]
    assert (bad.check, bad.about) == ("start", "initialisation")


def test_several_processes_take_no_start(chain: tuple[Path, list[LearningRecord]], tmp_path: Path) -> None:
    """Each would load whole tensors into its rows."""
    with pytest.raises(UnsupportedError, match="one process"):
        DistributedRecorder(f"file://{tmp_path}", Model(), start=from_record(store(chain, "first")))


def test_what_has_no_lineage_says_so(chain: tuple[Path, list[LearningRecord]]) -> None:
    own = store(chain)
    with pytest.raises(ProtocolError, match="expected a learning record"):
        verify_lineage(own, chain[1][2].checkpoints[0].object)
