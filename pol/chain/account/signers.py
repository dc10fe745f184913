"""Signers of an account: a key in this process, from a keystore file or, on test networks, from the environment."""

from __future__ import annotations

import getpass
import os
import re
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from eth_account import Account
from eth_typing import ChecksumAddress
from web3.types import TxParams

from pol.chain.node.networks import NETWORKS, is_test_net
from pol.commitments import canonical_json
from pol.errors import OperationalError, ProtocolError, reason_of

_KEY_BYTES = 32
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_CURVE_ORDER = 0xFFFFFFFF_FFFFFFFF_FFFFFFFF_FFFFFFFE_BAAEDCE6_AF48A03B_BFD25E8C_D0364141


class Signer(Protocol):
    """Signs for one account without showing its key."""

    @property
    def address(self) -> ChecksumAddress:
        """The account's address."""

    def sign_transaction(self, transaction: TxParams) -> bytes:
        """The signed transaction as it is broadcast (EIP-2718).

        Raises:
            OperationalError: the signer fails or refuses.
        """

    def sign_typed(self, domain: dict[str, Any], types: dict[str, Any], message: dict[str, Any]) -> bytes:
        """An EIP-712 signature: r, s, v (27 or 28), 65 bytes. types: one struct of elementary members.

        Raises:
            OperationalError: the signer fails or refuses.
        """

    def secret_key(self, chain_id: int) -> bytes:
        """32 bytes that follow from this account's key, the same at every start: the root of a role's secrets.

        Raises:
            OperationalError: the signer fails or refuses, or its signatures differ each time.
        """


class LocalSigner:
    """A 32-byte private key in this process's memory. Raises ProtocolError: the bytes aren't a private key."""

    def __init__(self, key: bytes) -> None:
        if len(key) != _KEY_BYTES or not 0 < int.from_bytes(key, "big") < _CURVE_ORDER:
            raise ProtocolError("a private key has 32 bytes, isn't zero and is below the order of secp256k1")
        self._account = Account.from_key(key)

    def __repr__(self) -> str:
        return f"LocalSigner({self.address})"

    @property
    def address(self) -> ChecksumAddress:
        """The account's address."""
        return self._account.address  # type: ignore[no-any-return]  # eth_account is untyped here

    def sign_transaction(self, transaction: TxParams) -> bytes:
        """The signed transaction as it is broadcast (EIP-2718)."""
        return bytes(self._account.sign_transaction(transaction).raw_transaction)

    def sign_typed(self, domain: dict[str, Any], types: dict[str, Any], message: dict[str, Any]) -> bytes:
        """An EIP-712 signature: r, s, v (27 or 28), 65 bytes."""
        return bytes(self._account.sign_typed_data(domain, types, message).signature)

    def secret_key(self, chain_id: int) -> bytes:
        """The private key, which can sign anyway."""
        return bytes(self._account.key)


def from_keystore(path: Path, passphrase: str) -> LocalSigner:
    """The key of a keystore file (Web3 secret storage, version 3).

    Raises:
        ProtocolError: no such file format, a wrong passphrase, a key of another address, or others may read the file.
        OperationalError: the file can't be read.
    """
    content = read_private(path)
    # Raised without cause: exceptions of parsers contain the file, those of ciphers the passphrase.
    try:
        # Old files write Crypto.
        keystore = {name.lower(): value for name, value in canonical_json.parse(content, "it").items()}
        is_keystore = keystore["version"] == 3 and {"kdf", "ciphertext", "mac"} <= keystore["crypto"].keys()
    except (ProtocolError, TypeError, LookupError, AttributeError):
        is_keystore = False
    if not is_keystore:
        raise ProtocolError(f"{path} isn't a keystore file of version 3: geth, clef, cast or eth_account write one")
    try:
        key = bytes(Account.decrypt(keystore, passphrase))
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, MemoryError) as error:
        if "MAC mismatch" in str(error):
            raise ProtocolError(f"the passphrase doesn't open {path}") from None
        raise ProtocolError(f"{path} is a damaged keystore file, or of a kind that isn't known") from None
    signer = LocalSigner(key)
    said = str(keystore.get("address", "")).lower().removeprefix("0x")
    if said and said != signer.address[2:].lower():
        raise ProtocolError(f"{path} says that it is of another address than its key's, {signer.address}")
    return signer


def from_key_file(path: Path, chain_id: int, passphrase: Callable[[], str]) -> LocalSigner:
    """The key in a file: a keystore, whose passphrase is then asked for; or 64 hexadecimal digits, on test networks.

    Raises:
        ProtocolError: no key, a wrong passphrase, others may read the file, or a plain key where a chain may be worth
            money.
        OperationalError: the file can't be read.
    """
    content = read_private(path).strip()
    if not re.fullmatch(rb"(0x)?[0-9a-fA-F]{64}", content):
        return from_keystore(path, passphrase())
    if not is_test_net(chain_id):
        raise ProtocolError(
            f"{path} holds a plain key, which is for test networks only: on chain {chain_id} use a keystore"
        )
    return LocalSigner(hexadecimal_key(content.decode(), str(path)))


def read_passphrase(file: Path | None) -> str:
    """A passphrase from a file (without the last newline), or from the terminal.

    Raises:
        ProtocolError: others may read the file, or it isn't text.
        OperationalError: it can't be read, or there is no terminal.
    """
    if file is None:
        if not sys.stdin.isatty():
            raise OperationalError("there is no terminal to ask for the passphrase: name a file that has it")
        return getpass.getpass("Passphrase of the keystore: ")
    try:
        return read_private(file).decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise ProtocolError(f"the passphrase in {file} isn't text in UTF-8") from None


def from_environment(variable: str, chain_id: int) -> LocalSigner:
    """The key in an environment variable, 64 hexadecimal digits; on test networks only.

    Raises:
        ProtocolError: the chain may be worth money, or the variable holds no key.
    """
    if not is_test_net(chain_id):
        names = ", ".join(network.title for network in NETWORKS.values())
        raise ProtocolError(
            f"on chain {chain_id} no key is taken from the environment, which child processes inherit and crash "
            f"reports copy: use a keystore file or a signer of its own. The environment is for {names}"
        )
    text = os.environ.get(variable)
    if not text:
        raise ProtocolError(f"the environment variable {variable} isn't set: it should hold a private key")
    return LocalSigner(hexadecimal_key(text, f"the environment variable {variable}"))


def hexadecimal_key(text: str, place: str) -> bytes:
    """32 bytes from 64 hexadecimal digits, with or without 0x; messages name the place and never its content.

    Raises:
        ProtocolError: the text is something else.
    """
    digits = text.strip().removeprefix("0x")
    try:
        key = bytes.fromhex(digits)
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise ProtocolError(f"{place} doesn't hold 32 bytes as 64 hexadecimal digits")
    return key


def read_private(path: Path) -> bytes:
    """The content of a file that only its owner may read.

    Raises:
        ProtocolError: others may read or write it.
        OperationalError: it can't be read.
    """
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & _OTHERS:
                raise ProtocolError(f"others than its owner may read or change {path}: run chmod 600 {path}")
            return file.read()
    except OSError as error:
        raise OperationalError(f"can't read {path}: {reason_of(error)}") from None
