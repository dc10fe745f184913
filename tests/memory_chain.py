"""A node in the memory of this process: revm under the JSON-RPC of anvil, for tests that need no server.

It has the state of its latest block alone. Its time passes by blocks and orders, never by itself, so equal calls give
equal chains.
For contracts the base fee is zero, as pyrevm has it: a test of what they price by it asks a real node.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import rlp
from eth_account import Account
from eth_account.typed_transactions import TypedTransaction
from eth_utils.address import to_checksum_address
from hexbytes import HexBytes
from pyrevm import EVM, AccountInfo, BlockEnv, CfgEnv, Env, JournalCheckpoint
from web3 import Web3
from web3.providers.base import JSONBaseProvider
from web3.types import RPCEndpoint, RPCResponse

from loopback_server import Quiet, serving
from pol.chain.contract.creation import FACTORY, FACTORY_CODE
from pol.chain.node.connection import Connection
from pol.commitments.keccak import keccak256

CHAIN_ID = 31337
GENESIS_TIME = 1_767_225_600
RICH = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266", "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
"""The accounts that the node unlocks."""
GAS_LIMIT = 30_000_000
BASE_FEE = TIP = 10**9
USUAL = {"value": 0, "gas": 10_000_000, "maxPriorityFeePerGas": TIP, "maxFeePerGas": 1000 * TIP}
"""Of a transaction that the node signs."""
PADDING = bytes(33)
"""What revm has behind the code of a contract."""
EPOCHS = 64
"""Blocks that follow a finalized one."""
NO_ADDRESS = "0x" + "00" * 20
MINER = "0x" + "00" * 19 + "fe"
"""Gets the fees."""


class Refused(Exception):
    """The answer to a request is an error."""

    def __init__(self, code: int, message: str, data: str | None = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message} | ({} if data is None else {"data": data})


@dataclass(frozen=True)
class Sent:
    """A transaction with its sender."""

    sender: str
    nonce: int
    to: str | None
    value: int
    data: bytes
    gas: int
    tip: int
    most_fee: int
    raw: bytes

    @property
    def hash(self) -> str:
        return "0x" + keccak256(self.raw).hex()


@dataclass(frozen=True)
class Past:
    """All that a block, an order or a transaction changes; the lists and maps are replaced or only grow."""

    evm: JournalCheckpoint
    blocks: int
    logs: int
    base_fee: int
    nonces: dict[str, int]


@dataclass
class Clock:
    """What orders say about the next block."""

    lead: int = 0
    """Seconds by which its time is ahead."""
    at: int | None = None


class MemoryChain(JSONBaseProvider):
    """The provider of a web3 whose chain it is."""

    def __init__(self, began: int = GENESIS_TIME) -> None:
        super().__init__()
        self.trouble: Callable[[str], None] = lambda method: None
        """Is asked before each request, and may raise."""
        self._lock, self._began = threading.RLock(), began
        self._evm = EVM(env=Env(cfg=CfgEnv(chain_id=CHAIN_ID)), spec_id="PRAGUE")
        for account in RICH:
            self._evm.set_balance(account, 10**30)
        self._evm.insert_account_info(FACTORY, AccountInfo(nonce=1, code=FACTORY_CODE))
        self._blocks = list[dict[str, Any]]()
        self._checkpoints = list[JournalCheckpoint]()
        """Before each block."""
        self._logs = list[dict[str, Any]]()
        self._sent = dict[str, dict[str, Any]]()
        self._receipts = dict[str, dict[str, Any]]()
        self._pool = list[Sent]()
        self._nonces = dict[str, int]()
        self._clock, self._base_fee, self._automine = Clock(), BASE_FEE, True
        self._pasts = list[Past]()
        self.entropy = 0
        """From it, and from its parent, the hash of a block follows: a block that comes again has another one."""
        self._mine()

    def make_request(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        with self._lock:
            self.trouble(method)
            return self._answer(method, params)

    def _answer(self, method: RPCEndpoint, params: Any) -> RPCResponse:
        try:
            name = re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", method)
            handler: Callable[..., Any] | None = getattr(self, f"_{name}", None)
            if handler is None:
                raise Refused(-32601, f"this chain has no method {method}")
            return {"jsonrpc": "2.0", "id": 1, "result": handler(*params)}
        except Refused as refusal:
            return {"jsonrpc": "2.0", "id": 1, "error": refusal.error}  # type: ignore[typeddict-item]  # a plain dict

    def make_batch(self, requests: Sequence[tuple[RPCEndpoint, Any]]) -> list[RPCResponse | None]:
        """Answers to many requests; none if the node has trouble."""
        try:
            return [self.make_request(method, params) for method, params in requests]
        except ConnectionError:
            return [None] * len(requests)

    # blocks

    @property
    def height(self) -> int:
        """Number of the latest block."""
        return len(self._blocks) - 1

    @property
    def now(self) -> int:
        """Time of the latest block."""
        return int(self._head["timestamp"], 16)

    @property
    def _head(self) -> dict[str, Any]:
        return self._blocks[-1]

    def _mine(self) -> None:
        number = len(self._blocks)
        last = int(self._head["timestamp"], 16) if self._blocks else self._began - 1
        now = max(last + 1, self._clock.at if self._clock.at is not None else last + 1 + self._clock.lead)
        self._clock = Clock()
        parent = self._head["hash"] if self._blocks else "0x" + "00" * 32
        hash_ = "0x" + keccak256(f"{parent} {number} {now} {self.entropy}".encode()).hex()
        self._checkpoints.append(self._checkpoint())
        mined = list[Sent]()
        block = {
            "number": hex(number), "hash": hash_, "parentHash": parent, "timestamp": hex(now),
            "gasLimit": hex(GAS_LIMIT), "baseFeePerGas": hex(self._base_fee), "miner": NO_ADDRESS, "difficulty": "0x0",
            "totalDifficulty": "0x0", "extraData": "0x", "nonce": "0x" + "00" * 8, "size": "0x0", "uncles": [],
            "logsBloom": "0x" + "00" * 256, "mixHash": hash_,
        }  # fmt: skip
        block |= dict.fromkeys(("stateRoot", "transactionsRoot", "receiptsRoot", "sha3Uncles"), "0x" + "00" * 32)
        self._blocks.append(block)
        self._enter(block)
        used = 0
        while ready := [each for each in self._pool if self._is_ready(each, GAS_LIMIT - used)]:
            mined.append(max(ready, key=lambda each: min(each.tip, each.most_fee - self._base_fee)))
            self._pool.remove(mined[-1])
            used += self._execute(mined[-1], block, len(mined) - 1)
        self._pool = [each for each in self._pool if each.nonce >= self._nonces.get(each.sender, 0)]
        block |= {"gasUsed": hex(used), "transactions": [each.hash for each in mined]}

    def _is_ready(self, sent: Sent, gas: int) -> bool:
        is_next = sent.nonce == self._nonces.get(sent.sender, 0)
        return is_next and sent.most_fee >= self._base_fee and sent.gas <= gas

    def _enter(self, block: dict[str, Any]) -> None:
        self._evm.set_block_env(
            BlockEnv(
                number=int(block["number"], 16),
                timestamp=int(block["timestamp"], 16),
                basefee=self._base_fee,
                prevrandao=bytes.fromhex(block["mixHash"][2:]),
                gas_limit=GAS_LIMIT,
            )
        )

    def _execute(self, sent: Sent, block: dict[str, Any], index: int) -> int:
        price = min(sent.most_fee, self._base_fee + sent.tip)
        created, status = None, 1
        self._nonces[sent.sender] = sent.nonce + 1
        try:
            if sent.to is None:
                created = self._evm.deploy(sent.sender, sent.data, sent.value, sent.gas, price)
            else:
                self._evm.message_call(sent.sender, sent.to, sent.data, sent.value, sent.gas, price)
        except RuntimeError:
            status = 0
        result = self._evm.result
        used = result.gas_used
        self._evm.message_call(sent.sender, MINER, b"", used * price)
        place = {
            "blockNumber": block["number"], "blockHash": block["hash"], "transactionHash": sent.hash,
            "transactionIndex": hex(index),
        }  # fmt: skip
        first = sum(log["blockNumber"] == block["number"] for log in self._logs[-1000:])
        logs = [
            {"address": to_checksum_address(log.address), "topics": log.topics, "data": "0x" + log.data[1].hex(),
             "logIndex": hex(first + number), "removed": False} | place
            for number, log in enumerate(result.logs if status else [])
        ]  # fmt: skip
        self._logs += logs
        self._sent[sent.hash] = {
            "hash": sent.hash, "from": sent.sender, "to": sent.to, "nonce": hex(sent.nonce), "value": hex(sent.value),
            "input": "0x" + sent.data.hex(), "gas": hex(sent.gas), "maxFeePerGas": hex(sent.most_fee), "type": "0x2",
            "maxPriorityFeePerGas": hex(sent.tip), "gasPrice": hex(price), "chainId": hex(CHAIN_ID),
        } | place  # fmt: skip
        self._receipts[sent.hash] = {
            "from": sent.sender, "to": sent.to, "status": hex(status), "gasUsed": hex(used), "logs": logs,
            "effectiveGasPrice": hex(price), "contractAddress": created and to_checksum_address(created),
            "cumulativeGasUsed": hex(used), "logsBloom": "0x" + "00" * 256, "type": "0x2",
        } | place  # fmt: skip
        return int(used)

    def _checkpoint(self) -> JournalCheckpoint:
        """The present state, to go back to."""
        checkpoint = self._evm.snapshot()
        self._evm.commit()  # else each would count as a level of calls
        return checkpoint

    def _go_back(self, checkpoint: JournalCheckpoint) -> None:
        self._evm.snapshot()
        self._evm.revert(checkpoint)

    # reading

    def _web3_client_version(self) -> str:
        return "anvil's methods over revm in memory"

    def _eth_chain_id(self) -> str:
        return hex(CHAIN_ID)

    def _net_version(self) -> str:
        return str(CHAIN_ID)

    def _eth_accounts(self) -> list[str]:
        return list(RICH)

    def _eth_syncing(self) -> bool:
        return False

    def _eth_block_number(self) -> str:
        return str(self._head["number"])

    def _eth_gas_price(self) -> str:
        return hex(self._base_fee + TIP)

    def _eth_max_priority_fee_per_gas(self) -> str:
        return hex(TIP)

    def _eth_get_block_by_number(self, block: str, full: bool = False) -> dict[str, Any] | None:
        number = self._number(block)
        return self._blocks[number] if number < len(self._blocks) else None

    def _eth_get_block_by_hash(self, hash_: str, full: bool = False) -> dict[str, Any] | None:
        return next((block for block in reversed(self._blocks) if block["hash"] == hash_), None)

    def _eth_get_balance(self, account: str, block: str = "latest") -> str:
        self._require_latest(block)
        return hex(self._evm.get_balance(account))

    def _eth_get_code(self, account: str, block: str = "latest") -> str:
        self._require_latest(block)
        return "0x" + self._code(account).hex()

    def _eth_get_storage_at(self, account: str, slot: str, block: str = "latest") -> str:
        self._require_latest(block)
        return f"0x{self._evm.storage(account, int(slot, 16)):064x}"

    def _eth_get_transaction_count(self, account: str, block: str = "latest") -> str:
        account = to_checksum_address(account)
        mined = self._nonces.get(account, 0)
        waiting = [each.nonce + 1 for each in self._pool if each.sender == account] if block == "pending" else []
        return hex(max([mined, *waiting]))

    def _eth_get_transaction_by_hash(self, hash_: str) -> dict[str, Any] | None:
        for each in self._pool:
            if each.hash == hash_:
                return {
                    "hash": hash_,
                    "from": each.sender,
                    "nonce": hex(each.nonce),
                    "blockNumber": None,
                    "blockHash": None,
                }
        return self._sent.get(hash_)

    def _eth_get_transaction_receipt(self, hash_: str) -> dict[str, Any] | None:
        return self._receipts.get(hash_)

    def _eth_get_logs(self, query: dict[str, Any]) -> list[dict[str, Any]]:
        first, last = (self._number(query.get(name, "latest")) for name in ("fromBlock", "toBlock"))
        asked = query.get("address")
        wanted = None if asked is None else {a.lower() for a in ([asked] if isinstance(asked, str) else asked)}
        topics = query.get("topics") or []
        found = list[dict[str, Any]]()
        for log in reversed(self._logs):
            number = int(log["blockNumber"], 16)
            if number < first:
                break
            is_asked = number <= last and (wanted is None or log["address"].lower() in wanted)
            if is_asked and all(topic in {None, log["topics"][at]} for at, topic in enumerate(topics)):
                found.append(log)
        return found[::-1]

    def _eth_call(self, call: dict[str, Any], block: str = "latest") -> str:
        self._require_latest(block)
        return "0x" + self._tried(call).hex()

    def _eth_estimate_gas(self, call: dict[str, Any], block: str = "latest") -> str:
        self._require_latest(block)
        self._tried(call)
        result = self._evm.result
        return hex((result.gas_used + result.gas_refunded) * 66 // 64)

    def _tried(self, call: dict[str, Any]) -> bytes:
        self._enter(self._head)
        before = self._evm.snapshot()
        sender, data = call.get("from", NO_ADDRESS), bytes.fromhex(call.get("data", call.get("input", "0x"))[2:])
        value = int(str(call.get("value", "0x0")), 16)
        gas = int(call["gas"], 16) if "gas" in call else GAS_LIMIT
        try:
            if "to" not in call:
                return self._code(self._evm.deploy(sender, data, value, gas))
            return bytes(self._evm.message_call(sender, call["to"], data, value, gas))
        except RuntimeError as error:
            raise _refusal(error) from error
        finally:
            self._evm.revert(before)

    def _code(self, account: str) -> bytes:
        return bytes(self._evm.get_code(account) or b"").removesuffix(PADDING)

    def _number(self, block: str) -> int:
        names = {"latest": len(self._blocks) - 1, "pending": len(self._blocks) - 1, "earliest": 0}
        names |= dict.fromkeys(("finalized", "safe"), max(0, len(self._blocks) - 1 - EPOCHS))
        return names[block] if block in names else int(block, 16)

    def _require_latest(self, block: str) -> None:
        if self._number(block) != len(self._blocks) - 1:
            raise Refused(
                -32000, f"this chain has the state of block {len(self._blocks) - 1} alone, and not of {block}"
            )

    # sending

    def _eth_send_transaction(self, asked: dict[str, Any]) -> str:
        sender = to_checksum_address(asked["from"])
        number = int(self._eth_get_transaction_count(sender, "pending"), 16)
        words = {name: int(asked.get(name, hex(usual)), 16) for name, usual in USUAL.items()}
        data = bytes.fromhex(asked.get("data", "0x")[2:])
        raw = repr((sender, number, asked)).encode()
        sent = Sent(sender, number, asked.get("to"), words["value"], data, *list(words.values())[1:], raw)
        return self._take(sent)

    def _eth_send_raw_transaction(self, raw: str) -> str:
        data = bytes.fromhex(raw[2:])
        sender = Account.recover_transaction(raw)
        if data[0] == 2:
            told = TypedTransaction.from_bytes(HexBytes(data)).as_dict()
            fees = told["maxPriorityFeePerGas"], told["maxFeePerGas"]
            nonce, to, value, input_, gas = (told[name] for name in ("nonce", "to", "value", "data", "gas"))
        else:
            words: Any = rlp.decode(data)
            nonce, price, gas, to, value, input_ = (
                word if at in (3, 5) else int.from_bytes(word, "big") for at, word in enumerate(words[:6])
            )
            fees = price, price
        to = to_checksum_address(to) if to else None
        return self._take(Sent(sender, nonce, to, value, bytes(input_), gas, *fees, data))

    def _take(self, sent: Sent) -> str:
        if sent.nonce < self._nonces.get(sent.sender, 0):
            raise Refused(-32003, "nonce too low")
        if sent.gas * sent.most_fee + sent.value > self._evm.get_balance(sent.sender):
            raise Refused(-32003, "Insufficient funds for gas * price + value")
        if any(each.hash == sent.hash for each in self._pool):
            raise Refused(-32003, "transaction already imported")
        same = [each for each in self._pool if (each.sender, each.nonce) == (sent.sender, sent.nonce)]
        if same and sent.most_fee * 10 < same[0].most_fee * 11:
            raise Refused(-32003, "replacement transaction underpriced")
        self._pool = [each for each in self._pool if each not in same] + [sent]
        if self._automine:
            self._mine()
        return sent.hash

    # orders

    def _evm_mine(self, *_: Any) -> str:
        self._mine()
        return "0x0"

    def _anvil_mine(self, blocks: str = "0x1", interval: str = "0x1") -> None:
        for _ in range(int(str(blocks), 16)):
            self._mine()

    def _evm_increase_time(self, seconds: int) -> int:
        self._clock.lead += int(seconds)
        return self._clock.lead

    def _evm_set_next_block_timestamp(self, moment: int) -> None:
        self._clock.at = int(moment, 16) if isinstance(moment, str) else moment

    def _evm_set_automine(self, automine: bool) -> None:
        self._automine = automine

    def _anvil_remove_block_timestamp_interval(self) -> bool:
        return True

    def _anvil_set_next_block_base_fee_per_gas(self, fee: str) -> None:
        self._base_fee = int(fee, 16)

    def _anvil_set_balance(self, account: str, balance: str) -> None:
        # revm's journal has transfers alone.
        more = int(balance, 16) - self._evm.get_balance(account)
        self._evm.message_call(*((RICH[0], account) if more > 0 else (account, RICH[0])), b"", abs(more))

    def _anvil_reorg(self, depth: int, _: object = ()) -> None:
        """As many blocks are replaced by empty ones; what was in them comes back to the pool."""
        if not depth:
            return
        first = len(self._blocks) - depth
        gone = [hash_ for block in self._blocks[first:] for hash_ in block["transactions"]]
        self._go_back(self._checkpoints[first])
        numbers = {block["number"] for block in self._blocks[first:]}
        last = int(self._head["timestamp"], 16)
        self._logs = [log for log in self._logs if log["blockNumber"] not in numbers]
        del self._blocks[first:], self._checkpoints[first:]
        for hash_ in reversed(gone):
            sent = self._sent.pop(hash_)
            self._nonces[sent["from"]] = int(sent["nonce"], 16)
            del self._receipts[hash_]
        self.entropy += 1
        pool, self._pool = self._pool, []
        for _number in range(depth):
            self._mine()
        self._clock.at, self._pool = last + 1, pool

    def _anvil_drop_all_transactions(self) -> None:
        self._pool = []

    def _evm_snapshot(self) -> str:
        ends = len(self._blocks), len(self._logs)
        self._pasts.append(Past(self._checkpoint(), *ends, self._base_fee, dict(self._nonces)))
        return hex(len(self._pasts) - 1)

    def _evm_revert(self, number: str) -> bool:
        past = self._pasts[int(number, 16)]
        del self._pasts[int(number, 16) :]
        self._go_back(past.evm)
        gone = {transaction for block in self._blocks[past.blocks :] for transaction in block["transactions"]}
        for hash_ in gone:
            del self._sent[hash_], self._receipts[hash_]
        del self._blocks[past.blocks :], self._checkpoints[past.blocks :], self._logs[past.logs :]
        self._nonces, self._base_fee, self._pool = dict(past.nonces), past.base_fee, []
        self._clock, self.entropy = Clock(), self.entropy + 1
        return True


class _Node(Quiet):
    """The chain over HTTP, for processes and for commands that are given a URL."""

    protocol_version = "HTTP/1.1"

    def respond(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        many = asked if isinstance(asked, list) else [asked]
        found = [self.server.chain.make_request(each["method"], each["params"]) | {"id": each["id"]} for each in many]
        body = json.dumps(found if isinstance(asked, list) else found[0]).encode()
        self.reply(body=body, Content_Type="application/json")


@contextmanager
def memory_node() -> Iterator[Connection]:
    """A chain that begins now. The connection is to it in this process, and its name is a URL where it listens, too."""
    chain = MemoryChain(int(time.time()))
    with serving(_Node, chain=chain) as server:
        yield Connection(Web3(chain, middleware=[]), server.url)


def _refusal(error: RuntimeError) -> Refused:
    told = str(error.args[0])
    found = re.search(r"output: (0x[0-9a-f]*)", told)
    if found is not None:
        return Refused(3, "execution reverted", found[1])
    return Refused(-32003 if "LackOfFund" in told else -32000, told)
