"""`pol commit`, `check`, `diff` and `inspect` on files of tensors: what a stranger hands over."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_torch

from cli_runner import Said, pol
from pol.cli.file_output import SHOWN_ROWS, write_file
from pol.cli.zk.zk_keys import write_next
from pol.commitments.array import Array, ArrayType, ElementType, array_root
from pol.commitments.complete_state import complete_root, compute_entries
from pol.errors import OperationalError
from pol.training.storage import tensor_folder
from pol.zk import circuits
from pol.zk.fixed_point import integers

WEIGHTS = {
    "a.weight": np.arange(12, dtype=np.float32).reshape(3, 4),
    "a.bias": np.zeros(3, np.float16),
    "count": np.array(7, np.int64),
    "empty": np.empty((0, 5), np.float32),
    "mask": np.array([True, False]),
}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    save_file(WEIGHTS, tmp_path / "model.safetensors", metadata={"format": "np"})
    return tmp_path / "model.safetensors"


def changed(model: Path, **tensors: np.ndarray) -> Path:
    path = model.parent / "changed.safetensors"
    save_file(WEIGHTS | tensors, path)
    return path


def test_the_root_is_that_of_the_state_with_these_tensors(model: Path) -> None:
    elements = {"f4": ElementType.F32, "f2": ElementType.F16, "i8": ElementType.I64, "b1": ElementType.BOOL}
    arrays = {
        name: Array(ArrayType(elements[values.dtype.str[1:]], values.shape), values.reshape(-1).view(np.uint8))
        for name, values in WEIGHTS.items()
    }
    document = json.loads(pol("commit", model, "--json").out)
    assert document["root"] == complete_root(compute_entries(arrays, {})).hex()
    assert [item["name"] for item in document["arrays"]] == sorted(WEIGHTS)


def test_a_tensor_hashed_in_pieces_has_the_same_root(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).integers(0, 256, 5000, np.uint8)
    save_file({"w": values}, model)
    root = array_root(Array(ArrayType(ElementType.U8, (5000,)), values))
    for piece in (256, 1024, 1 << 26):
        monkeypatch.setattr(tensor_folder, "PIECE", piece)
        assert [entry.content for entry in tensor_folder.open_tensors(model).entries()] == [root]


def test_a_folder_has_the_root_of_the_whole_however_it_is_cut(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cut"
    folder.mkdir()
    names = list(WEIGHTS)
    save_file({n: WEIGHTS[n] for n in names[:2]}, folder / "model-1.safetensors")
    save_file({n: WEIGHTS[n] for n in names[2:]}, folder / "model-2.safetensors")
    (folder / "config.json").write_text("{}")
    whole, cut = (json.loads(pol("commit", path, "--json").out) for path in (model, folder))
    assert whole["root"] == cut["root"]
    assert cut["left_out"] == ["config.json"]
    placed = {n: "model-1.safetensors" if n in names[:2] else "model-2.safetensors" for n in names}
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": placed}))
    save_file({"other": np.zeros(3)}, folder / "consolidated.safetensors")  # beside the indexed model, not part of it
    assert json.loads(pol("commit", folder, "--json").out)["root"] == whole["root"]
    index.write_text(json.dumps({"weight_map": placed | {"mask": "model-1.safetensors"}}))
    assert pol("commit", folder) == Said(1, match="'mask' is in model-1.safetensors, it is in model-2.safetensors")
    index.unlink()
    save_file({"mask": np.zeros(3)}, folder / "twice.safetensors")
    assert pol("commit", folder) == Said(1, match="both hold a tensor 'mask'")


def sharded(folder: Path) -> tuple[Path, dict[str, str]]:
    """The model in three shards with an index, as Hugging Face writes it; the index and its map."""
    folder.mkdir()
    placed = {}
    for number, part in enumerate((["a.weight"], ["a.bias", "count"], ["empty", "mask"]), 1):
        file = f"model-{number:05}-of-00003.safetensors"
        save_file({name: WEIGHTS[name] for name in part}, folder / file, metadata={"format": "pt"})
        placed |= dict.fromkeys(part, file)
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 77}, "weight_map": placed}))
    return index, placed


def test_an_index_and_its_folder_are_one_state(model: Path, tmp_path: Path) -> None:
    index, _ = sharded(tmp_path / "model")
    commitment = tmp_path / "commitment.json"
    whole = pol("commit", model, "--json", "--out", commitment)
    for path in (index, index.parent):
        assert json.loads(pol("commit", path, "--json").out)["root"] == json.loads(whole.out)["root"]
        assert pol("check", path, commitment) == Said(0, match="equal: all 5 entries")
        assert pol("diff", path, model) == Said(0, match="5 of 5 tensors are equal")
        assert len(json.loads(pol("inspect", path, "--json").out)["tensors"]) == 5
    # A folder of links, as the cache of Hugging Face keeps a model.
    links = tmp_path / "links"
    links.mkdir()
    for file in index.parent.iterdir():
        (links / file.name).symlink_to(file)
    assert pol("check", links, commitment).code == 0


def test_an_index_that_does_not_fit_its_files(tmp_path: Path) -> None:
    index, placed = sharded(tmp_path / "model")
    second = index.parent / "model-00002-of-00003.safetensors"

    def told(**other: object) -> Said:
        index.write_text(json.dumps({"weight_map": {**placed, **other}}))
        return pol("commit", index.parent)

    assert told(gone=second.name) == Said(1, match="'gone' is in model-00002-of-00003.safetensors, it is in no file")
    assert told(gone=second.name) == Said(1, match="move the index away")
    assert told(gone="model-00009-of-00003.safetensors") == Said(
        3, match="3 of 4 files are there): download model-0000"
    )
    for file in ("../../secret.safetensors", "/etc/passwd", "sub/x.safetensors", "..", "", "config.json"):
        assert told(mask=file) == Said(1, match="without a folder; take the model from its author again")
    for document in ({"weight_map": 3}, {"weight_map": {"a": 1}}, {"weight_map": {}}, []):
        index.write_text(json.dumps(document))
        assert pol("commit", index) == Said(1, match="name the safetensors files")
    index.write_text('{"weight_map": {"mask": "a.safetensors", "mask": "b.safetensors"}}')
    assert pol("commit", index) == Said(1, match="stands there twice")
    assert told() == Said(0)
    save_file({"count": WEIGHTS["count"], "mask": WEIGHTS["mask"]}, second)
    assert told() == Said(1, match="both hold a tensor 'mask'")
    second.unlink()
    assert told() == Said(3, match="2 of 3 files are there): download model-00002-of-00003.safetensors into it")
    index.unlink()
    assert pol("commit", index.parent) == Said(3, match="lacks model-00002-of-00003.safetensors: download all 3 files")
    (index.parent / "model-00003-of-00003.safetensors").unlink()
    assert pol("commit", index.parent) == Said(3, match="download all 3 files of the model, or name one file")
    save_file({"x": np.zeros(2)}, index.parent / "model-00001-of-999999999.safetensors")
    assert pol("commit", index.parent) == Said(3, match="lacks model-00002-of-")
    for kind in ("model", "other"):
        (index.parent / f"{kind}.safetensors.index.json").write_text("{}")
    assert pol("commit", index.parent) == Said(1, match="name that of one model")


def test_check_names_every_entry_that_is_not_what_was_committed_to(model: Path, tmp_path: Path) -> None:
    commitment = tmp_path / "commitment.json"
    assert pol("commit", model, "--out", commitment).code == 0
    assert pol("check", model, commitment) == Said(0, match="equal: all 5 entries")
    other = {name: values for name, values in WEIGHTS.items() if name != "count"} | {"more": np.zeros(2)}
    other |= {"mask": np.array([True, True]), "a.bias": np.zeros(3, np.float32)}
    save_file(other, tmp_path / "other.safetensors")
    found = pol("check", tmp_path / "other.safetensors", commitment, "--json")
    assert found.code == 1
    assert {m["name"]: m["how"] for m in json.loads(found.out)["mismatches"]} == {
        "count": "missing",
        "more": "extra",
        "mask": "differs",
        "a.bias": "another type",
    }
    told = pol("check", tmp_path / "other.safetensors", commitment)
    assert told.code == 1
    assert "missing       count" in told.out
    data = json.loads(commitment.read_bytes())
    data["arrays"][0]["root"] = "00" * 32
    commitment.write_text(json.dumps(data, separators=(",", ":"), sort_keys=True))
    assert pol("check", model, commitment) == Said(1, match="isn't that of its entries")
    assert pol("check", model, tmp_path / "none.json") == Said(3, match="can't read")
    assert pol("check", model) == Said(2, match="no learning record: give a commitment")
    assert pol("check", model, commitment, "--sample", "2") == Said(2, match="checked whole")


def test_diff_says_how_far(model: Path) -> None:
    weight = WEIGHTS["a.weight"].copy()
    weight[1, 2] += 3
    weight[0, 1] -= 4
    found = pol("diff", model, changed(model, **{"a.weight": weight}), "--json")
    assert found.code == 1
    document = json.loads(found.out)
    assert not document["equal"]
    row = next(row for row in document["tensors"] if row["name"] == "a.weight")
    assert (row["how"], row["differing"], row["elements"]) == ("differs", 2, 12)
    assert (row["l2"], row["linf"], row["largest_at"], row["values"]) == (5.0, 4.0, [0, 1], ["1", "-3"])
    assert row["relative_l2"] == pytest.approx(5 / np.linalg.norm(WEIGHTS["a.weight"]))
    assert {row["how"] for row in document["tensors"] if row["name"] != "a.weight"} == {"equal"}
    assert pol("diff", model, model) == Said(0, match="5 of 5 tensors are equal")
    assert "a.weight" in pol("diff", model, changed(model, **{"a.weight": weight})).out


def test_diff_draws_a_picture(model: Path, tmp_path: Path) -> None:
    from xml.etree import ElementTree

    other = changed(model, **{"a.weight": WEIGHTS["a.weight"] * np.float32(1.001), "<&>": np.zeros(1)})
    assert pol("diff", model, other, "--picture", tmp_path / "map.svg").code == 1
    drawn = ElementTree.parse(tmp_path / "map.svg").getroot()
    titles = {e.text: e for e in drawn.iter("{http://www.w3.org/2000/svg}title")}
    assert len(titles) == len(WEIGHTS) + 1
    assert any("a.weight" in str(text) and "relative 0.001" in str(text) for text in titles)
    assert pol("diff", model, other, "--picture", tmp_path / "no" / "map.svg") == Said(3, match="can't write")


def test_pickles_are_refused_and_never_loaded(tmp_path: Path) -> None:
    import torch

    torch.save({"w": torch.zeros(2)}, tmp_path / "model.pt")
    torch.save({"w": torch.zeros(2)}, tmp_path / "hidden.dat")
    for name in ("model.pt", "hidden.dat", "."):
        for verb in (("commit",), ("inspect",), ("diff", tmp_path)):
            assert pol(*verb, tmp_path / name) == Said(3, match="pickled checkpoint")


def test_what_cannot_be_read(tmp_path: Path, model: Path) -> None:
    assert pol("commit", tmp_path / "none") == Said(3, match="there is no file or folder")
    (tmp_path / "empty").mkdir()
    assert pol("commit", tmp_path / "empty") == Said(3, match="no safetensors file and no learning record")
    assert pol("commit", model, "--out", tmp_path / "no" / "x.json") == Said(3, match="can't write")
    cut = tmp_path / "cut.safetensors"
    cut.write_bytes(model.read_bytes()[:-1])
    assert pol("commit", cut) == Said(1, match="of data")
    odd = tmp_path / "odd.safetensors"
    odd.write_bytes(model.read_bytes()[:-2] + b"\x01\x02")
    assert pol("commit", odd) == Said(1, match="a boolean is the byte 0 or 1")
    (tmp_path / "x.json").write_text('{"kind": "something"}')
    assert pol("inspect", tmp_path / "x.json") == Said(1, match="no document that pol writes")
    assert json.loads(pol("commit", tmp_path / "none", "--json").out)["error"].startswith("there is no file")


def test_inspect_tells_what_a_file_holds(model: Path, tmp_path: Path) -> None:
    assert json.loads(pol("inspect", model, "--json").out)["tensors"]["a.bias"] == "F16 [3]"
    pol("commit", model, "--out", tmp_path / "c.json")
    assert json.loads(pol("inspect", tmp_path / "c.json", "--json").out)["kind"] == "pol/commitment"
    assert "F16 [3]" in pol("inspect", model).out


def test_types_that_numpy_lacks_have_distances(tmp_path: Path) -> None:
    import torch

    values = torch.tensor([1.0, -2.0, 0.5, 448.0])
    for dtype in (torch.bfloat16, torch.float8_e4m3fn):
        a, b = values.to(dtype), values.clone()
        b[1] = 1.0
        save_torch({"w": a}, tmp_path / "a.safetensors")
        save_torch({"w": b.to(dtype)}, tmp_path / "b.safetensors")
        save_torch({"w": a.float()}, tmp_path / "wide.safetensors")
        row = json.loads(pol("diff", tmp_path / "a.safetensors", tmp_path / "b.safetensors", "--json").out)["tensors"]
        assert (row[0]["differing"], row[0]["linf"], row[0]["largest_at"]) == (1, 3.0, [1])
        row = json.loads(pol("diff", tmp_path / "a.safetensors", tmp_path / "wide.safetensors", "--json").out)
        assert (row["tensors"][0]["how"], row["tensors"][0]["l2"]) == ("another type", 0.0)


def test_a_great_file_needs_little_memory(tmp_path: Path) -> None:
    """512 MB in one tensor, a hole on disk, hashed by a process that needs a fraction of that."""
    path, tensors, each = tmp_path / "great.safetensors", 1, 1 << 29
    places = [{"dtype": "U8", "shape": [each], "data_offsets": [i * each, (i + 1) * each]} for i in range(tensors)]
    header = json.dumps({f"t{i}": place for i, place in enumerate(places)}).encode()
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + tensors * each)
    code = """
import sys
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from pol.training.storage.tensor_folder import open_tensors
before = getrusage(RUSAGE_SELF).ru_maxrss
print(len(open_tensors(Path(sys.argv[1])).entries()), getrusage(RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    count, grown = map(int, done.stdout.split())
    assert count == tensors
    assert grown < 128 * 1024  # kB; the file has 524,288


@pytest.mark.long
def test_tables_end_where_nobody_reads_on(tmp_path: Path) -> None:
    """Laying out the rows of 10^5 tensors took ten times as long as hashing them."""
    count = SHOWN_ROWS + 200
    for name, value in (("a", 0.0), ("b", 1.0)):
        save_file({f"t{i}": np.full(1, value, np.float32) for i in range(count)}, tmp_path / f"{name}.safetensors")
    a, b, committed = tmp_path / "a.safetensors", tmp_path / "b.safetensors", tmp_path / "c.json"
    cut = pol("commit", a, "--out", committed)
    assert cut == Said(0, match="and 200 more entries: --all shows every one")
    assert SHOWN_ROWS < len(cut.out.splitlines()) < SHOWN_ROWS + 20
    whole = pol("commit", a, "--all")
    assert len(whole.out.splitlines()) > count
    assert "more entries" not in whole.out
    found = pol("diff", a, b)
    assert found == Said(1, match="and 200 more tensors: --all shows every one")
    assert found == Said(1, match=f"0 of {count} tensors are equal")
    assert "more tensors" not in pol("diff", a, b, "--all").out
    assert pol("diff", a, a) == Said(0, match=f"{count} of {count} tensors are equal")
    assert pol("check", b, committed) == Said(1, match="and 200 more: --json has all")
    assert pol("inspect", a) == Said(0, match="and 200 more: --json has all")


def test_what_is_none_of_all_is_called_what_it_is(tmp_path: Path) -> None:
    assert pol("inspect", "/dev/null") == Said(3, match="/dev/null is neither a file nor a folder")
    assert pol("commit", "/dev/null") == Said(3, match="/dev/null is neither a file nor a folder")
    array, text = tmp_path / "array.json", tmp_path / "text.json"
    array.write_text("[1]")
    text.write_text("hello")
    assert pol("inspect", array) == Said(1, match="array.json is no document that pol writes")
    assert pol("inspect", text) == Said(1, match="text.json isn't valid JSON")


def test_a_file_that_cannot_be_written_is_no_bug_of_pol(tmp_path: Path) -> None:
    missing = tmp_path / "missing" / "file.json"
    with pytest.raises(OperationalError, match="can't write"):
        write_file(missing, b"")
    with pytest.raises(OperationalError, match="can't write"):
        write_next(missing, circuits.load_circuit("linear_regression"), integers([1], (1, 1)))
