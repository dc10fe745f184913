"""An EVM in this process: eth-tester over py-evm, with methods for clock and mining."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, MutableMapping
from typing import TYPE_CHECKING, Any

from web3 import Web3
from web3.types import RPCEndpoint

from pol.commitments.keccak import keccak256
from pol.errors import OperationalError

if TYPE_CHECKING:
    from eth_tester import EthereumTester

ENOUGH_GAS = 8_000_000
BLOCK_SECONDS = 12
GENESIS_TIME = 1_767_225_600
"""2026-01-01, fixed so that runs can be repeated."""


def embedded_web3(
    seed: int, database: MutableMapping[bytes, bytes] | None = None, clock: Callable[[], int] | None = None
) -> Web3:
    """A Prague chain with funded, unlocked accounts; equal seeds and transactions give equal block hashes.

    It is fresh, or goes on with what is in ``database``. ``clock`` gives the time of a block, in seconds since 1970;
    without one blocks are `BLOCK_SECONDS` apart.

    Raises:
        OperationalError: the extra ``proof-of-learning[embedded]`` isn't installed.
    """
    try:
        from eth.db.atomic import AtomicDB
        from eth.db.backends.memory import MemoryDB
        from eth_tester import EthereumTester, PyEVMBackend
        from eth_tester.exceptions import TransactionFailed
        from eth_utils.exceptions import ValidationError
        from web3.providers.eth_tester import EthereumTesterProvider
    except ImportError as error:
        raise OperationalError("an embedded chain needs pip install 'proof-of-learning[embedded]'") from error

    class Backend(PyEVMBackend):  # type: ignore[misc]  # eth_tester is untyped
        """Takes randomness from the seed and time from the last block instead of from the operating system."""

        chain: Any

        def reset_to_genesis(self, *arguments: Any, **named: Any) -> None:
            super().reset_to_genesis(*arguments, **named)
            if database is not None:
                fresh = self.chain
                if not database:
                    database.update(fresh.chaindb.db.wrapped_db.kv_store)
                self.chain = type(fresh)(AtomicDB(MemoryDB(database)))
            self.date_pending_block()

        def date_pending_block(self) -> None:
            """Give the next block the present time."""
            last = self.chain.get_canonical_head().timestamp
            now = last + BLOCK_SECONDS if clock is None else max(last + 1, clock())
            self.chain.header = self.chain.header.copy(timestamp=now)

        def mine_blocks(self, num_blocks: int = 1, coinbase: bytes = bytes(20)) -> list[bytes]:
            hashes = []
            for _ in range(num_blocks):
                number = self.chain.get_block().number
                mix = keccak256(f"pol embedded chain {seed} {number}".encode())
                block = self.chain.mine_block(coinbase=coinbase, mix_hash=mix, blob_gas_used=0)
                hashes.append(block.hash)
                self.date_pending_block()
            return hashes

    class Provider(EthereumTesterProvider):
        """Adds anvil's methods for time, and answers reverts as nodes do."""

        def __init__(self, tester: EthereumTester) -> None:
            super().__init__(tester)
            self._logs: list[Any] = []
            self._logged = -1

        def make_request(self, method: RPCEndpoint, params: Any) -> Any:
            try:
                return self._answer(method, params)
            except TransactionFailed as error:
                return _reverted(error)
            except ValidationError as error:
                return {"jsonrpc": "2.0", "id": 0, "error": {"code": -32000, "message": str(error)}}

        def _answer(self, method: RPCEndpoint, params: Any) -> Any:
            tester: EthereumTester = self.ethereum_tester
            if method == "evm_mine":
                tester.mine_blocks(1)
                return _result("0x0")
            if method == "evm_increaseTime":
                now, next_ = (tester.get_block_by_number(block)["timestamp"] for block in ("latest", "pending"))
                # The pending block is never earlier than `BLOCK_SECONDS` after the last one.
                tester.time_travel(max(now + params[0], next_))
                return _result(params[0])
            if method == "eth_estimateGas":
                # The backend bisects, in a dozen executions. Gas is free here: one execution shows whether it reverts.
                called = super().make_request(RPCEndpoint("eth_call"), [params[0] | {"gas": ENOUGH_GAS}, "latest"])
                return called if "error" in called else _result(ENOUGH_GAS)
            if method == "eth_getLogs" and set(params[0]) == {"address", "from_block", "to_block"}:
                return _result(self._logs_of(**params[0]))
            if method == "evm_revert":
                self._logs, self._logged = [], -1
            return super().make_request(method, params)

        def _logs_of(self, address: list[str], from_block: int, to_block: int) -> Any:
            """Logs from a growing list: the backend would derive the receipts of all blocks at each request."""
            if to_block > self._logged:
                missing = {"from_block": self._logged + 1, "to_block": to_block}
                self._logs += super().make_request(RPCEndpoint("eth_getLogs"), [missing])["result"]
                self._logged = to_block
            logs = (log for log in self._logs if from_block <= log["block_number"] <= to_block)
            return tuple(log for log in logs if log["address"] in address)

    genesis = PyEVMBackend.generate_genesis_params({"timestamp": GENESIS_TIME})
    return Web3(Provider(EthereumTester(Backend(genesis_parameters=genesis))))


def _reverted(error: Exception) -> Any:
    """A JSON-RPC error with the revert's data, taken from the text of the exception."""
    printed = re.search(r"b'.*'|b\".*\"", str(error), re.DOTALL)
    data = ast.literal_eval(printed[0]) if printed else b""
    return {"jsonrpc": "2.0", "id": 0, "error": {"code": 3, "message": "execution reverted", "data": "0x" + data.hex()}}


def _result(value: Any) -> Any:
    return {"jsonrpc": "2.0", "id": 0, "result": value}
