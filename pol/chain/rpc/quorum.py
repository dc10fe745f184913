"""The agreement of several nodes: pure functions, and the fields in which answers have to agree."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

LOG = ("address", "topics", "data", "blockNumber", "blockHash", "transactionHash", "transactionIndex", "logIndex")
RECEIPT = (
    *("transactionHash", "transactionIndex", "blockHash", "blockNumber", "from", "to", "contractAddress", "status"),
    *("gasUsed", "cumulativeGasUsed", "effectiveGasPrice", "type", "logs"),
)
BLOCK = (
    *("number", "hash", "parentHash", "timestamp", "miner", "stateRoot", "receiptsRoot", "transactionsRoot"),
    *("logsBloom", "mixHash", "extraData", "baseFeePerGas", "gasLimit", "gasUsed", "transactions"),
)
TRANSACTION = (
    *("hash", "blockHash", "blockNumber", "transactionIndex", "from", "to", "nonce", "value", "input", "gas", "type"),
    *("maxFeePerGas", "maxPriorityFeePerGas"),
)
FIELDS = {
    "eth_getLogs": LOG,
    "eth_getTransactionReceipt": RECEIPT,
    "eth_getTransactionByHash": TRANSACTION,
    "eth_getBlockByNumber": BLOCK,
    "eth_getBlockByHash": BLOCK,
    "eth_feeHistory": ("oldestBlock", "baseFeePerGas", "reward"),
}
"""The fields of blocks, transactions, receipts and logs that all makes of nodes share."""


def agreed(answers: Sequence[str], needed: int) -> str | None:
    """The only answer that at least ``needed`` nodes gave; None if there is none, or more than one."""
    found = {answer for answer in answers if answers.count(answer) >= needed}
    return found.pop() if len(found) == 1 else None


def at_least(numbers: Sequence[int], needed: int) -> int | None:
    """The highest number that ``needed`` of these reach: fewer liars can't lift it above every honest one."""
    return sorted(numbers, reverse=True)[needed - 1] if len(numbers) >= needed else None


def comparable(answer: Any) -> str:
    """A canonical form of an answer: equal if and only if two nodes agree.

    Reverts agree by the returned data, since their messages differ; other errors agree by their code.
    """
    error = answer.get("error")
    if error is None:
        return json.dumps(["result", _without_nulls(answer["result"])], sort_keys=True).lower()
    if not isinstance(error, dict):
        return json.dumps(["error", None])
    data = error.get("data")
    if error.get("code") == 3 or (isinstance(data, str) and data.startswith("0x")):
        return json.dumps(["revert", str(data or "0x").lower()])
    return json.dumps(["error", error.get("code")])


def _without_nulls(value: Any) -> Any:
    """Without null fields, which some nodes leave out."""
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    if isinstance(value, dict):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return value


def reduced(method: str, result: Any) -> Any:
    """A result as all makes of nodes write it: only compared fields are passed on, and in lower case."""
    names, result = FIELDS.get(method), _lowered(result)
    if names is None or result is None:
        return result
    if isinstance(result, list):
        return [_only(names, item) for item in result]
    return _only(names, result)


def _lowered(value: Any) -> Any:
    if isinstance(value, list):
        return [_lowered(item) for item in value]
    if isinstance(value, dict):
        return {name: _lowered(item) for name, item in value.items()}
    return value.lower() if isinstance(value, str) else value


def _only(names: Sequence[str], item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    kept = {name: item[name] for name in names if name in item}
    if names is RECEIPT and isinstance(kept.get("logs"), list):
        kept["logs"] = [_only(LOG, log) for log in kept["logs"]]
    return kept
