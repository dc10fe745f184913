"""A record on the hub: the client of Hugging Face talks to a server on loopback."""

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hub_server import TOKEN, Hub, hub
from huggingface_hub import HfApi, constants
from torch import nn

from cli_runner import Said, pol
from pol.errors import OperationalError, ProtocolError
from pol.integrations.huggingface_hub_record import pull_from_hub, push_to_hub
from pol.training.recorder.recorder import Recorder

# A deprecation inside of huggingface_hub.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=<...>':DeprecationWarning")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """Xet is a protocol of its own, which the server doesn't speak; the cache is empty."""
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    with hub() as running:
        yield running


@pytest.fixture
def api(server: Hub) -> HfApi:
    return HfApi(endpoint=server.url, token=TOKEN)


def train(folder: Path, steps: int, seed: int = 0) -> Path:
    torch.manual_seed(seed)
    model = nn.Linear(33, 17)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    recorder = Recorder(f"file://{folder}", model, optimizer, every=2)
    recorder.resume()
    while recorder.steps < steps:
        optimizer.zero_grad()
        model(torch.randn(4, 33)).square().mean().backward()
        optimizer.step()
        recorder.step()
    recorder.close()
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file() and ".cache" not in path.parts]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_a_record_goes_there_and_back(
    tmp_path: Path, server: Hub, api: HfApi, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    first = train(tmp_path / "first", 4)
    assert push_to_hub(first, "me/first", api=api) == server.commit_of("me/first")
    assert {name: file[0] for name, file in server.repositories["me/first"].items()} == contents(first)
    assert {is_large for _, is_large in server.repositories["me/first"].values()} == {True, False}
    assert server.sent[-1] == "record.json"
    fetched = pull_from_hub("me/first", tmp_path / "fetched", api=api)
    assert contents(fetched) == contents(first)
    assert pol("check", fetched) == Said(0)

    sent = len(server.sent)
    push_to_hub(first, "me/first", api=api)
    assert len(server.sent) == sent, "nothing has changed"
    before = contents(first)
    push_to_hub(train(first, 6), "me/first", api=api)
    assert set(server.sent[sent:]) == {name for name, data in contents(first).items() if before.get(name) != data}
    pull_from_hub("me/first", fetched, api=api)
    assert contents(fetched) == contents(first)
    assert TOKEN not in caplog.text + "".join(capfd.readouterr())


def test_another_record_is_not_overwritten(tmp_path: Path, server: Hub, api: HfApi) -> None:
    first = train(tmp_path / "first", 4)
    shutil.copytree(first, tmp_path / "older")
    push_to_hub(train(first, 6), "me/first", api=api)
    held = dict(server.repositories["me/first"])
    other = train(tmp_path / "other", 4, seed=1)
    for folder in ("other", "older"):
        with pytest.raises(ProtocolError, match="push to another repository"):
            push_to_hub(tmp_path / folder, "me/first", api=api)
    assert server.repositories["me/first"] == held
    with pytest.raises(ProtocolError, match="pull into another folder"):
        pull_from_hub("me/first", other, api=api)


def test_what_the_hub_lost_is_said(tmp_path: Path, server: Hub, api: HfApi) -> None:
    first = train(tmp_path / "first", 2)
    lost = next(name for name in contents(first) if name.endswith(".safetensors"))
    server.lost = {lost}
    with pytest.raises(OperationalError, match=f"me/first doesn't hold {lost} as it was sent"):
        push_to_hub(first, "me/first", api=api)
    server.lost = set()
    push_to_hub(first, "me/first", api=api)
    assert contents(pull_from_hub("me/first", tmp_path / "fetched", api=api)) == contents(first)


def test_a_folder_that_lacks_a_file_is_refused(tmp_path: Path, server: Hub, api: HfApi) -> None:
    first = train(tmp_path / "first", 2)
    next(first.rglob("*.safetensors")).unlink()
    with pytest.raises(ProtocolError, match="or has it cut: push the folder that the recorder wrote"):
        push_to_hub(first, "me/first", api=api)
    with pytest.raises(OperationalError, match=r"has no record\.json"):
        push_to_hub(tmp_path, "me/first", api=api)
    assert server.repositories == {}


def test_only_files_of_a_store_are_fetched(tmp_path: Path, server: Hub, api: HfApi) -> None:
    first = train(tmp_path / "first", 2)
    push_to_hub(first, "me/first", api=api)
    server.repositories["me/first"] |= {"train.py": (b"print()", False), "ab/code.pkl": (b"", False)}
    assert contents(pull_from_hub("me/first", tmp_path / "fetched", api=api)) == contents(first)
    server.repositories["me/empty"], server.commits["me/empty"] = {}, ["initial commit"]
    with pytest.raises(ProtocolError, match=r"me/empty has no record\.json"):
        pull_from_hub("me/empty", tmp_path / "empty", api=api)


def test_nothing_is_fetched_beyond_the_limit(
    tmp_path: Path, server: Hub, api: HfApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = train(tmp_path / "first", 4)
    push_to_hub(first, "me/first", api=api)
    size = sum(map(len, contents(first).values()))
    with pytest.raises(ProtocolError, match=f"me/first has {size} bytes to fetch, more than {size - 1}: raise limit="):
        pull_from_hub("me/first", tmp_path / "fetched", limit=size - 1, api=api)
    with monkeypatch.context() as full:
        full.setattr(shutil, "disk_usage", lambda place: shutil._ntuple_diskusage(size, 1, size - 1))
        with pytest.raises(OperationalError, match=f"{size - 1} free: make room first"):
            pull_from_hub("me/first", tmp_path / "fetched", api=api)
    assert not (tmp_path / "fetched").exists()
    pull_from_hub("me/first", tmp_path / "fetched", limit=size, api=api)
    pull_from_hub("me/first", tmp_path / "fetched", limit=0, api=api)  # all is there


def test_nothing_but_the_store_is_pushed(tmp_path: Path, server: Hub, api: HfApi) -> None:
    """A keystore beside it, or a stranger's link to a private file under a name of the store."""
    first = train(tmp_path / "first", 2)
    before = contents(first)
    (first / "keystore.json").write_text("{}")
    (tmp_path / "private").write_text("secret")
    link = first / "ab" / ("ab" * 32)
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(tmp_path / "private")
    push_to_hub(first, "me/first", api=api)
    assert {name: file[0] for name, file in server.repositories["me/first"].items()} == before


def test_failures_are_one_line_without_the_token(tmp_path: Path, server: Hub, api: HfApi) -> None:
    first = train(tmp_path / "first", 2)
    with pytest.raises(OperationalError, match="hf auth login") as unknown:
        pull_from_hub("me/unknown", tmp_path / "fetched", api=api)
    server.failing = True
    with pytest.raises(OperationalError, match="the hub is being repaired") as failed:
        push_to_hub(first, "me/first", api=api)
    for error in (unknown, failed):
        assert "\n" not in str(error.value)
        assert TOKEN not in str(error.value)
