"""Files of earlier releases are read, verified and resumed; those of later ones are refused with advice."""

import importlib
import json
import re
import shutil
from pathlib import Path

import pytest

from cli_runner import Said, pol
from lab.compatibility import INTERRUPTED, STEPS, last_tensors, train
from pol import Store, __version__, load
from pol.commitments import canonical_json
from pol.errors import ProtocolError
from pol.graph.node import Node
from pol.rounds import audit
from pol.training.record.learning_record import LearningRecord
from pol.training.task.task_document import TaskDocument
from pol.verification.profile.profile_document import Profile

ROOT = Path(__file__).parents[2]
RELEASES = sorted((ROOT / "fixtures" / "compatibility").iterdir())
PAGE = ROOT / "docs" / "spec" / "compatibility.md"
ROW = re.compile(r"^\| .+ \| `(pol[\w.]+)\.([A-Z_]+)` \| (\d+) \|", re.MULTILINE)


@pytest.fixture(params=[pytest.param(path, id=path.name, marks=pytest.mark.long) for path in RELEASES])
def release(request: pytest.FixtureRequest) -> Path:
    assert isinstance(request.param, Path)
    return request.param


def expected(release: Path) -> dict[str, object]:
    document = json.loads((release / "expected.json").read_text())
    assert isinstance(document, dict)
    return document


def test_the_files_of_this_release_are_kept() -> None:
    assert ".".join(__version__.split(".")[:2]) in [path.name for path in RELEASES]


def test_a_kept_record_is_read_and_resumed_to_the_same_end(release: Path, tmp_path: Path) -> None:
    shutil.copytree(release / "record", tmp_path / "record")
    assert pol("check", tmp_path / "record") == Said(0, match="everything that was checked is good")
    before = LearningRecord.decode((tmp_path / "record" / "record.json").read_bytes())
    assert before.checkpoints[-1].step == INTERRUPTED
    after = train(tmp_path / "record", STEPS)
    assert after.checkpoints[: len(before.checkpoints)] == before.checkpoints
    assert last_tensors(tmp_path / "record") == expected(release)["tensors"]
    assert (after.run, after.signer, after.heads[: len(before.heads)]) == (before.run, before.signer, before.heads)


def test_a_kept_proof_is_accepted(release: Path) -> None:
    kept = expected(release)
    for how in (("--exact",), ("--profile", str(kept["profile"]))):
        assert pol("verify", release / "proof", str(kept["proof"]), "--all", *how) == Said(0, match="ACCEPTED")


def test_a_kept_training_of_several_workers_is_accepted(release: Path) -> None:
    found = audit(Store(str(release / "rounds" / "store")))
    assert (found.outcome, len(found.claims)) == ("accepted", expected(release)["claims"])


def newer(data: bytes) -> bytes:
    """A document as a later release may write it: another version, other members."""
    document = canonical_json.decode(data, "the document")
    return canonical_json.encode({**document, "version": document["version"] + 1, "later": True})


def test_a_newer_version_is_refused_with_advice() -> None:
    store, kept = Store(str(RELEASES[0] / "proof")), expected(RELEASES[0])
    record = (RELEASES[0] / "record" / "record.json").read_bytes()
    readers = [
        (LearningRecord.decode, record, 2),
        (TaskDocument.decode, store.get(str(kept["task"])), 3),
        (Profile.decode, store.get(str(kept["profile"])), 3),
    ]
    for read, data, version in readers:
        with pytest.raises(ProtocolError) as refused:
            read(newer(data))
        cure = "get a newer one: pip install --upgrade proof-of-learning"
        advice = f"pol {__version__} reads version {version - 1}; {cure}"
        assert str(refused.value).endswith(f"has the format version {version}: {advice}")
    node = load(store, str(kept["task"])).program.nodes[0].encode()
    with pytest.raises(ProtocolError, match=r"format version 2: .* get a newer one"):
        Node.decode(b"\x02" + node[1:])


def test_a_version_that_no_release_has_written_is_refused_as_that() -> None:
    record = json.loads((RELEASES[0] / "record" / "record.json").read_text())
    for version in (0, True, "1", 1.5):
        with pytest.raises(ProtocolError, match="no release has written another one"):
            LearningRecord.decode(canonical_json.encode({**record, "version": version}))
    with pytest.raises(ProtocolError, match="isn't a pol/learning-record: its kind is 'pol/other'"):
        LearningRecord.decode(canonical_json.encode({**record, "kind": "pol/other"}))


def test_the_table_of_formats_is_that_of_the_code() -> None:
    rows = {(module, name): int(version) for module, name, version in ROW.findall(PAGE.read_text())}
    for (module, name), version in rows.items():
        assert getattr(importlib.import_module(module), name) == version, (module, name)
    assigned = re.compile(r"^(?:[A-Z_]+, )*(\w*VERSION) = (?:.*, )?\d+$", re.MULTILINE)
    found = {
        (".".join(path.relative_to(ROOT).with_suffix("").parts), name)
        for path in ROOT.glob("pol/**/*.py")
        for name in assigned.findall(path.read_text())
    }
    elsewhere = {("pol.zk.ezkl.onnx_file", "INTERMEDIATE_VERSION")}
    assert found - elsewhere == set(rows)
