"""Signed heads and statements: whoever keeps one notices any other history, and nobody but the signer makes one.

`pol log`: what it shows, what it notices, and how it ends.
"""

import base64
import dataclasses
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from securesystemslib.dsse import Envelope as PeerEnvelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import CryptoSigner, SSlibKey
from small_record import KEY, OTHER_KEY, train

from pol.cli.main import main
from pol.commitments.array import ArrayType, ElementType
from pol.commitments.complete_state import StateEntry, complete_root
from pol.commitments.keccak import keccak256
from pol.errors import OperationalError, ProtocolError
from pol.training.record import attestation, dsse_envelope, signed_heads
from pol.training.record.learning_record import LearningRecord, SignedHead, load_record
from pol.training.record.signed_heads import LogHead
from pol.training.storage import sharded_files, stored_checkpoint
from pol.training.storage.key_file import load_signing_key
from pol.training.storage.sealing import SealedStore
from pol.training.storage.sharded_files import Rows
from pol.training.storage.store import Store
from pol.training.storage.stored_checkpoint import StoredCheckpoint

pytestmark = pytest.mark.rules


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


PUBLIC = KEY.public_key()


HELLO = "http://example.com/HelloWorld"


def peer_key(raw: bytes) -> SSlibKey:
    return SSlibKey(raw.hex(), "ed25519", "ed25519", {"public": raw.hex()})


def test_the_vector_of_the_specification() -> None:
    """protocol.md, "Test Vectors": the encoding, and a signature of another algorithm over it."""
    envelope = dsse_envelope.Envelope.decode(
        b'{"payload": "aGVsbG8gd29ybGQ=", "payloadType": "http://example.com/HelloWorld", "signatures": [{"sig": '
        b'"A3JqsQGtVsJ2O2xqrI5IcnXip5GToJ3F+FnZ+O88SjtR6rDAajabZKciJTfUiHqJPcIAriEGAHTVeCUjW2JIZA=="}]}'
    )
    message = dsse_envelope.pae(envelope.payload_type, envelope.payload)
    assert message == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    x = 46950820868899156662930047687818585632848591499744589407958293238635476079160
    y = 5640078356564379163099075877009565129882514886557779369047442380624545832820
    sig = envelope.signatures[0].sig
    der = encode_dss_signature(int.from_bytes(sig[:32], "big"), int.from_bytes(sig[32:], "big"))
    key = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    key.verify(der, message, ec.ECDSA(hashes.SHA256()))
    with pytest.raises(InvalidSignature):
        key.verify(der, message + b"!", ec.ECDSA(hashes.SHA256()))


@pytest.mark.parametrize(("kind", "body"), [("", b""), ("tüp", b"\x00\xff"), (HELLO, b"7 " * 1000)])
def test_lengths_count_bytes(kind: str, body: bytes) -> None:
    raw = kind.encode()
    assert dsse_envelope.pae(kind, body) == b" ".join(
        [b"DSSEv1", str(len(raw)).encode(), raw, str(len(body)).encode(), body]
    )
    assert dsse_envelope.pae(kind, body) == PeerEnvelope(body, kind, {}).pae()


def test_both_ways_with_securesystemslib() -> None:
    ours = dsse_envelope.seal(HELLO, b"hello", KEY).encode()
    PeerEnvelope.from_dict(json.loads(ours)).verify([peer_key(PUBLIC.public_bytes_raw())], 1)
    with pytest.raises(VerificationError):
        PeerEnvelope.from_dict(json.loads(ours)).verify([peer_key(OTHER_KEY.public_key().public_bytes_raw())], 1)
    theirs = PeerEnvelope(b"hello", HELLO, {})
    theirs.sign(CryptoSigner(KEY, peer_key(PUBLIC.public_bytes_raw())))
    opened = dsse_envelope.Envelope.decode(json.dumps(theirs.to_dict()).encode())
    opened.verify([PUBLIC])
    assert (opened.payload, opened.payload_type) == (b"hello", HELLO)


def test_thresholds_count_keys_and_not_signatures() -> None:
    one, two = dsse_envelope.seal(HELLO, b"x", KEY), dsse_envelope.seal(HELLO, b"x", OTHER_KEY)
    keys = [PUBLIC, OTHER_KEY.public_key()]
    both = dsse_envelope.Envelope(HELLO, b"x", one.signatures + two.signatures)
    both.verify(keys, 2)
    twice = dsse_envelope.Envelope(HELLO, b"x", one.signatures * 2)
    for envelope, given, threshold in ((twice, [*keys, PUBLIC], 2), (one, keys[1:], 1), (one, [], 1), (one, keys, 0)):
        with pytest.raises(ProtocolError, match="envelope is signed by"):
            envelope.verify(given, threshold)
    with pytest.raises(ProtocolError):
        dsse_envelope.Envelope("another/type", b"x", one.signatures).verify(keys)
    with pytest.raises(ProtocolError):
        dsse_envelope.Envelope(HELLO, b"y", one.signatures).verify(keys)


def test_base64_of_either_kind_and_no_other() -> None:
    payload = bytes(range(256))
    data = json.loads(dsse_envelope.seal(HELLO, payload, KEY).encode())
    data["payload"] = base64.urlsafe_b64encode(payload).decode()
    assert "-" in data["payload"]
    dsse_envelope.Envelope.decode(json.dumps(data).encode()).verify([PUBLIC])
    for wrong in ("a", "a b=", "é===", 7, None):
        with pytest.raises(ProtocolError, match="not a DSSE envelope"):
            dsse_envelope.Envelope.decode(json.dumps(data | {"payload": wrong}).encode())
    for missing in ("payload", "payloadType", "signatures"):
        with pytest.raises(ProtocolError, match="not a DSSE envelope"):
            dsse_envelope.Envelope.decode(json.dumps({k: v for k, v in data.items() if k != missing}).encode())
    for text in (b"[]", b"7", b'{"payload":"","payloadType":"","signatures":[3]}'):
        with pytest.raises(ProtocolError, match="not a DSSE envelope"):
            dsse_envelope.Envelope.decode(text)


@pytest.mark.parametrize("updates", [False, True])
def test_a_record_as_a_statement(tmp_path: Path, updates: bool) -> None:
    store = Store(f"file://{tmp_path}")
    record = train(store.url, 5, updates=updates)
    envelope = attestation.attest(store, record, KEY)
    PeerEnvelope.from_dict(json.loads(envelope)).verify([peer_key(PUBLIC.public_bytes_raw())], 1)
    found = attestation.verify(envelope, [PUBLIC])
    attestation.require_matches(found, store, record)
    assert found["_type"] == "https://in-toto.io/Statement/v1"
    subjects = {s["name"]: s["digest"]["sha256"] for s in found["subject"]}
    assert len(subjects) == 2 * len(record.checkpoints)
    for name, digest in subjects.items():
        (path,) = tmp_path.glob(f"*/{name}")
        assert hashlib.sha256(path.read_bytes()).hexdigest() == digest
    predicate = found["predicate"]
    assert predicate["log"] == {"size": 4, "root": record.log.root().hex()}
    assert (predicate["steps"], predicate["run"]) == (5, record.run.hex())
    assert [e["from_step"] for e in predicate["environments"]] == [0]
    with pytest.raises(ProtocolError, match="signed by 0"):
        attestation.verify(envelope, [OTHER_KEY.public_key()])
    longer = train(store.url, 8, updates=updates)
    with pytest.raises(ProtocolError, match="isn't about this record"):
        attestation.require_matches(found, store, longer)


def test_a_sealed_record_is_attested_by_who_can_open_it(tmp_path: Path) -> None:
    store = SealedStore(Store(str(tmp_path)), key=X25519PrivateKey.from_private_bytes(b"\x03" * 32))
    record = train(store, 3)
    found = attestation.verify(attestation.attest(store, record, KEY), [PUBLIC])
    name = f"{record.checkpoints[1].root.hex()}.safetensors"
    with store.open_file(name) as file:
        digest = hashlib.sha256(file.read(file.size)).hexdigest()
    assert {"name": name, "digest": {"sha256": digest}} in found["subject"]
    with pytest.raises(OperationalError, match="sealed"):
        attestation.attest(Store(str(tmp_path)), record, KEY)


def test_files_of_several_processes_are_subjects() -> None:
    pieces = [[Rows("a")], [Rows("b", 0, 3)], []]
    types = {"a": ArrayType(ElementType.F32, ()), "b": ArrayType(ElementType.F32, (3,))}
    entries = tuple(StateEntry(name, type_, bytes(32)) for name, type_ in types.items())
    root = complete_root(entries)
    saved = StoredCheckpoint(0, entries, {}, sharded_files.describe(root, pieces))
    assert list(stored_checkpoint.sizes(saved)) == [sharded_files.file_name(root, held) for held in pieces if held]
    with pytest.raises(ProtocolError, match="unknown form"):
        stored_checkpoint.sizes(StoredCheckpoint(0, entries, {}, {"form": "other"}))


def test_statements_about_something_else() -> None:
    for kind, payload in (
        ("application/json", b"{}"),
        (attestation.PAYLOAD_TYPE, b"[]"),
        (attestation.PAYLOAD_TYPE, b'{"_type":"https://in-toto.io/Statement/v0.1"}'),
        (attestation.PAYLOAD_TYPE, b'{"_type":"https://in-toto.io/Statement/v1","predicateType":"https://slsa.dev"}'),
    ):
        with pytest.raises(ProtocolError):
            attestation.verify(dsse_envelope.seal(kind, payload, KEY).encode(), [PUBLIC])


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
