"""Settings of networks that several commands share, from `pol.toml`: docs/guides/configure.md."""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from pol.errors import OperationalError, ProtocolError, reason_of

FILE = "pol.toml"
VARIABLE = "POL_CONFIG"
"""The environment variable that names a file in place of a `pol.toml` here or above."""
SETTINGS = {
    "rpc": "node, or a list of nodes",
    "deployment": "file that `pol deploy` wrote",
    "store": "store of tasks and proofs: folder or URL",
    "key": "file with the account's key: a keystore, or plain on test networks",
    "passphrase": "file with the keystore's passphrase",
}
"""By name: what it is."""
PATHS = frozenset({"deployment", "key", "passphrase"})
_SECRET = re.compile(r"(0x)?[0-9a-fA-F]{64}|.*PRIVATE KEY.*|\s*\{.*|\s*(\w+\s+){11,}\w+\s*", re.DOTALL)
Value = str | tuple[str, ...]


@dataclass(frozen=True)
class Setting:
    """A value, and the file that it comes from. Paths are absolute."""

    value: Value
    file: Path


@dataclass(frozen=True)
class NetworkSettings:
    """What the files say of one network: a `pol.toml` here or above, then the user's file."""

    network: Setting | None
    values: Mapping[str, Setting] = field(default_factory=dict)


def is_secret(value: str) -> bool:
    """Whether a value looks like a key itself: hexadecimal, PEM, a keystore's JSON or a phrase of words."""
    return _SECRET.fullmatch(value) is not None


def user_file() -> Path:
    """The user's own file, whether it exists or not."""
    return Path(click.get_app_dir("pol")) / FILE


def project_file() -> Path | None:
    """The file that the environment names; else the nearest `pol.toml` in this folder or above it.

    Raises:
        ProtocolError: the file found belongs to somebody else, who would choose node and contracts for this user's key.
    """
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named).absolute()
    here = Path.cwd()
    for folder in (here, *here.parents):
        file = folder / FILE
        if file.is_file():
            require_own(file)
            return file
    return None


def require_own(file: Path, trust: str = "") -> None:
    """Raise ProtocolError if others may write a file that was found, or have put a link there; or OperationalError.

    ``trust`` is what to do with one that is trusted: by default, to name it in the environment.
    """
    try:
        status, link = file.stat(), file.lstat()
    except OSError as error:
        raise OperationalError(f"can't read the settings {file}: {reason_of(error)}") from error
    if not {status.st_uid, link.st_uid} <= {os.geteuid(), 0} or status.st_mode & stat.S_IWOTH:
        trust = trust or f"set {VARIABLE}={file}"
        raise ProtocolError(
            f"others than you may write {file}, and so choose your node and contracts: {trust} if you trust it"
        )


def read_settings(network: str | None = None) -> NetworkSettings:
    """The settings of a network, by default of the one that the files choose.

    Raises:
        ProtocolError: a file isn't such a file, holds a key, or no file has that network.
        OperationalError: a file can't be read.
    """
    named = project_file()
    files = [named] if named is not None else []
    if user_file().is_file() and user_file() != named:
        files.append(user_file())
    documents = {file: read_document(file) for file in files}
    chosen = None if network is None else Setting(network, Path())
    values: dict[str, Setting] = {}
    for file, document in documents.items():
        if chosen is None and "network" in document:
            chosen = Setting(document["network"], file)
    if chosen is None:
        return NetworkSettings(None)
    known = sorted({name for document in documents.values() for name in document.get("networks", {})})
    if chosen.value not in known:
        names = ", ".join(known) or "none"
        raise ProtocolError(
            f"no file has a network {chosen.value} (there is {names}): `pol config set rpc URL --network "
            f"{chosen.value}` adds it"
        )
    for file, document in documents.items():
        for name, value in document.get("networks", {}).get(chosen.value, {}).items():
            values.setdefault(name, Setting(_placed(name, value, file.parent), file))
    return NetworkSettings(chosen, values)


def read_document(file: Path) -> dict[str, Any]:
    """The checked content of a file: ``network`` and ``networks``, by name a table of `SETTINGS`.

    Raises:
        ProtocolError: it has another form, or holds a key.
        OperationalError: it can't be read.
    """
    try:
        document = tomllib.loads(file.read_bytes().decode())
    except OSError as error:
        raise OperationalError(f"can't read the settings {file}: {reason_of(error)}") from error
    except UnicodeDecodeError as error:
        raise ProtocolError(f"{file} isn't text in UTF-8: save it as UTF-8") from error
    except (ValueError, RecursionError) as error:  # of the grammar, or a number of thousands of digits
        raise ProtocolError(f"{file} isn't TOML: {error}") from error
    require_names(document, ("network", "networks"), str(file))
    networks = document.get("networks", {})
    if not isinstance(document.get("network", ""), str) or not isinstance(networks, dict):
        raise ProtocolError(f'{file}: write network = "NAME" and a table [networks.NAME]')
    for name, table in networks.items():
        if not isinstance(table, dict):
            raise ProtocolError(f"{file}: networks.{name} isn't a table: write [networks.{name}]")
        require_names(table, tuple(SETTINGS), f"{file}, [networks.{name}]")
        for setting, value in table.items():
            require_value(setting, value, f"{file}, [networks.{name}]")
    return document


def require_names(table: Mapping[str, Any], known: tuple[str, ...], place: str) -> None:
    """Raise ProtocolError if a table has another name than the known ones."""
    for name in table:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(known)}."
            raise ProtocolError(f"{place}: there is no setting {name!r}. {hint}")


def require_value(setting: str, value: Any, place: str) -> None:
    """Raise ProtocolError if a setting can't have this value; the message doesn't show it."""
    values = value if isinstance(value, list) and setting == "rpc" else [value]
    if not values or not all(isinstance(each, str) and each for each in values):
        kind = "a text or a list of texts" if setting == "rpc" else "a text"
        raise ProtocolError(f"{place}: {setting} has to be {kind}, the {SETTINGS[setting]}")
    if setting in ("key", "passphrase") and is_secret(values[0]):
        raise ProtocolError(
            f"{place}: {setting} holds a secret itself: write it to a file of mode 600, and name the file"
        )


def _placed(name: str, value: Any, folder: Path) -> Value:
    """A value with paths resolved against the folder of its file."""
    if name == "rpc":
        return tuple(value) if isinstance(value, list) else (str(value),)
    if name in PATHS or (name == "store" and "://" not in value):
        return str(folder / Path(value).expanduser())
    return str(value)
