"""DSSE envelopes and in-toto statements: the specification's vector, another implementation, and what is refused."""

import base64
import hashlib
import json
from pathlib import Path

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from securesystemslib.dsse import Envelope as PeerEnvelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import CryptoSigner, SSlibKey
from small_record import KEY, OTHER_KEY, train

from pol.commitments.array import ArrayType, ElementType
from pol.commitments.complete_state import StateEntry, complete_root
from pol.errors import OperationalError, ProtocolError
from pol.training.record import attestation, dsse_envelope
from pol.training.record.recorded_chunks import prove_recorded
from pol.training.storage import sharded_files, stored_checkpoint
from pol.training.storage.sealing import SealedStore
from pol.training.storage.sharded_files import Rows
from pol.training.storage.store import Store
from pol.training.storage.stored_checkpoint import StoredCheckpoint

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


def test_a_sealed_record_is_attested_and_shown_by_who_can_open_it(tmp_path: Path) -> None:
    store = SealedStore(Store(str(tmp_path)), key=X25519PrivateKey.from_private_bytes(b"\x03" * 32))
    record = train(store, 3)
    found = attestation.verify(attestation.attest(store, record, KEY), [PUBLIC])
    name = f"{record.checkpoints[1].root.hex()}.safetensors"
    with store.open_file(name) as file:
        digest = hashlib.sha256(file.read(file.size)).hexdigest()
    assert {"name": name, "digest": {"sha256": digest}} in found["subject"]
    assert prove_recorded(store, record, 1, 70, 3).root() == record.checkpoints[1].root
    with pytest.raises(OperationalError, match="sealed"):
        attestation.attest(Store(str(tmp_path)), record, KEY)
    with pytest.raises(OperationalError, match="sealed"):
        prove_recorded(Store(str(tmp_path)), record, 1, 70, 3)


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
