"""What nodes answer when they refuse a transaction."""

from __future__ import annotations

from enum import Enum


class Refusal(Enum):
    """Why a node doesn't take a transaction, as far as that says what to do."""

    KNOWN = ("already known", "already imported", "known transaction", "same hash", "alreadyknown")
    USED = ("nonce too low", "nonce is too low", "oldnonce")
    LOW_FEE = ("underpriced", "max fee per gas less than block base fee", "fee too low", "price supplied is too low")
    UNSURE = ("internal error", "timeout", "timed out", "too many requests", "rate limit", "limit exceeded")
    """It may have taken the transaction nevertheless."""

    FUNDS = (
        "insufficient funds",
        "insufficient balance",
        "cannot afford",
        "sender doesn't have enough funds",
        "insufficientfunds",
        "does not have enough balance",
    )
    OTHER = ()

    @classmethod
    def of(cls, message: str) -> Refusal:
        """Geth, Nethermind, Erigon, Besu, Reth and anvil say the same in different words."""
        return next((r for r in cls if any(words in message.lower() for words in r.value)), cls.OTHER)
