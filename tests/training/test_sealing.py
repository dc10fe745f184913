"""Sealed checkpoints: chosen keys open them, everybody else sees roots, and nothing that was changed is given out."""

import io
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from Crypto.Cipher import ChaCha20_Poly1305
from Crypto.Hash import SHA256
from Crypto.Protocol.DH import import_x25519_private_key, import_x25519_public_key, key_agreement
from Crypto.Protocol.KDF import HKDF
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from failing_stores import require_whole, train
from torch import nn

from pol import Recorder
from pol.errors import OperationalError, ProtocolError
from pol.training import Checkpoints, Sealing
from pol.training.lineage.base_training import from_record
from pol.training.lineage.lineage import verify_lineage
from pol.training.record import learning_record
from pol.training.storage import sealing, stored_checkpoint
from pol.training.storage.key_file import load_opening_key
from pol.training.storage.sealing import SEGMENT, SealedFile, SealedStore, open_sealed, seal
from pol.training.storage.store import Store
from stored_state import load_state

pytestmark = pytest.mark.rules

KEYS = [X25519PrivateKey.from_private_bytes(bytes([number]) * 32) for number in range(1, 4)]
PUBLIC = [key.public_key().public_bytes_raw() for key in KEYS]
HEADER = 12 + 1 + 32 + 2 * 48
SIZES = [0, 1, SEGMENT - 1, SEGMENT, SEGMENT + 1, 3 * SEGMENT, 3 * SEGMENT + 7]


def entropy(seed: int) -> Callable[[int], bytes]:
    return random.Random(seed).randbytes


def sealed(plain: bytes, recipients: list[bytes] = PUBLIC[:2], seed: int = 0) -> bytes:
    return b"".join(seal([plain], recipients, entropy(seed)))


@pytest.mark.parametrize("size", SIZES)
def test_round_trip(size: int) -> None:
    plain = random.Random(size).randbytes(size)
    data = sealed(plain)
    assert len(data) == sealing.sealed_size(size, 2)
    assert data == b"".join(seal([plain[:5], b"", plain[5:]], PUBLIC[:2], entropy(0)))
    for key in KEYS[:2]:
        assert open_sealed(data, key, "x") == plain
        opened = SealedFile(io.BytesIO(data), key, "x")
        assert opened.size_within(len(data)) == size
        assert b"".join(iter(lambda: opened.read(1000), b"")) == plain  # noqa: B023  # used at once
    with pytest.raises(OperationalError, match="isn't sealed to the key"):
        open_sealed(data, KEYS[2], "x")


def test_any_place_is_read() -> None:
    draw = random.Random(3)
    plain = draw.randbytes(3 * SEGMENT)
    data = bytearray(sealed(plain))
    opened = SealedFile(io.BytesIO(data), KEYS[0], "x")
    for _ in range(50):
        place, size = draw.randrange(len(plain)), draw.choice([0, 1, 100, SEGMENT, 2 * SEGMENT])
        opened.seek(place)
        assert opened.read(size) == plain[place : place + size]
    opened.seek(len(plain))
    data[-1] ^= 1
    opened = SealedFile(io.BytesIO(data), KEYS[0], "x")
    opened.seek(SEGMENT)
    assert opened.read(SEGMENT) == plain[SEGMENT : 2 * SEGMENT]
    with pytest.raises(ProtocolError, match="segment 2 of x was changed"):
        opened.seek(2 * SEGMENT + 5)


def test_another_implementation_opens_it() -> None:
    """The rules of the specification, followed with another library."""
    plain = bytes(range(256)) * 300
    data = sealed(plain)
    public, header = data[13:45], data[:HEADER]
    shared = key_agreement(
        eph_pub=import_x25519_public_key(public),
        static_priv=import_x25519_private_key(KEYS[1].private_bytes_raw()),
        kdf=lambda secret: secret,
    )
    wrapping = HKDF(shared, 32, public + PUBLIC[1], SHA256, context=b"pol/sealed/1/wrap")
    wrapped = header[45 + 48 :]
    fresh = ChaCha20_Poly1305.new(key=wrapping, nonce=bytes(12)).decrypt_and_verify(wrapped[:32], wrapped[32:])
    key = HKDF(fresh, 32, b"", SHA256, context=b"pol/sealed/1/data" + header)
    found = b""
    for number, first in enumerate(range(HEADER, len(data), SEGMENT + 16)):
        segment = data[first : first + SEGMENT + 16]
        nonce = number.to_bytes(11, "big") + bytes([first + SEGMENT + 16 >= len(data)])
        cipher = ChaCha20_Poly1305.new(key=key, nonce=nonce)
        found += cipher.decrypt_and_verify(segment[:-16], segment[-16:])
    assert found == plain


def test_segments_at_other_places() -> None:
    plain = random.Random(0).randbytes(3 * SEGMENT + 7)
    data = sealed(plain)
    step = SEGMENT + 16
    cut = [data[HEADER + i * step : HEADER + (i + 1) * step] for i in range(4)]
    head = data[:HEADER]
    other = sealed(plain, seed=1)
    cases = {
        "swapped": head + cut[1] + cut[0] + cut[2] + cut[3],
        "doubled": head + cut[0] + cut[0] + cut[1] + cut[2] + cut[3],
        "left out": head + cut[0] + cut[2] + cut[3],
        "the last left out": head + cut[0] + cut[1] + cut[2],
        "the last cut": data[:-1],
        "only the header": head,
        "something after it": data + b"\0",
        "another whole segment after it": data + cut[3],
        "segments of another file": head + other[HEADER:],
        "header of another file": other[:HEADER] + data[HEADER:],
    }
    for name, case in cases.items():
        with pytest.raises(ProtocolError):
            fail_because(open_sealed(case, KEYS[0], name), plain, name)


def fail_because(found: bytes, plain: bytes, name: str) -> None:
    pytest.fail(f"{name}: opened as {'the same' if found == plain else 'something else'}")


def test_every_byte_counts() -> None:
    """Any bit of the header or of a segment, and any length."""
    draw = random.Random(0)
    data = sealed(b"a plaintext")
    for at in range(len(data)):
        changed = bytearray(data)
        changed[at] ^= 1 << draw.randrange(8)
        for key in KEYS[:2]:
            with pytest.raises((ProtocolError, OperationalError)):
                open_sealed(bytes(changed), key, "x")
        with pytest.raises((ProtocolError, OperationalError)):
            open_sealed(data[:at], KEYS[0], "x")


def test_keys_that_are_none(tmp_path: Path) -> None:
    for recipients in ([], PUBLIC * 30, [b"short"], [bytes(32)], [b"\1" + bytes(31)]):
        with pytest.raises(ProtocolError):
            sealed(b"x", recipients)
    for content in (b"", b"no key"):
        (tmp_path / "key.pem").write_bytes(content)
        with pytest.raises(ProtocolError, match="key"):
            load_opening_key(tmp_path / "key.pem")
    with pytest.raises(OperationalError, match="can't read the key"):
        load_opening_key(tmp_path / "nowhere.pem")
    (tmp_path / "key.pem").write_bytes(KEYS[0].private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    assert load_opening_key(tmp_path / "key.pem").private_bytes_raw() == KEYS[0].private_bytes_raw()


@pytest.mark.parametrize("updates", [False, True])
def test_a_recorded_training(tmp_path: Path, updates: bool) -> None:
    """The trainer resumes with his key, a verifier opens with hers, others see a record with the same roots."""
    url = f"file://{tmp_path}/sealed"
    plain, _ = train(f"file://{tmp_path}/plain", 6, Checkpoints(background=False, updates=updates))
    checkpoints, sealing = Checkpoints(background=False, updates=updates), Sealing([PUBLIC[1]], opening_key=KEYS[0])
    assert train(url, 4, checkpoints, sealing=sealing)[1] == 0
    record, errors = train(url, 6, checkpoints, sealing=sealing)
    assert errors == 0
    assert [c.root for c in record.checkpoints] == [c.root for c in plain.checkpoints]
    for key in KEYS[:2]:
        assert require_whole(SealedStore(Store(url), key=key)) == record
    store = Store(url)
    assert learning_record.load_record(store) == record
    with pytest.raises(OperationalError, match="sealed"):
        stored_checkpoint.load_document(store, record.checkpoints[0].object)
    with pytest.raises(OperationalError, match="isn't sealed to the key"):
        require_whole(SealedStore(store, key=KEYS[2]))
    with pytest.raises(OperationalError, match="give a key"):
        require_whole(SealedStore(store, [PUBLIC[1]]))


def test_nothing_of_the_plaintext_is_in_the_store(tmp_path: Path) -> None:
    """Neither names of tensors, nor shapes, roots of tensors, options or values."""
    model = nn.Sequential()
    model.register_parameter("secret_name", nn.Parameter(torch.full((64,), 1.2345678)))
    value = torch.tensor([1.2345678] * 4).numpy().tobytes()
    root = b""
    for name, sealed_to in (("plain", None), ("sealed", Sealing(PUBLIC[:1]))):
        recorder = Recorder(f"file://{tmp_path}/{name}", model, every=1, sealing=sealed_to)
        recorder.resume()
        record = recorder.close()
        if name == "plain":
            saved = stored_checkpoint.load_document(recorder.store, record.checkpoints[0].object)
            root = next(entry.content for entry in saved.entries if entry.type is not None)
        files = [path.read_bytes() for path in (tmp_path / name).rglob("*") if path.is_file()]
        everything = b"".join(files)
        for secret in (b"secret_name", value, root.hex().encode(), b"float32", b"environment"):
            assert (secret in everything) == (name == "plain"), (name, secret)


def test_a_sealed_file_that_was_changed(tmp_path: Path) -> None:
    """The error names it."""
    url = f"file://{tmp_path}"
    record, _ = train(url, 2, sealing=Sealing(opening_key=KEYS[0]))
    store = SealedStore(Store(url), key=KEYS[0])
    name = f"{record.checkpoints[0].root.hex()}{sealing.ENDING}"
    path = tmp_path / name[:2] / name
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)
    with pytest.raises(ProtocolError, match=f"segment 0 of file {name[:64]}"):
        load_state(store, stored_checkpoint.load_document(store, record.checkpoints[0].object))


@pytest.mark.parametrize("base_is_sealed", [False, True])
@pytest.mark.parametrize("own_is_sealed", [False, True])
def test_a_training_that_continues_another(tmp_path: Path, base_is_sealed: bool, own_is_sealed: bool) -> None:
    """Documents of the base are copied byte for byte: sealed ones stay sealed, and their reader checks the lineage."""
    base, own = (f"file://{tmp_path}/{name}" for name in ("base", "own"))
    train(base, 2, sealing=Sealing(opening_key=KEYS[0]) if base_is_sealed else None)
    opened: Store = SealedStore(Store(base), key=KEYS[0]) if base_is_sealed else Store(base)
    start = from_record(opened)
    own_sealing = Sealing([PUBLIC[0]], opening_key=KEYS[1]) if own_is_sealed else None
    recorder = Recorder(own, nn.Linear(6, 2), every=1, start=start, sealing=own_sealing)
    recorder.resume()
    recorder.close()
    copied = start.record.checkpoints[start.index].object
    assert (tmp_path / "own" / copied[:2] / copied).read_bytes() == (
        tmp_path / "base" / copied[:2] / copied
    ).read_bytes()
    store: Store = SealedStore(Store(own), key=KEYS[0]) if own_is_sealed or base_is_sealed else Store(own)
    assert [level.kind for level in verify_lineage(store)] == ["record", "given"]
    if base_is_sealed:
        with pytest.raises(OperationalError, match="sealed"):
            verify_lineage(Store(own))
