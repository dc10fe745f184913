"""Reasons for which nodes refuse a transaction, recognized by their words."""

from __future__ import annotations

from enum import Enum


class Refusal(Enum):
    """A reason, as far as it decides what to do next."""

    KNOWN = (
        *("already known", "already imported", "already_exists", "alreadyknown"),
        *("known transaction", "already in mempool", "same hash"),
    )
    """It has the transaction."""

    USED = ("nonce too low", "nonce is too low", "oldnonce")
    LOW_FEE = ("underpriced", "max fee per gas less than block base fee", "fee too low", "price supplied is too low")
    UNSURE = ("internal error", "timeout", "timed out", "too many requests", "rate limit", "limit exceeded")
    """It may have accepted the transaction nevertheless."""

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
        """The reason in a message of Geth, Nethermind, Erigon, Besu, Reth or anvil."""
        return next((r for r in cls if any(words in message.lower() for words in r.value)), cls.OTHER)
