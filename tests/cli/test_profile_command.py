"""`pol profile`: what it prints, stores and finds."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from torch import nn
from torch.nn import functional

from cli_runner import Said, pol
from digits_training import loaded, published
from pol.cli.verification import profile_picture
from pol.demo import digits
from pol.execution.cpu import CpuExecutor
from pol.graph.capture import capture
from pol.training.storage.store import Store
from pol.training.task.published_task import load, publish
from pol.verification.profile import profile_document as profile_signature
from pol.verification.profile.profile_document import Profile
from pol.verification.profile.profiling import measure_profile, rerun_programs, rerun_programs_root


@cache
def honest() -> Profile:
    return measure_profile(loaded(), CpuExecutor, 1, 2)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The task's objects in a folder."""
    source, digest = published()
    task = load(source, digest).document
    target = Store(str(tmp_path / "store"))
    for name in (digest, task.program, task.names, task.aten, task.constants, task.initial_state):
        assert target.put(source.get(name)) == name
    return tmp_path / "store"


OPTIONS = ("--segments", "1", "--reruns", "2")


def test_the_same_bytes_as_in_python_for_people_and_programs(store: Path, tmp_path: Path) -> None:
    task = loaded().digest
    said = pol("profile", store, task, *OPTIONS)
    assert said == Said(0, match=honest().digest.hex())
    assert "parameter" in said.out
    assert "│ buffer " not in said.out
    assert "probability >= 2/3" in said.out
    assert "59 for 95%" in said.out
    assert Store(str(store)).get(honest().digest.hex()) == honest().encode()
    (tmp_path / "task.json").write_text(json.dumps({"document": task}))
    document = json.loads(pol("profile", store, tmp_path / "task.json", *OPTIONS, "--threads", "2", "--json").out)
    assert document["digest"] == honest().digest.hex()
    assert document["profile"] == json.loads(honest().encode())
    assert document["reruns"] == rerun_programs_root(rerun_programs(loaded().program, 2)).hex()


def test_signed(store: Path, tmp_path: Path) -> None:
    key = Ed25519PrivateKey.generate()
    (tmp_path / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    said = json.loads(pol("profile", store, loaded().digest, *OPTIONS, "--key", tmp_path / "key.pem", "--json").out)
    signer = Ed25519PublicKey.from_public_bytes(bytes.fromhex(said["signer"]))
    profile_signature.verify(Store(str(store)).get(said["envelope"]), honest(), [signer])
    assert signer == key.public_key()


def test_against_a_posted_profile(store: Path) -> None:
    """The terms are those of the profile, whatever the options say."""
    posted, task = Store(str(store)), loaded().digest
    right = posted.put(honest().encode())
    assert pol("profile", store, task, "--against", right) == Said(0, match="byte for byte")
    portion = replace(honest().claim.portions[0], references=(1 << 100, 0, 1 << 100))
    false = posted.put(replace(honest(), claim=replace(honest().claim, portions=(portion,))).encode())
    said = pol("profile", store, task, "--against", false)
    assert said == Said(1, match="false: REFERENCE 0, parameter")
    charges = json.loads(pol("profile", store, task, "--against", false, "--json").out)["charges"]
    assert charges[0] == {"kind": "REFERENCE", "index": 0, "component": "parameter"}
    detail = replace(honest().portions[0], linf=(1, 0, 1))
    other = posted.put(replace(honest(), portions=(detail,)).encode())
    assert pol("profile", store, task, "--against", other) == Said(1, match="but the documents differ")


def test_scales_give_another_task(store: Path) -> None:
    said = json.loads(pol("profile", store, loaded().digest, *OPTIONS, "--scale", "--json").out)
    scaled = load(Store(str(store)), said["task"])
    assert scaled.digest != loaded().digest
    assert any(own.scale > old.scale for own, old in zip(scaled.program.slots, loaded().program.slots, strict=True))
    assert said["profile"]["task"] == scaled.digest
    assert said["digest"] == measure_profile(scaled, CpuExecutor, 1, 2).digest.hex()


def test_exact_mode(store: Path) -> None:
    assert pol("profile", store, loaded().digest, "--margin", "0") == Said(0, match="exact mode")


def test_what_it_can_t_do(store: Path, tmp_path: Path) -> None:
    task = loaded().digest
    (tmp_path / "empty").write_text("")
    for arguments, said in (
        ((store, "nothing"), Said(2, match="neither a digest")),
        ((store, tmp_path / "empty"), Said(1, match="no digest of a task")),
        ((tmp_path / "nowhere", task), Said(3, match=task)),
        ((store, task, "--segments", "13"), Said(1, match="12 segments")),
        ((store, task, "--scale", "--margin", "0"), Said(2, match="leave out --scale")),
        ((store, task, "--scale", "--against", "0" * 64), Said(2, match="leave out one of them")),
        ((store, task, "--compile"), Said(2, match="--native")),
        ((store, task, "--key", tmp_path / "no.pem"), Said(3, match="openssl genpkey")),
    ):
        assert pol("profile", *arguments) == said


def test_the_picture() -> None:
    line = profile_picture.picture([1e-7, 1e-7, 1e-6], [1e-5, 1e-7], 1e-3)
    assert len(line) == profile_picture.WIDTH
    assert [line[profile_picture.place(x)] for x in (1e-7, 1e-6, 1e-5, 1e-3, 1e-2)] == ["O", "o", "n", "T", "."]
    assert [profile_picture.place(x) for x in (0.0, 1e-12, 1e-8, 1.0, 7.0)] == [0, 0, 0, 63, 63]


def test_a_task_without_a_profile_names_the_tensor(tmp_path: Path) -> None:
    """A gradient of zero but for rounding, and an optimizer that makes full steps of it."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(64, 4), nn.BatchNorm1d(4), nn.Linear(4, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    captured = capture(model, functional.cross_entropy, optimizer, digits.dataset(), digits.order(1, 2))
    task = publish(Store(str(tmp_path)), captured, steps=2, interval=2)[0]
    said = pol("profile", tmp_path, task, *OPTIONS)
    assert said == Said(3, match="Of the parameter state it is 0.bias (")
    assert "bias=False" in said.out


@pytest.mark.slow
def test_native(store: Path) -> None:
    said = json.loads(pol("profile", store, loaded().digest, *OPTIONS, "--native", "--json").out)
    assert json.loads(Store(str(store)).get(said["native"]))["kind"] == "pol/native-reruns"
    assert said["warnings"] == []
    people = pol("profile", store, loaded().digest, *OPTIONS, "--native")
    assert people == Said(0, match="1 thread, no oneDNN")
    assert "n" in people.out.split("threshold")[1]
