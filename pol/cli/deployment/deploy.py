"""``pol deploy``: the contracts on a chain, at addresses that are known before, and a document for everybody else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import Progress

from pol.chain.account.gas_fees import DATA_FEE_ROOM
from pol.chain.node.networks import NETWORKS, KnownNetwork, is_test_net, network_of, outage_of
from pol.cli.examples import defaulted, example
from pol.cli.market.party_options import signer_of, signer_options
from pol.errors import OperationalError, ProtocolError, reason_of

if TYPE_CHECKING:
    from eth_typing import ChecksumAddress

    from pol.chain.account.wallet import Wallet
    from pol.chain.deployment_rules import Settings
    from pol.chain.deployments.deployment_check import Assertion
    from pol.chain.deployments.deployment_plan import DeploymentSteps, Missing, Plan, RoundsDeploymentPlan
    from pol.chain.node.connection import Connection
    from pol.cli.deployment.deployment_documents import DeploymentTarget


ETHER = 10**18
NOBODY = "0x" + 40 * "0"


@click.command(epilog=example("pol deploy --network sepolia --rpc https://node.example --keystore key.json --dry-run"))
@click.option("--network", type=click.Choice(list(NETWORKS)), help="A network that is known here.")
@click.option("--rpc", multiple=True, metavar="URL", help="A node; may be repeated. Any chain will do.")
@click.option("--parameters", type=click.Path(path_type=Path), metavar="FILE", help="What differs from the defaults.")
@click.option("--salt", default="", metavar="HEX", help="For a second deployment of the same deployer.")
@defaulted("--out", type=click.Path(path_type=Path), default=Path("deployments"), metavar="DIR")
@click.option("--dry-run", is_flag=True, help="Show addresses, gas and cost, and send nothing.")
@click.option("--check", "only_check", is_flag=True, help="Check the deployment in DIR; nobody signs.")
@click.option("--show-parameters", is_flag=True, help="Print the parameters as a file, and do nothing.")
@click.option("--main-net", is_flag=True, help="The chain isn't a test net: said once ...")
@click.option("--chain-id", type=int, metavar="N", help="... and which it is: said twice.")
@click.option("--since", type=click.IntRange(0), metavar="BLOCK", help="The first block, where its document is lost.")
@click.option(
    "--outage",
    type=click.IntRange(0),
    metavar="SECONDS",
    help="Halt of the chain that the deployment has to survive; 6 hours on rollups, else 0.",
)
@click.option("--rounds", is_flag=True, help="The contracts of trainings of many workers, not those of the market.")
@click.option("--zk", "circuits", multiple=True, metavar="CIRCUIT", help="And its exact verifier, see `pol zk`.")
@signer_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def deploy(
    network: str | None,
    rpc: tuple[str, ...],
    parameters: Path | None,
    salt: str,
    out: Path,
    dry_run: bool,
    only_check: bool,
    show_parameters: bool,
    main_net: bool,
    chain_id: int | None,
    since: int | None,
    outage: int | None,
    rounds: bool,
    circuits: tuple[str, ...],
    as_json: bool,
    **signer: Any,
) -> None:
    """Deploy the protocol, or what of it is missing; run it again after whatever stopped it.

    Addresses follow from the parameters, the deployer and the salt, on every chain alike. The document
    deployments/CHAIN.json is what all other roles take with --deployment. Afterwards everything that the deployer has
    told the contracts is read back and compared; --check does that for a deployment of others. With --rounds all of
    this is about the contracts of trainings of many workers, whose document is deployments/CHAIN-rounds.json.
    """
    from pol.chain.account.wallet import Wallet
    from pol.cli.deployment.deployment_documents import DeploymentTarget, check, require_outage

    known = network_of(network) if network else None
    if show_parameters:
        halt = outage or (outage_of(known.chain_id) if known and outage is None else 0)
        click.echo(_toml(known, parameters, signer["address"], halt), nl=False)
        return
    target = DeploymentTarget(_connect(known, rpc), known, out, rounds)
    if only_check:
        _report(check(target), as_json, target.document)
        return
    if not dry_run:
        _require_consent(target.connection, main_net, chain_id)
    wallet = None
    if dry_run and signer["address"] and not signer["signer"]:
        deployer = _address(signer["address"])
    else:
        wallet = Wallet(target.connection, signer_of(signer, target.connection.chain_id))
        deployer = wallet.address
    halt = outage_of(target.connection.chain_id) if outage is None else outage
    settings = _settings(known, parameters, deployer, halt)
    if halt and not rounds:
        require_outage(settings, halt)
    plan = target.plan(settings, deployer, _salt(salt))
    missing = plan.missing()
    price, balance = _price(target.connection), target.connection.balance(deployer)
    if not as_json:
        _show(plan, missing, price, balance)
    if dry_run or wallet is None:
        if as_json:
            click.echo(json.dumps(_planned(plan, missing, price, balance), indent=2))
        return
    if (cost := missing.cost(price)) > balance:
        raise OperationalError(
            f"the deployer {deployer} has {balance / ETHER:.6f} ether; the deployment may cost {cost / ETHER:.6f}: "
            "send the difference to it, and run this again"
        )
    with wallet.once():
        _carry_out(wallet, target, plan, missing, since, circuits, as_json)


def _carry_out(
    wallet: Wallet,
    target: DeploymentTarget,
    plan: Plan | RoundsDeploymentPlan,
    missing: Missing,
    since: int | None,
    circuits: tuple[str, ...],
    as_json: bool,
) -> None:
    from pol.chain.deployments.deployment_check import assertions
    from pol.chain.deployments.deployment_plan import Plan
    from pol.cli.deployment.deployment_documents import keep

    block = keep(target, plan, missing, since)
    with Progress(console=Console(stderr=True), disable=as_json) as progress:
        bar = progress.add_task("deploying", total=len(missing))
        plan.carry_out(wallet, missing, lambda name: progress.update(bar, advance=1, description=name))
    found = list(assertions(plan, block))
    verifiers = _verifiers(wallet, circuits, as_json)
    gas = sum(receipt["gasUsed"] for receipt in wallet.receipts)
    if not isinstance(plan, Plan):
        _report(found, as_json, target.document, gas=gas, **verifiers)
        return
    available = _available(plan)
    _report(found, as_json, target.document, gas=gas, fund_available=available, **verifiers)
    if not available and not as_json:
        click.echo(
            "pol: the jackpot's fund is empty, so no task can be awarded: before the first award somebody donates what "
            "its jackpot takes, by `pol stake deposit` and `pol stake donate`",
            err=True,
        )


def _available(plan: Plan) -> int:
    """What the fund of the jackpot could reserve; units of the asset."""
    from pol.chain.desks.jackpot_desk import JackpotFund

    contracts = plan.contracts
    return JackpotFund(plan.connection, contracts.desks.jackpot).available()


def _verifiers(wallet: Wallet, circuits: tuple[str, ...], as_json: bool) -> dict[str, str]:
    """Exact verifiers of circuits, by name: what a task's submitter pins."""
    if not circuits:
        return {}
    from pol.cli.zk.zk import deployed
    from pol.zk.circuits import load_circuit

    return {
        f"zk {name}": deployed(load_circuit(name), wallet, exact=True, as_json=as_json)["verifier"] for name in circuits
    }


def _connect(network: KnownNetwork | None, rpc: tuple[str, ...]) -> Connection:
    from pol.chain.node.connection import Connection

    urls = rpc or ((network.rpc,) if network and network.rpc else ())
    if not urls:
        raise click.UsageError("say where a node is: --rpc URL (--network anvil knows that of this machine)")
    connection = Connection.to(*urls)
    if network and connection.chain_id != network.chain_id:
        raise OperationalError(
            f"{connection.name} is of chain {connection.chain_id}; {network.title} is {network.chain_id}"
        )
    return connection


def _require_consent(connection: Connection, main_net: bool, chain_id: int | None) -> None:
    if chain_id is not None and chain_id != connection.chain_id:
        raise click.UsageError(f"--chain-id {chain_id}: {connection.name} is of chain {connection.chain_id}")
    if not is_test_net(connection.chain_id) and not (main_net and chain_id):
        raise click.UsageError(
            f"chain {connection.chain_id} isn't known as a test net. What is deployed can't be changed or taken back: "
            f"if you mean it, say so twice, with --main-net and --chain-id {connection.chain_id}"
        )


def _address(text: str) -> ChecksumAddress:
    from web3 import Web3

    if not Web3.is_address(text):
        raise click.UsageError(f"--address {text} isn't an address")
    return Web3.to_checksum_address(text)


def _salt(text: str) -> bytes:
    try:
        salt = bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        raise click.UsageError(f"--salt {text} isn't hexadecimal") from None
    from pol.chain.contract.creation import SALT_BYTES

    if len(salt) > SALT_BYTES:
        raise click.UsageError(f"--salt has {len(salt)} bytes; there is room for {SALT_BYTES}")
    return salt.rjust(SALT_BYTES, b"\0")


def _settings(
    network: KnownNetwork | None, parameters: Path | None, deployer: ChecksumAddress, outage: int
) -> Settings:
    from pol.chain.deployments.deployment_parameters import read_parameters
    from pol.cli.deployment.deployment_documents import default_of

    default = default_of(network, deployer, outage)
    if parameters is None:
        return default
    try:
        return read_parameters(parameters.read_text(), default)
    except OSError as error:
        raise OperationalError(f"can't read the parameters {parameters}: {reason_of(error)}") from error
    except UnicodeDecodeError as error:
        raise ProtocolError(f"the parameters {parameters} aren't text in UTF-8: see `--show-parameters`") from error


def _toml(network: KnownNetwork | None, parameters: Path | None, address: str | None, outage: int) -> str:
    """Parameters as a file; without an account the treasury is left out, which makes it the deployer's."""
    from pol.chain.deployments.deployment_parameters import document_of

    settings = _settings(network, parameters, _address(address or NOBODY), outage)
    document = document_of(settings)
    lines = ["# All that a deployment fixes, for ever (docs/guides/deploy.md). pol deploy --parameters THIS_FILE"]
    if settings.treasury == NOBODY:
        del document["money"]["treasury"]
        lines.append(
            "# [money] treasury, the account that gets a share of prices, is the deployer if nothing names it."
        )
    for section, entries in document.items():
        lines += ["", f"[{section}]"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in entries.items()]
    return "\n".join(lines) + "\n"


def _price(connection: Connection) -> int:
    """At most what a unit of gas costs in the next blocks; wei."""
    from pol.chain.node.connection import operational

    eth = connection.web3.eth
    with operational("read the fees"):
        return 2 * int(eth.get_block("latest")["baseFeePerGas"]) + int(eth.max_priority_fee)


def _planned(plan: DeploymentSteps, missing: Missing, price: int, balance: int) -> dict[str, Any]:
    todo = {step.address for step in missing.creations}
    return {
        "chain_id": plan.connection.chain_id,
        "deployer": plan.deployer,
        "contracts": [
            {"contract": step.contract, "address": step.address, "there": step.address not in todo}
            for step in plan.creations
        ],
        "transactions": len(missing),
        "gas_at_most": missing.gas,
        "data_fee_at_most": missing.data_fee,
        "cost_at_most": missing.cost(price),
        "balance": balance,
    }


def _show(plan: DeploymentSteps, missing: Missing, price: int, balance: int) -> None:
    todo = {step.address for step in missing.creations}
    for step in plan.creations:
        state = "to come" if step.address in todo else "there"
        click.echo(f"{step.contract:<15} {step.address}  {state}")
    click.echo(f"transactions    {len(missing)} of {len(plan.creations) + len(plan.wirings)}")
    click.echo(f"gas             {missing.gas:,} at most")
    if missing.data_fee:
        click.echo(
            f"data on L1      {missing.data_fee / ETHER:.6f} ether at most: {DATA_FEE_ROOM} times what it costs now"
        )
    click.echo(
        f"cost            {missing.cost(price) / ETHER:.6f} ether at {price / 10**9:.3f} gwei; "
        f"{plan.deployer} has {balance / ETHER:.6f}"
    )


def _report(found: list[Assertion], as_json: bool, document: Path, **more: Any) -> None:
    """Say what holds. Raises ProtocolError: something doesn't."""
    wrong = [assertion for assertion in found if not assertion.holds]
    if wrong:
        lines = [f"{a.what}: expected {a.expected}, found {a.found}" for a in wrong]
        raise ProtocolError(f"{len(wrong)} of {len(found)} assertions don't hold\n" + "\n".join(lines))
    if as_json:
        click.echo(json.dumps({"document": str(document), "assertions": len(found)} | more, indent=2))
        return
    for name, value in more.items():
        click.echo(f"{name:<15} {value:,}" if isinstance(value, int) else f"{name:<15} {value}")
    click.echo(f"assertions      {len(found)} hold")
    click.echo(f"document        {document}: other roles take it with --deployment")
