"""`pol log`: what it shows, what it notices, and how it ends."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from small_record import KEY, OTHER_KEY, train

from pol.cli.main import main
from pol.training.record import attestation
from pol.training.record.learning_record import load_record
from pol.training.storage.store import Store


class PolLog:
    """The command in this process, through the program's entry point."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def __call__(self, *arguments: object, code: int = 0) -> Any:
        self.monkeypatch.setattr(sys, "argv", ["pol", "log", *map(str, arguments), "--json"])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = self.capsys.readouterr().out
        assert ended.value.code == code, printed
        return json.loads(printed)


@pytest.fixture
def pol_log(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> PolLog:
    return PolLog(monkeypatch, capsys)


@pytest.fixture
def pem(tmp_path: Path) -> Path:
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (tmp_path / "key.pem").write_bytes(KEY.private_bytes(*plain))
    return tmp_path / "key.pem"


def test_a_kept_head_and_a_longer_record(tmp_path: Path, pem: Path, pol_log: PolLog) -> None:
    run, head = tmp_path / "run", tmp_path / "head.json"
    public = KEY.public_key().public_bytes_raw().hex()
    train(str(run), 3)
    shown = pol_log(run, "--signer", public, "--keep", head)
    assert (shown["size"], shown["steps"], shown["verified_heads"], shown["signer"]) == (3, 3, 3, public)
    train(str(run), 8)
    store = Store(str(run))
    record = load_record(store)
    file = tmp_path / "in-toto.json"
    shown = pol_log(run / "record.json", "--since", head, "--consistency", 2, 5, "--in-toto", file, "--key", pem)
    assert shown["root"] == record.log.root().hex()
    assert shown["extends"]["path"] == [node.hex() for node in record.log.consistency(3)]
    assert shown["consistency"]["path"] == [node.hex() for node in record.log.consistency(2, 5)]
    attestation.require_matches(attestation.verify(file.read_bytes(), [KEY.public_key()]), store, record)
    wrong = OTHER_KEY.public_key().public_bytes_raw().hex()
    assert "is signed by" in pol_log(run, "--signer", wrong, code=1)["error"]
    assert "the smaller one first" in pol_log(run, "--consistency", 5, 2, code=2)["error"]
    assert "--key PEM" in pol_log(run, "--in-toto", file, code=2)["error"]
    other = tmp_path / "other"
    train(str(other), 8)
    assert "different runs" in pol_log(other, "--since", head, code=1)["error"]
    train(str(tmp_path / "unsigned"), 2, None)
    assert pol_log(tmp_path / "unsigned", "--verify")["verified_heads"] == "not checked: the record isn't signed"
    assert "isn't signed" in pol_log(tmp_path / "unsigned", "--signer", public, code=1)["error"]
    assert "can't read" in pol_log(run, "--since", tmp_path / "none", code=3)["error"]
    assert "can't read" in pol_log(tmp_path / "none", code=3)["error"]
