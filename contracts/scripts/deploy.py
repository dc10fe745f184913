"""Deploys with an account of Brownie: brownie run deploy main ACCOUNT [PARAMETERS [FOLDER [CHAIN]]] --network NAME.

The same plan as `pol deploy`: the same addresses, the same document, the same checks afterwards. What is sent are the
artefacts of the package, which carry no metadata, and not what Brownie has compiled.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from brownie import accounts, web3
from pol.chain.deployments.deployment_check import assertions
from pol.chain.deployments.deployment_parameters import read_parameters
from pol.chain.deployments.deployment_plan import Plan
from pol.chain.node.connection import Connection
from pol.chain.node.networks import NETWORKS, is_test_net
from pol.cli.deployment.deployment_documents import DeploymentTarget, default_of, keep


class BrownieSender:
    """An account of Brownie in the place of a wallet."""

    def __init__(self, account: Any) -> None:
        self.account = account
        self.address = account.address

    def send_data_once(self, to: str, data: bytes, name: str, done: Callable[[], bool]) -> None:
        """Send calldata unless it has happened."""
        if not done():
            self.account.transfer(to, data="0x" + data.hex(), required_confs=1, silent=True)


def main(account: str, parameters: str = "", folder: str = "deployments", main_net: str = "") -> dict[str, str]:
    """Deploy what is missing; addresses of the market's contracts. ``main_net`` is the number of a main net's chain."""
    # Brownie's own connection turns reverts into errors of its own.
    connection = Connection.to(web3.provider.endpoint_uri)
    if not is_test_net(connection.chain_id) and main_net != str(connection.chain_id):
        raise ValueError(f"chain {connection.chain_id} isn't known as a test net: give its number as the last argument")
    signer = accounts[int(account)] if account.isdigit() else accounts.load(account)
    known = next((n for n in NETWORKS.values() if n.chain_id == connection.chain_id), None)
    target = DeploymentTarget(connection, known, Path(folder))
    settings = default_of(known, signer.address)
    if parameters:
        settings = read_parameters(Path(parameters).read_text(), settings)
    plan = Plan(connection, settings, signer.address, bytes(32))
    missing = plan.missing()
    print(f"{len(missing)} transactions, at most {missing.gas:,} gas")
    block = keep(target, plan, missing)
    plan.carry_out(BrownieSender(signer), missing, print)
    found = list(assertions(plan, block))
    wrong = [assertion for assertion in found if not assertion.holds]
    if wrong:
        raise ValueError(f"{len(wrong)} of {len(found)} assertions don't hold: {wrong}")
    print(f"{len(found)} assertions hold: {target.document}")
    return vars(plan.contracts.desks)
