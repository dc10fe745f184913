"""An EVM in this process: eth-tester over py-evm, with the clock and the mining methods that the roles need."""

from typing import Any

from web3 import Web3
from web3.types import RPCEndpoint

from pol.errors import OperationalError

ENOUGH_GAS = 8_000_000


def embedded_web3() -> Web3:
    """A fresh Prague chain with funded, unlocked accounts.

    Raises:
        OperationalError: the extra ``pol[embedded]`` isn't installed.
    """
    try:
        from eth_tester import EthereumTester, PyEVMBackend
        from web3.providers.eth_tester import EthereumTesterProvider
    except ImportError as error:
        raise OperationalError("the embedded chain needs the extra: pip install 'pol[embedded]'") from error

    class Provider(EthereumTesterProvider):
        """Adds the time methods under the names that anvil uses."""

        def make_request(self, method: Any, params: Any) -> Any:
            tester = self.ethereum_tester
            if method == "evm_mine":
                tester.mine_blocks(1)
                return _result("0x0")
            if method == "evm_increaseTime":
                now = tester.get_block_by_number("latest")["timestamp"]
                tester.time_travel(now + params[0])
                return _result(params[0])
            if method == "eth_estimateGas":
                # The backend bisects, a dozen executions. Here gas is free: one execution finds out whether it reverts.
                called = super().make_request(RPCEndpoint("eth_call"), [params[0] | {"gas": ENOUGH_GAS}, "latest"])
                return called if "error" in called else _result(ENOUGH_GAS)
            return super().make_request(method, params)

    return Web3(Provider(EthereumTester(PyEVMBackend())))


def _result(value: Any) -> Any:
    return {"jsonrpc": "2.0", "id": 0, "result": value}
