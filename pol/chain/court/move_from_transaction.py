"""Moves decoded from the calldata of transactions, for people who follow a dispute in an explorer."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from eth_typing import ChecksumAddress
from hexbytes import HexBytes
from web3.exceptions import TransactionNotFound
from web3.types import TxData

from pol.chain.court.dispute_game import DisputeGame
from pol.chain.node.connection import Connection, operational
from pol.dispute.encoding.move_decoding import PackedMove, StoredPlace, decode
from pol.dispute.position import Level
from pol.errors import OperationalError, ProtocolError


@dataclass(frozen=True)
class SentMove:
    """A move with its transaction. ``block`` is None while no block holds it."""

    move: PackedMove
    game: ChecksumAddress
    sender: ChecksumAddress
    block: int | None
    reverted: bool


def sent_move(connection: Connection, games: Sequence[DisputeGame], transaction: bytes) -> SentMove:
    """The move of a transaction in one of these games.

    Raises:
        OperationalError: the node doesn't know the transaction, or fails.
        ProtocolError: the transaction is no move.
    """
    found, reverted = _transaction(connection, transaction)
    game = next((game for game in games if game.address == found.get("to")), None)
    if game is None:
        target = found.get("to") or "no contract: it creates one"
        raise ProtocolError(
            f"transaction 0x{transaction.hex()} is no move: it calls {target}, and moves are sent to "
            f"{' or '.join(game.address for game in games)}. The challenge that begins a dispute goes to the market"
        )
    data, block = bytes(found["input"]), found.get("blockNumber")
    move = decode(data, bits=game.bits)
    # Only the meaning of an answer depends on the position before it.
    place = _place_before(game, move.dispute, found) if move.function == "answer" else None
    if place is not None and place.level in move.levels:
        with suppress(ProtocolError):  # a late or repeated answer was made for an earlier place
            move = decode(data, place)
    return SentMove(move, game.address, found["from"], block, reverted)


def _transaction(connection: Connection, transaction: bytes) -> tuple[TxData, bool]:
    """A transaction, and whether it was reverted."""
    with operational(f"read transaction 0x{transaction.hex()}"):
        try:
            found = connection.web3.eth.get_transaction(HexBytes(transaction))
        except TransactionNotFound as error:
            raise OperationalError(
                f"{connection.name} knows no transaction 0x{transaction.hex()}: is it of this chain, and complete?"
            ) from error
        if found.get("blockNumber") is None:
            return found, False
        return found, connection.web3.eth.get_transaction_receipt(HexBytes(transaction))["status"] == 0


def _place_before(game: DisputeGame, dispute: int, found: TxData) -> StoredPlace | None:
    """The place of a dispute before a transaction; None without old states, or after other moves in the same block."""
    block, web3 = found.get("blockNumber"), game.connection.web3
    try:
        with operational("read a dispute"):
            if block is not None:
                topic = HexBytes(dispute.to_bytes(32, "big"))  # the only one of the event Moved
                logs = web3.eth.get_logs(
                    {"fromBlock": block, "toBlock": block, "address": game.address, "topics": [topic]}
                )
                if any(log["transactionIndex"] < found["transactionIndex"] for log in logs):
                    return None
            _, clock = game.read("dispute", dispute, at=None if block is None else block - 1)
    except OperationalError:
        return None
    return StoredPlace(Level(clock[1]), int(clock[2]), game.bits)
