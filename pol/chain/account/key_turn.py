"""Whose turn it is to send with a key on a chain: processes and commands of one user on a machine send in turn."""

from __future__ import annotations

import os
from contextlib import suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path

import click


class KeyTurn:
    """The turn of one key on one chain; ``name`` is that of the key's journals. The system ends it with its process.

    A command waits for it as long as for a transaction, then refuses: behind another one's nothing gets into a block.
    A process goes on sooner, as beside a stranger: a command that is stopped must not take its clocks.
    """

    def __init__(self, name: str, for_command: bool = False) -> None:
        self.for_command = for_command
        self._path, self._file = Path(click.get_app_dir("pol")) / "sent" / f"{name}.turn", -1

    def take(self) -> bool:
        """Take the turn, unless another one has it; where nothing can be locked it is always free."""
        if self._file >= 0:
            return True
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self._path, os.O_CREAT | os.O_RDWR, 0o600)
            flock(self._file, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            self._close()
            return False
        except OSError:
            self._close()
        return True

    def next_nonce(self) -> int:
        """The nonce behind those that have been used in turn; 0 if that isn't known."""
        told = b""
        if self._file >= 0:
            with suppress(OSError):
                told = os.pread(self._file, 20, 0)
        return int(told) if told.isdigit() else 0

    def end(self, nonce: int | None) -> None:
        """The next one's turn, from this nonce on."""
        if self._file >= 0 and nonce is not None:
            with suppress(OSError):
                os.pwrite(self._file, b"%020d" % nonce, 0)
        self._close()

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
