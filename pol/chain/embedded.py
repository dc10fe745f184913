"""An EVM in this process: eth-tester over py-evm, with the clock and the mining methods that the roles need."""

from typing import Any

from web3 import Web3

from pol.errors import OperationalError


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
                return {"result": "0x0"}
            if method == "evm_increaseTime":
                now = tester.get_block_by_number("latest")["timestamp"]
                tester.time_travel(now + params[0])
                return {"result": params[0]}
            return super().make_request(method, params)

    return Web3(Provider(EthereumTester(PyEVMBackend())))
