"""Private keys in unencrypted PEM files."""

from __future__ import annotations

from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from pol.errors import OperationalError, ProtocolError, reason_of


def load_signing_key(key: Ed25519PrivateKey | str | Path) -> Ed25519PrivateKey:
    """The key, or the one in a PEM file (``openssl genpkey -algorithm ed25519 -out key.pem``)."""
    loaded = key if isinstance(key, Ed25519PrivateKey) else _read(key, "ed25519")
    if not isinstance(loaded, Ed25519PrivateKey):
        raise ProtocolError(f"{key} holds a key of another kind; {_remedy(key, 'ed25519')}")
    return loaded


def load_opening_key(key: X25519PrivateKey | str | Path) -> X25519PrivateKey:
    """As `load_signing_key`, with ``-algorithm x25519``."""
    loaded = key if isinstance(key, X25519PrivateKey) else _read(key, "x25519")
    if not isinstance(loaded, X25519PrivateKey):
        raise ProtocolError(f"{key} holds a key of another kind; {_remedy(key, 'x25519')}")
    return loaded


def _read(path: str | Path, algorithm: str) -> object:
    if not isinstance(path, str | Path):  # never printed: it may be the key itself
        raise ProtocolError(f"an {algorithm} key or the name of its PEM file is needed, not {type(path).__name__}")
    try:
        return load_pem_private_key(Path(path).read_bytes(), password=None)
    except OSError as error:
        raise OperationalError(f"can't read the key {path}: {reason_of(error)}; {_remedy(path, algorithm)}") from error
    except TypeError as error:
        raise ProtocolError(f"the key {path} is encrypted: decrypt it, or load it and give the object") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ProtocolError(f"{path} holds no private key in PEM form: {error}") from error


def _remedy(path: object, algorithm: str) -> str:
    return f"make one with: openssl genpkey -algorithm {algorithm} -out {path}"
