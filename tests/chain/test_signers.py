"""Keys in files and in the environment, and signers in processes of their own, some of which lie."""

import io
import json
import logging
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account
from eth_account.messages import encode_typed_data
from web3.types import TxParams

import toy_market
from loopback_server import Quiet, serving
from pol.chain.account.remote_signer import Api, LyingSigner, RemoteSigner
from pol.chain.account.signers import LocalSigner, from_environment, from_keystore, read_passphrase
from pol.chain.account.wallet import Wallet
from pol.chain.contract.relaying import REQUEST_TYPE
from pol.chain.deployments.deployment import deploy
from pol.chain.node.connection import Connection
from pol.chain.node.networks import NETWORKS
from pol.errors import OperationalError, ProtocolError
from pol.roles.party.role import Role
from shared_chain import SharedChain

KEY = bytes.fromhex("5e" * 31 + "a7")
OTHER_KEY = b"\x11" * 32
PASSPHRASE = "correct horse, Batterie & Heftklammer é"
ME = Account.from_key(KEY).address
ANVIL_ACCOUNT = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
VARIABLE = "POL_TEST_KEY"

TRANSFER: TxParams = {
    "from": ME,
    "to": "0x09616C3d61b3331fc4109a9E41a8BDB7d9776609",
    "value": 5,  # type: ignore[typeddict-item]  # plain ints are Wei
    "gas": 100_000,
    "maxFeePerGas": 10**10,  # type: ignore[typeddict-item]  # plain ints are Wei
    "maxPriorityFeePerGas": 10**9,  # type: ignore[typeddict-item]  # plain ints are Wei
    "nonce": 3,  # type: ignore[typeddict-item]  # plain ints are nonces
    "data": "0x6162",  # type: ignore[typeddict-item]  # as web3 builds it
    "chainId": 31337,
}
DOMAIN = {"name": "Forwarder", "version": "1", "chainId": 31337, "verifyingContract": TRANSFER["to"]}
REQUEST = {
    "from": ME,
    "to": TRANSFER["to"],
    "value": 2**255 + 1,
    "gas": 2**53 + 1,
    "nonce": 0,
    "deadline": 2**48 - 1,
    "data": b"\x00\xff" * 33,
}

Answer = Callable[[str, list[Any]], Any]
"""What a signer returns to a method with parameters: JSON, bytes as they are, or an HTTP status."""


@contextmanager
def answering(answer: Answer) -> Iterator[str]:
    """URL of a JSON-RPC server on loopback."""

    class Handler(Quiet):
        def respond(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            result = answer(request["method"], request["params"])
            status = result if isinstance(result, int) else 200
            if not isinstance(result, bytes):
                result = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode()
            self.send_response(status)
            self.end_headers()
            if status == 200:
                self.wfile.write(result)

    with serving(Handler) as server:
        yield server.url


def fields_of(request: dict[str, str]) -> dict[str, Any]:
    """A transaction as a signer reads it: quantities are hexadecimal, and a creation has no receiver."""
    assert all(value.startswith("0x") for value in request.values())
    texts = {name: request[name] for name in ("from", "data")}
    numbers = {name: int(value, 16) for name, value in request.items() if name not in ("from", "to", "data")}
    return {**texts, **numbers, "to": request.get("to", "")}


def honest(method: str, parameters: list[Any], key: bytes = KEY, **changed: Any) -> Any:
    """Web3Signer and Clef with one key; `changed` fields of a transaction are what it makes of it."""
    account = Account.from_key(key)
    if method in ("eth_signTransaction", "account_signTransaction"):
        (request,) = parameters
        assert request["from"] == ME
        fields = {**fields_of(request), "from": account.address, **changed}
        raw = "0x" + account.sign_transaction(fields).raw_transaction.hex()
        return {"raw": raw, "tx": {"nonce": request["nonce"]}} if method.startswith("account") else raw
    if method == "eth_signTypedData":
        address, text = parameters
        data = json.loads(text)
    else:
        assert method == "account_signTypedData"
        address, data = parameters
    assert address == ME
    numbers = {m["name"] for m in data["types"][data["primaryType"]] if m["type"].startswith("uint")}
    data["message"] = {n: int(v) if n in numbers else v for n, v in data["message"].items()}
    return "0x" + account.sign_message(encode_typed_data(full_message=data)).signature.hex()


def changing(**changed: Any) -> Answer:
    return lambda method, parameters: honest(method, parameters, **changed)


def written(path: Path, text: str, mode: int = 0o600) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.fixture
def keystore(tmp_path: Path) -> Path:
    content = Account.encrypt(KEY, PASSPHRASE, kdf="scrypt", iterations=2)
    return written(tmp_path / "key.json", json.dumps(content))


def shows(error: BaseException) -> str:
    """All that a log or a terminal may get of an error."""
    return "".join(traceback.format_exception(error)) + repr(error) + str(vars(error))


def no_secret_in(text: str) -> None:
    for secret in (KEY.hex(), str(int.from_bytes(KEY, "big")), str(KEY), PASSPHRASE):
        assert secret.lower() not in text.lower()


def test_a_key_in_memory_shows_itself_to_nobody() -> None:
    signer = LocalSigner(KEY)
    wallet = Wallet(Connection.embedded(), signer)
    assert ME in repr(signer)
    for text in (repr(signer), str(signer), f"{signer}", repr(wallet), str(vars(signer))):
        no_secret_in(text)


@pytest.mark.parametrize("key", [b"", KEY[1:], KEY + b"\0", bytes(32), b"\xff" * 32], ids=len)
def test_no_private_key(key: bytes) -> None:
    with pytest.raises(ProtocolError, match="private key has 32 bytes") as error:
        LocalSigner(key)
    assert key == b"" or key.hex() not in shows(error.value)


def test_a_key_signs_as_eth_account_does() -> None:
    signer, account = LocalSigner(KEY), Account.from_key(KEY)
    assert signer.sign_transaction(TRANSFER) == bytes(account.sign_transaction(TRANSFER).raw_transaction)
    signed = account.sign_typed_data(DOMAIN, REQUEST_TYPE, REQUEST)
    assert signer.sign_typed(DOMAIN, REQUEST_TYPE, REQUEST) == bytes(signed.signature)
    assert signer.secret_key(1) == signer.secret_key(2) == KEY


def test_a_keystore_opens_with_its_passphrase(keystore: Path, tmp_path: Path) -> None:
    passphrase = read_passphrase(written(tmp_path / "passphrase", PASSPHRASE + "\n"))
    assert passphrase == PASSPHRASE
    signer = from_keystore(keystore, passphrase)
    assert (signer.address, signer.secret_key(1)) == (ME, KEY)


def test_an_old_keystore_opens_too(keystore: Path) -> None:
    """Geth's files were once written with a capital, and pbkdf2 is the standard's other function."""
    content = Account.encrypt(KEY, PASSPHRASE, kdf="pbkdf2", iterations=2)
    content["Crypto"] = content.pop("crypto")
    assert from_keystore(written(keystore, json.dumps(content)), PASSPHRASE).address == ME


def test_a_wrong_passphrase(keystore: Path) -> None:
    with pytest.raises(ProtocolError, match=r"doesn't open .*key\.json") as error:
        from_keystore(keystore, PASSPHRASE + "?")
    no_secret_in(shows(error.value))


@pytest.mark.parametrize("text", [KEY.hex(), "[]", "{}", '{"version": 3}', '{"version": 4, "crypto": {}}', ""])
def test_what_is_no_keystore(keystore: Path, text: str) -> None:
    """Also a file with the bare key, which the error must not repeat."""
    with pytest.raises(ProtocolError, match=r"isn't a keystore file of version 3") as error:
        from_keystore(written(keystore, text), PASSPHRASE)
    no_secret_in(shows(error.value))


def test_a_damaged_keystore(keystore: Path) -> None:
    """Every field of it, in every form that JSON has: an error of ours, or the right key."""
    content = json.loads(keystore.read_text())
    parts = (content, content["crypto"], content["crypto"]["kdfparams"], content["crypto"]["cipherparams"])
    for part, name in [(fields, name) for fields in parts for name in fields]:
        kept = part[name]
        for value in (None, 0, -1, 3, 1.5, True, "", "zz", "00" * 32, [], {}):
            part[name] = value
            try:
                assert from_keystore(written(keystore, json.dumps(content)), PASSPHRASE).address == ME
            except ProtocolError as error:
                no_secret_in(shows(error))
        part[name] = kept


def test_a_keystore_of_another_address(keystore: Path) -> None:
    content = json.loads(keystore.read_text()) | {"address": "00" * 20}
    with pytest.raises(ProtocolError, match=ME):
        from_keystore(written(keystore, json.dumps(content)), PASSPHRASE)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644])
def test_others_may_read_a_secret_file(keystore: Path, tmp_path: Path, mode: int) -> None:
    keystore.chmod(mode)
    with pytest.raises(ProtocolError, match="chmod 600"):
        from_keystore(keystore, PASSPHRASE)
    with pytest.raises(ProtocolError, match="chmod 600"):
        read_passphrase(written(tmp_path / "passphrase", PASSPHRASE, mode))


def test_files_that_are_not_there(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(OperationalError, match="can't read"):
            from_keystore(path, PASSPHRASE)
        with pytest.raises(OperationalError, match="can't read"):
            read_passphrase(path)


def test_nobody_is_asked_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(PASSPHRASE))
    with pytest.raises(OperationalError, match="name a file"):
        read_passphrase(None)


def test_a_passphrase_that_is_no_text(tmp_path: Path) -> None:
    path = written(tmp_path / "passphrase", "")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ProtocolError, match="UTF-8"):
        read_passphrase(path)


@pytest.mark.parametrize("chain_id", [network.chain_id for network in NETWORKS.values()])
@pytest.mark.parametrize("prefix", ["", "0x"])
def test_the_environment_serves_test_nets(monkeypatch: pytest.MonkeyPatch, chain_id: int, prefix: str) -> None:
    monkeypatch.setenv(VARIABLE, prefix + KEY.hex())
    assert from_environment(VARIABLE, chain_id).address == ME


def test_the_embedded_chain_is_a_test_net() -> None:
    assert Connection.embedded().chain_id == NETWORKS["embedded"].chain_id


@pytest.mark.parametrize("chain_id", [1, 10, 137, 8453, 42161, 0, 2])
def test_the_environment_serves_no_other_net(monkeypatch: pytest.MonkeyPatch, chain_id: int) -> None:
    monkeypatch.setenv(VARIABLE, KEY.hex())
    with pytest.raises(ProtocolError, match=rf"chain {chain_id} .*use a keystore file or a signer") as error:
        from_environment(VARIABLE, chain_id)
    no_secret_in(shows(error.value))


@pytest.mark.parametrize(
    "value", [None, "", KEY.hex()[:-1], KEY.hex()[:-1] + "g", KEY.hex() + "00", "0x0x" + KEY.hex()]
)
def test_no_key_in_the_environment(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    if value is None:
        monkeypatch.delenv(VARIABLE, raising=False)
    else:
        monkeypatch.setenv(VARIABLE, value)
    with pytest.raises(ProtocolError, match=VARIABLE) as error:
        from_environment(VARIABLE, 31337)
    assert KEY.hex()[1:] not in shows(error.value)


@pytest.mark.parametrize("api", Api)
def test_a_remote_signer_signs_as_a_key_does(api: Api) -> None:
    local = LocalSigner(KEY)
    creation: TxParams = {**TRANSFER, "to": b""}  # type: ignore[typeddict-item]  # as web3 builds it
    with answering(honest) as url:
        signer = RemoteSigner(url, ME, api)
        for transaction in (TRANSFER, creation):
            assert signer.sign_transaction(transaction) == local.sign_transaction(transaction)
        assert signer.sign_typed(DOMAIN, REQUEST_TYPE, REQUEST) == local.sign_typed(DOMAIN, REQUEST_TYPE, REQUEST)


LIES = {
    "another nonce": (changing(nonce=4), "nonce"),
    "another receiver": (changing(to=ANVIL_ACCOUNT), "to"),
    "another value": (changing(value=6), "value"),
    "another chain": (changing(chainId=1), "chainId"),
    "other data": (changing(data="0x6163"), "data"),
    "another limit of gas": (changing(gas=100_001), "gas"),
    "another fee": (changing(maxFeePerGas=10**11), "maxFeePerGas"),
    "another tip": (changing(maxPriorityFeePerGas=10**10), "maxPriorityFeePerGas"),
    "an access list": (changing(accessList=[{"address": ME, "storageKeys": []}]), "accessList"),
    "another key": (changing(key=OTHER_KEY), "signed something else"),
}


@pytest.mark.parametrize("api", Api)
@pytest.mark.parametrize("lie", LIES)
def test_a_lying_signer_gets_nothing_broadcast(api: Api, lie: str) -> None:
    answer, named = LIES[lie]
    with answering(answer) as url, pytest.raises(LyingSigner, match=named):
        RemoteSigner(url, ME, api).sign_transaction(TRANSFER)


def test_other_kinds_of_transactions_are_refused() -> None:
    def legacy(method: str, parameters: list[Any]) -> Any:
        fields = fields_of(parameters[0])
        del fields["maxFeePerGas"], fields["maxPriorityFeePerGas"]
        return "0x" + Account.from_key(KEY).sign_transaction({**fields, "gasPrice": 10**10}).raw_transaction.hex()

    def delegation(method: str, parameters: list[Any]) -> Any:
        """The same call, and the account is given away with it (EIP-7702)."""
        account = Account.from_key(KEY)
        given = account.sign_authorization({"chainId": 31337, "address": ANVIL_ACCOUNT, "nonce": 4})
        return "0x" + account.sign_transaction(fields_of(parameters[0]) | {"authorizationList": [given]})[0].hex()

    for answer in (legacy, delegation):
        with answering(answer) as url, pytest.raises(LyingSigner):
            RemoteSigner(url, ME).sign_transaction(TRANSFER)


NO_ANSWERS: tuple[Any, ...] = (
    None,
    "",
    "0x",
    "0xzz",
    "02",
    [],
    {},
    {"raw": None},
    1.5,
    True,
    ["0x02"],
    "0x02c0",
    "0x" + "00" * 65,
)


@pytest.mark.parametrize("api", Api)
def test_garbage_instead_of_signatures(api: Api) -> None:
    for garbage in NO_ANSWERS:
        with answering(lambda *_, garbage=garbage: json.dumps({"result": garbage}).encode()) as url:
            signer = RemoteSigner(url, ME, api)
            with pytest.raises(LyingSigner):
                signer.sign_transaction(TRANSFER)
            with pytest.raises(LyingSigner):
                signer.sign_typed(DOMAIN, REQUEST_TYPE, REQUEST)


def test_a_changed_bit_is_seen() -> None:
    """Whatever decodes is another transaction or another signer."""
    right = LocalSigner(KEY).sign_transaction(TRANSFER)
    answers = [right[:i] + bytes([right[i] ^ 1 << i % 8]) + right[i + 1 :] for i in range(len(right))]
    answers += [right[:-1], right + b"\0"]
    remaining = iter(answers)
    with answering(lambda *_: "0x" + next(remaining).hex()) as url:
        signer = RemoteSigner(url, ME)
        for _ in answers:
            with pytest.raises(LyingSigner):
                signer.sign_transaction(TRANSFER)


@pytest.mark.parametrize("api", Api)
def test_signatures_of_other_messages_and_keys(api: Api) -> None:
    def other_message(method: str, parameters: list[Any]) -> Any:
        data = json.loads(parameters[1]) if isinstance(parameters[1], str) else parameters[1]
        data["message"]["value"] = "1"
        return honest("account_signTypedData", [parameters[0], data])

    for answer in (changing(key=OTHER_KEY), other_message):
        with answering(answer) as url, pytest.raises(LyingSigner, match="something else"):
            RemoteSigner(url, ME, api).sign_typed(DOMAIN, REQUEST_TYPE, REQUEST)


def test_a_signature_that_counts_from_zero() -> None:
    """Contracts take v of 27 and 28 only."""

    def from_zero(method: str, parameters: list[Any]) -> str:
        signature = bytes.fromhex(honest(method, parameters)[2:])
        return "0x" + (signature[:-1] + bytes([signature[-1] - 27])).hex()

    with answering(from_zero) as url:
        signature = RemoteSigner(url, ME).sign_typed(DOMAIN, REQUEST_TYPE, REQUEST)
    assert signature == LocalSigner(KEY).sign_typed(DOMAIN, REQUEST_TYPE, REQUEST)


FAILURES: dict[str, tuple[Any, str]] = {
    "status 500": (500, "HTTP status 500"),
    "too many requests": (429, "HTTP status 429"),
    "a page": (b"<html>", "no result"),
    "a list": (b"[]", "no result"),
    "no result": (b"{}", "no result"),
    "a refusal": (b'{"error": {"code": -32000, "message": "Request denied"}}', "refuses .*: Request denied"),
    "an odd refusal": (b'{"error": "no", "result": "0x"}', "refuses .*: no"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failing_signer_proves_nothing(failure: str) -> None:
    answer, said = FAILURES[failure]
    with answering(lambda *_: answer) as url, pytest.raises(OperationalError, match=said) as error:
        RemoteSigner(url, ME).sign_transaction(TRANSFER)
    assert not isinstance(error.value, LyingSigner)


def test_a_slow_signer_is_not_waited_for() -> None:
    enough = threading.Event()
    with answering(lambda *_: enough.wait(30)) as url:
        # Whoever waits for it gets an answer that is none.
        with pytest.raises(OperationalError, match=r"doesn't answer eth_signTransaction \(ReadTimeout\)"):
            RemoteSigner(url, ME, timeout=0.2).sign_transaction(TRANSFER)
        enough.set()


def test_nobody_answers_and_nobody_is_followed() -> None:
    with pytest.raises(OperationalError, match="doesn't answer"):
        RemoteSigner("http://127.0.0.1:9", ME).sign_transaction(TRANSFER)
    with answering(lambda *_: 307) as url, pytest.raises(OperationalError, match="HTTP status 307"):
        RemoteSigner(url, ME).sign_transaction(TRANSFER)


def test_secrets_of_a_remote_signer() -> None:
    """The same at every start; others on another chain, of another key, and no secret of this account's key itself."""
    with answering(honest) as url:
        web3signer, clef = RemoteSigner(url, ME), RemoteSigner(url, ME, Api.CLEF)
        secret = web3signer.secret_key(31337)
        assert secret == web3signer.secret_key(31337) == clef.secret_key(31337)
        assert len({secret, web3signer.secret_key(1), KEY}) == 3
        assert len(secret) == 32


def test_a_signer_that_repeats_no_signature_needs_a_secret_file(tmp_path: Path) -> None:
    """As cloud keys sign: each time with another nonce."""
    order = 0xFFFFFFFF_FFFFFFFF_FFFFFFFF_FFFFFFFE_BAAEDCE6_AF48A03B_BFD25E8C_D0364141
    calls: list[str] = []

    def fickle(method: str, parameters: list[Any]) -> Any:
        """The other signature of the same key under the same message, every second time."""
        signature = bytes.fromhex(honest(method, parameters)[2:])
        calls.append(method)
        if len(calls) % 2:
            s = order - int.from_bytes(signature[32:64], "big")
            signature = signature[:32] + s.to_bytes(32, "big") + bytes([55 - signature[64]])
        return "0x" + signature.hex()

    secret = written(tmp_path / "secret", OTHER_KEY.hex() + "\n")
    with answering(fickle) as url:
        with pytest.raises(OperationalError, match="Give it a secret file"):
            RemoteSigner(url, ME).secret_key(1)
        assert RemoteSigner(url, ME, secret_file=secret).secret_key(1) == OTHER_KEY
    for bad in ("", "00" * 31, "é" * 64):
        with pytest.raises(ProtocolError, match="32 bytes"):
            RemoteSigner("http://127.0.0.1:9", ME, secret_file=written(secret, bad)).secret_key(1)
    with pytest.raises(ProtocolError, match="chmod 600"):
        RemoteSigner("http://127.0.0.1:9", ME, secret_file=written(secret, OTHER_KEY.hex(), 0o644)).secret_key(1)


def test_nothing_secret_of_a_url_is_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with answering(changing(nonce=4)) as url:
        for place in (url, "http://127.0.0.1:9"):
            signer = RemoteSigner(place.replace("://", "://somebody:Passwort@"), ME)
            with pytest.raises(OperationalError) as error:
                signer.sign_transaction(TRANSFER)
            for text in (repr(signer), str(signer), shows(error.value), repr(Wallet(Connection.embedded(), signer))):
                assert "Passwort" not in text
            assert place in repr(signer)
    assert "Passwort" not in caplog.text


def test_logs_show_no_secret(caplog: pytest.LogCaptureFixture, keystore: Path) -> None:
    caplog.set_level(logging.DEBUG)
    connection = Connection.embedded()
    wallet = Wallet(connection, from_keystore(keystore, PASSPHRASE))
    toy_market.fund(connection, wallet.address)
    wallet.transfer(wallet.address, 1)
    with pytest.raises(ProtocolError):
        from_keystore(keystore, "")
    no_secret_in(caplog.text)


def test_a_party_whose_key_is_elsewhere(chain: SharedChain) -> None:
    """It deploys, pays and has its secrets again after a restart; the key is with the signer only."""
    connection = chain.connection
    with chain.lent(), answering(honest) as url:
        signer = RemoteSigner(url, ME)
        wallet = Wallet(connection, signer)
        toy_market.fund(connection, ME)
        deployment = deploy(wallet)
        role, again = (Role(connection, deployment, signer, "memory://") for _ in range(2))
        role.deposit(1000)
        assert role.market.vault.free(ME) == 1000
        assert role.secret("seat", b"1") == again.secret("seat", b"1") != role.secret("seat", b"2")
        local = Role(connection, deployment, KEY, "memory://")
        assert local.secret("seat", b"1") != role.secret("seat", b"1")


def test_a_node_that_signs(node_chain: SharedChain) -> None:
    """Anvil has its own `eth_signTransaction`, with keys of its own."""
    connection = node_chain.connection
    with node_chain.lent():
        wallet = Wallet(connection, RemoteSigner(connection.name, connection.web3.eth.accounts[0]))
        assert wallet.transfer(wallet.address, 1)["status"] == 1
