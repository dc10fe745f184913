"""A signer in its own process, by JSON-RPC: Web3Signer or Clef. Its answers are checked, not trusted."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import requests
from eth_account import Account
from eth_account.messages import encode_typed_data
from eth_account.typed_transactions.typed_transaction import TypedTransaction
from eth_typing import ChecksumAddress
from eth_utils.address import to_checksum_address
from hexbytes import HexBytes
from web3.types import TxParams

from pol.chain.account.signers import hexadecimal_key, read_private
from pol.chain.account.typed_data import signed_struct
from pol.chain.rpc.http_deadline import body_of, bounded_session, within
from pol.chain.rpc.http_endpoint import public_name
from pol.commitments import canonical_json
from pol.commitments.keccak import keccak256
from pol.errors import OperationalError, ProtocolError

TIMEOUT = 30.0
"""Time limit of an answer, in seconds. A person who confirms in Clef needs more."""

SECRETS_TYPE = signed_struct("Secrets", "address account, string purpose")
SECRETS_PURPOSE = (
    "Whoever has this signature knows all secrets of this account's pol roles. Sign for your own role only."
)

_DOMAIN_TYPES = {
    "name": "string",
    "version": "string",
    "chainId": "uint256",
    "verifyingContract": "address",
    "salt": "bytes32",
}
_SIGNATURE_BYTES = 65
_SHOWN = 200
_MOST_BYTES = 1 << 20


class LyingSigner(OperationalError):
    """The signer's answer isn't the requested signature; nothing of it is used."""


class Api(StrEnum):
    """The kind of the signer, by the prefix of its methods."""

    WEB3SIGNER = "eth"
    CLEF = "account"


@dataclass(frozen=True, repr=False)
class RemoteSigner:
    """A signer at ``url`` that signs for ``address``; the key never comes here.

    timeout: seconds for each answer. secret_file: 64 hexadecimal digits as root of secrets, for a signer whose
    signatures of the same message differ each time.
    """

    url: str
    address: ChecksumAddress
    api: Api = Api.WEB3SIGNER
    timeout: float = TIMEOUT
    secret_file: Path | None = None

    def __repr__(self) -> str:
        return f"RemoteSigner({self.address} at {self.place})"

    @property
    def place(self) -> str:
        """The URL without its secrets."""
        return public_name(self.url)

    def sign_transaction(self, transaction: TxParams) -> bytes:
        """The signed transaction as it is broadcast (EIP-1559): exactly the given one, signed by this account.

        Raises:
            LyingSigner: the signer returned another transaction, or another account's.
            OperationalError: the signer fails, refuses or takes too long.
        """
        fields = {name: value for name, value in transaction.items() if name != "from"}
        asked = TypedTransaction.from_dict(fields)
        answer = self._call("signTransaction", _as_json({"from": self.address, **asked.as_dict()}))
        raw = answer.get("raw") if isinstance(answer, dict) else answer
        try:
            signed = TypedTransaction.from_bytes(HexBytes(raw))  # type: ignore[arg-type]  # checked by the conversion
            signer = Account.recover_transaction(signed.encode())
        except Exception:  # noqa: BLE001  # decoders raise anything for bytes that are no transaction
            raise LyingSigner(f"the signer at {self.place} returned no signed transaction of a known type") from None
        if signed.hash() != asked.hash():
            got = signed.as_dict()
            differing = ", ".join(name for name, value in asked.as_dict().items() if got.get(name) != value)
            raise LyingSigner(f"the signer at {self.place} signed another transaction than asked for: {differing}")
        self._require_own(signer)
        return signed.encode()

    def sign_typed(self, domain: dict[str, Any], types: dict[str, Any], message: dict[str, Any]) -> bytes:
        """An EIP-712 signature: r, s, v (27 or 28), 65 bytes. types: one struct of elementary members.

        Raises:
            LyingSigner: the signature is of another message or account.
            OperationalError: the signer fails, refuses or takes too long.
        """
        (primary,) = types
        members = [{"name": name, "type": kind} for name, kind in _DOMAIN_TYPES.items() if name in domain]
        data = {
            "types": {"EIP712Domain": members, **types},
            "primaryType": primary,
            "domain": {name: _hexadecimal(value) for name, value in domain.items()},
            # JSON numbers lose digits beyond 2^53 in many parsers.
            "message": {n: str(v) if type(v) is int else _hexadecimal(v) for n, v in message.items()},
        }
        # Older versions of Web3Signer take nothing but a string here; Clef takes no string.
        given = json.dumps(data) if self.api is Api.WEB3SIGNER else data
        answer = self._call("signTypedData", self.address, given)
        try:
            signature = bytes(HexBytes(answer))
            if len(signature) != _SIGNATURE_BYTES:
                raise ValueError
            # Some signers count v from 0, contracts from 27.
            signature = signature[:-1] + bytes([27 + signature[-1] % 27])
            signer = Account.recover_message(encode_typed_data(domain, types, message), signature=signature)
        except Exception:  # noqa: BLE001  # decoders raise anything for bytes that are no signature
            raise LyingSigner(f"the signer at {self.place} returned no signature of 65 bytes") from None
        self._require_own(signer)
        return signature

    def secret_key(self, chain_id: int) -> bytes:
        """32 bytes from the secret file, or the hash of this account's signature of a message for this purpose only.

        Raises:
            OperationalError: the signer fails or refuses, or its signatures of the same message differ.
        """
        if self.secret_file is not None:
            return hexadecimal_key(read_private(self.secret_file).decode("ascii", "replace"), str(self.secret_file))
        domain = {"name": "pol roles", "version": "1", "chainId": chain_id}
        message = {"account": self.address, "purpose": SECRETS_PURPOSE}
        first, again = (self.sign_typed(domain, SECRETS_TYPE, message) for _ in range(2))
        if first != again:
            raise OperationalError(
                f"the signer at {self.place} signs the same message differently each time, as keys in clouds and "
                "hardware do: secrets made of a signature would be lost at the next start. Give it a secret file"
            )
        return keccak256(first)

    def _call(self, method: str, *parameters: Any) -> Any:
        method = f"{self.api}_{method}"
        request: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(parameters)}
        try:
            with bounded_session() as session, within(self.timeout):
                options: dict[str, Any] = {"timeout": self.timeout, "allow_redirects": False, "stream": True}
                response = session.post(self.url, json=request, **options)
                body = body_of(response, _MOST_BYTES)
        except requests.RequestException as error:
            # Without its text, which contains the whole URL.
            trouble = type(error).__name__
            raise OperationalError(f"the signer at {self.place} doesn't answer {method} ({trouble})") from None
        try:
            answer = canonical_json.parse(body, "the answer")
        except ProtocolError:
            answer = None
        if isinstance(answer, dict) and answer.get("error") is not None:
            refusal = answer["error"].get("message") if isinstance(answer["error"], dict) else answer["error"]
            raise OperationalError(f"the signer at {self.place} refuses {method}: {str(refusal)[:_SHOWN]}")
        if response.status_code != requests.codes.ok or not isinstance(answer, dict) or "result" not in answer:
            trouble = f"HTTP status {response.status_code} and no result"
            raise OperationalError(f"the signer at {self.place} answers {method} with {trouble}")
        return answer["result"]

    def _require_own(self, signer: str) -> None:
        if signer != self.address:
            raise LyingSigner(
                f"the signer at {self.place} signed something else than it was asked for, or as {signer} and not as "
                f"{self.address}"
            )


def _as_json(fields: dict[str, Any]) -> dict[str, str]:
    """A transaction's fields for both APIs; a creation has no ``to``."""
    taken = {name: value for name, value in fields.items() if name not in ("type", "accessList", "to")}
    if fields["to"]:
        taken["to"] = to_checksum_address(fields["to"])
    return {name: hex(value) if isinstance(value, int) else _hexadecimal(value) for name, value in taken.items()}


def _hexadecimal(value: Any) -> Any:
    return "0x" + value.hex() if isinstance(value, bytes) else value
