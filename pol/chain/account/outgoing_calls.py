"""What is asked of an outbox."""

from __future__ import annotations

from dataclasses import dataclass

from pol.chain.account.outbox_journal import Intent


@dataclass(frozen=True)
class OutgoingCall:
    """What is to happen: ``to`` None creates a contract; ``value`` in wei; ``gas`` None is found by simulation."""

    name: str
    to: str | None
    value: int = 0
    data: bytes = b""
    gas: int | None = None

    def is_of(self, intent: Intent) -> bool:
        """Whether the intent has the same effect."""
        return (self.to, self.value, self.data) == (intent.to, intent.value, intent.data)
