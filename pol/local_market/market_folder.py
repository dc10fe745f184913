"""The folder of a market on this machine: keys, chain, store, and the file by which other commands find it."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shutil
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from pol.chain.account.signers import hexadecimal_key, read_private
from pol.chain.node.network_settings import FILE
from pol.errors import OperationalError

MARK = "market.lock"
"""Its presence says that a folder is a market's; the lock on it, that `pol up` runs there."""


class MarketFolder:
    """The files of a market; every path is absolute."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self.place = self.path / FILE
        """Written last: a folder without it is half-written."""
        self.deployment = self.path / "deployment.json"
        self.store = self.path / "store"
        self.chain = self.path / "chain"
        self.logs = self.path / "logs"
        self.parties = self.path / "parties"
        self.processes = self.path / "processes.json"

    @property
    def is_ready(self) -> bool:
        """Whether a market was set up here completely."""
        return self.place.is_file()

    @property
    def port(self) -> int | None:
        """The port of the node when the market ran last."""
        with suppress(OSError, ValueError, LookupError, TypeError):
            return urlsplit(str(tomllib.loads(self.place.read_text())["networks"]["local"]["rpc"])).port
        return None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """A context for the one `pol up` of this folder. A half-written market is cleared, but for its keys."""
        mark = self.path / MARK
        try:
            if self.path.exists() and not mark.exists() and any(self.path.iterdir()):
                raise OperationalError(f"{self.path} holds other files: name another folder by --folder")
            self.path.mkdir(parents=True, exist_ok=True)
            with mark.open("a") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError as error:
                    raise OperationalError(
                        f"another `pol up` runs in {self.path}: use it, end it with ^C, or name another --folder"
                    ) from error
                if not self.is_ready:
                    self._clear()
                for folder in (self.store, self.chain, self.logs, self.parties):
                    folder.mkdir(exist_ok=True)
                yield
        except OSError as error:
            raise OperationalError(f"can't write the market's folder {self.path}: {error.strerror or error}") from error

    def _clear(self) -> None:
        for folder in (self.store, self.chain, self.logs, self.parties):
            shutil.rmtree(folder, ignore_errors=True)
        self.deployment.unlink(missing_ok=True)

    def key_file(self, party: str) -> Path:
        """The file with a party's key, 64 hexadecimal digits."""
        return self.path / "keys" / f"{party}.key"

    def key(self, party: str) -> bytes:
        """A party's key, drawn when it is first asked for; only its owner may read the file."""
        file = self.key_file(party)
        if not file.exists():
            file.parent.mkdir(mode=0o700, exist_ok=True)
            draft = file.with_suffix(".draft")
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as written:
                written.write(secrets.token_bytes(32).hex() + "\n")
            os.replace(draft, file)
        return hexadecimal_key(read_private(file).decode(errors="replace"), str(file))

    def write_place(self, url: str) -> None:
        """Write `pol.toml`: where the node, the contracts and the store are, and the submitter's key."""
        entries = {
            "rpc": url,
            "deployment": str(self.deployment),
            "store": str(self.store),
            "key": str(self.key_file("submitter")),
        }
        lines = [
            "# Written by `pol up`, anew at each start. The keys of this market are worth nothing elsewhere.",
            'network = "local"',
            "",
            "[networks.local]",
            # JSON's strings are TOML's.
            *(f"{name} = {json.dumps(value)}" for name, value in entries.items()),
        ]
        draft = self.place.with_suffix(".draft")
        draft.write_text("\n".join(lines) + "\n")
        os.replace(draft, self.place)
