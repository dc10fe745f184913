"""Signed heads: whoever keeps one notices any other history, and nobody but the signer makes one."""

import dataclasses
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from small_record import KEY, OTHER_KEY, train

from pol.commitments.keccak import keccak256
from pol.errors import OperationalError, ProtocolError
from pol.training.record import signed_heads
from pol.training.record.learning_record import LearningRecord, SignedHead, load_record
from pol.training.record.signed_heads import LogHead
from pol.training.storage.key_file import load_signing_key
from pol.training.storage.store import Store


def record_of(size: int, key: Ed25519PrivateKey | None = KEY, salt: int = 0) -> LearningRecord:
    """A record that was signed after every checkpoint."""
    from pol.training.record.learning_record import RecordedCheckpoint

    record = LearningRecord(b"\x07" * 32, {"kind": "given"}, 5, ())
    for i in range(size):
        root = keccak256(bytes([i, salt if i > 1 else 0]))
        added = RecordedCheckpoint(5 * i, root, root.hex())
        record = dataclasses.replace(record, checkpoints=(*record.checkpoints, added))
        if key is not None:
            record = signed_heads.sign(record, key)
    return record


def test_the_message_is_that_of_the_specification() -> None:
    record = record_of(3)
    head = signed_heads.newest_head(record)
    start = keccak256(b'{"kind":"given"}')
    message = b"pol/log-head/1" + b"\x07" * 32 + start + (3).to_bytes(8, "big") + record.log.root()
    assert head.message == message
    KEY.public_key().verify(record.heads[2].signature, message)
    assert record.signer == KEY.public_key().public_bytes_raw()


def test_a_recorder_signs_every_head_and_goes_on_with_its_key_only(tmp_path: Path) -> None:
    store = f"file://{tmp_path}/run"
    pem = tmp_path / "key.pem"
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    pem.write_bytes(KEY.private_bytes(*plain))
    train(store, 3, pem)
    early = load_record(Store(store))
    kept = LogHead.decode(signed_heads.verify_heads(early).encode())
    for key, error in ((OTHER_KEY, "signed by .* and the key given is"), (None, "no key was given")):
        with pytest.raises(ProtocolError, match=error):
            train(store, 5, key)
    late = train(store, 8, str(pem))
    assert [head.size for head in late.heads] == [1, 2, 3, 4, 5, 6]
    assert late.checkpoints[: len(early.checkpoints)] == early.checkpoints
    signed_heads.verify_extension(kept, signed_heads.verify_heads(late), late.log.consistency(kept.size))


def test_a_record_may_begin_unsigned(tmp_path: Path) -> None:
    store = f"file://{tmp_path}/run"
    with pytest.raises(ProtocolError, match="isn't signed: give Recorder a key"):
        signed_heads.verify_heads(train(store, 2, None))
    signed = train(store, 4)
    assert [head.size for head in signed.heads] == [3]
    signed_heads.verify_heads(signed)


@pytest.mark.parametrize("earlier", range(1, 9))
def test_every_head_extends_to_every_later_one(earlier: int) -> None:
    late = record_of(9)
    kept = signed_heads.newest_head(record_of(earlier))
    signed_heads.verify_extension(kept, signed_heads.newest_head(late), late.log.consistency(earlier))


def test_a_rewritten_history_is_noticed() -> None:
    kept, other = signed_heads.newest_head(record_of(4)), record_of(6, salt=1)
    signed_heads.verify_heads(other)
    with pytest.raises(ProtocolError, match="does not begin with"):
        signed_heads.verify_extension(kept, signed_heads.newest_head(other), other.log.consistency(4))


def test_a_head_with_any_member_changed() -> None:
    head = signed_heads.newest_head(record_of(4))
    for name in ("run", "start", "root", "signer", "signature"):
        value = bytearray(getattr(head, name))
        value[5] ^= 1
        with pytest.raises(ProtocolError, match="isn't signed by"):
            dataclasses.replace(head, **{name: bytes(value)}).verify()
    with pytest.raises(ProtocolError, match="isn't signed by"):
        dataclasses.replace(head, size=5).verify()
    other = signed_heads.newest_head(record_of(6, OTHER_KEY))
    with pytest.raises(ProtocolError, match="different runs, starts or signers"):
        signed_heads.verify_extension(head, other, record_of(6).log.consistency(4))


def test_one_wrong_head_among_many() -> None:
    record = record_of(6)
    for i in range(6):
        heads = list(record.heads)
        heads[i] = SignedHead(heads[i].size, heads[i - 1].signature)
        with pytest.raises(ProtocolError, match=f"the head of size {i + 1} isn't signed"):
            signed_heads.verify_heads(dataclasses.replace(record, heads=tuple(heads)))
    with pytest.raises(ProtocolError, match="newest signed head is of 5 checkpoints"):
        signed_heads.verify_heads(dataclasses.replace(record, heads=record.heads[:5]))


def test_malformed_records_and_heads() -> None:
    record = record_of(3)
    assert LearningRecord.decode(record.encode()) == record
    for wrong in ({"signer": None}, {"heads": ()}, {"heads": (record.heads[1], record.heads[1])}):
        with pytest.raises(ProtocolError):
            dataclasses.replace(record, **wrong)
    head = signed_heads.newest_head(record)
    assert LogHead.decode(head.encode()) == head
    for data in (b"{}", head.encode().replace(b'"version":1', b'"version":2'), head.encode() + b" "):
        with pytest.raises(ProtocolError):
            LogHead.decode(data)


def test_keys_that_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OperationalError, match="openssl genpkey"):
        load_signing_key(tmp_path / "missing.pem")
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    secret = KEY.private_bytes(pem, pkcs8, serialization.BestAvailableEncryption(b"x"))
    other = ec.generate_private_key(ec.SECP256R1()).private_bytes(pem, pkcs8, serialization.NoEncryption())
    for data, error in ((b"nothing", "no private key"), (secret, "encrypted"), (other, "another kind")):
        (tmp_path / "key.pem").write_bytes(data)
        with pytest.raises(ProtocolError, match=error):
            load_signing_key(tmp_path / "key.pem")


def test_a_raw_key_is_refused_and_never_printed() -> None:
    with pytest.raises(ProtocolError, match="PEM file") as refused:
        load_signing_key(b"s" * 32)  # type: ignore[arg-type]
    assert "sss" not in str(refused.value)
