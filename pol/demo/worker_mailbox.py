"""Messages between workers that come, die and return: a mailbox in which bytes wait for their readers."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from datetime import timedelta

from torch.distributed import TCPStore  # type: ignore[attr-defined]  # torch doesn't declare that it exports it

from pol.decentralised.exchange import Exchange
from pol.errors import OperationalError

HOST = "127.0.0.1"
PATIENCE = timedelta(seconds=90)


class Mailbox:
    """Bytes by name. The process without a ``port`` holds them, the others read and write."""

    def __init__(self, port: int = 0) -> None:
        listening = None
        if not port:  # torch's own socket would listen to the whole network
            own = socket.create_server((HOST, 0))
            port, listening = own.getsockname()[1], own.detach()
        self._store = TCPStore(
            HOST,
            port,
            is_master=listening is not None,
            timeout=PATIENCE,
            wait_for_workers=False,
            master_listen_fd=listening,
        )

    @property
    def port(self) -> int:
        """Where the mailbox listens."""
        return int(self._store.port)

    def put(self, name: str, data: bytes = b"") -> None:
        """Leave bytes."""
        self._store.set(name, data.hex() + ".")

    def has(self, name: str) -> bool:
        """Whether there is something of this name."""
        return bool(self._store.check([name]))

    def get(self, name: str) -> bytes:
        """Wait for bytes.

        Raises:
            OperationalError: they haven't come in time.
        """
        try:
            self._store.wait([name], PATIENCE)
            return bytes.fromhex(self._store.get(name).decode()[:-1])
        except RuntimeError as error:
            raise OperationalError(
                f"{name} hasn't come in {PATIENCE.seconds} s: see whether its worker lives"
            ) from error


@dataclass
class MailboxExchange(Exchange):
    """The exchange of one round, whose gathers have numbers.

    What a killed worker has left stays there. When it is back it leaves the same again, and reads all that it needs.
    """

    mailbox: Mailbox | None = None
    round: int = 0
    place: int = 0
    members: int = 1
    gathers: int = 0

    @property
    def rank(self) -> int:
        """The place of this worker in the roster."""
        return self.place

    @property
    def size(self) -> int:
        """The number of members."""
        return self.members

    def gather(self, data: bytes) -> list[bytes]:
        """The bytes of every member, in the order of the roster."""
        assert self.mailbox is not None
        name = f"round {self.round}, message {self.gathers} of member"
        self.gathers += 1
        self.mailbox.put(f"{name} {self.place}", data)
        self.sent += (self.size - 1) * len(data)
        return [self.mailbox.get(f"{name} {place}") for place in range(self.size)]
