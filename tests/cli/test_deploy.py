"""``pol deploy``: what it shows before it sends, the document that it keeps, and what it refuses."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from web3 import Web3

from anvil_node import anvil_node
from cli_runner import Said, pol
from node_snapshots import order, unchanged
from pol.chain.account.gas_fees import ORACLE
from pol.chain.account.wallet import Wallet
from pol.chain.contract.creation import FACTORY, first_child
from pol.chain.deployments.deployment import Deployment, RoundsDeployment
from pol.chain.node.connection import Connection
from pol.errors import ProtocolError

pytestmark = pytest.mark.long

KEY = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
DEPLOYER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"


@pytest.fixture(scope="module")
def node() -> Iterator[str]:
    with anvil_node(hardfork="osaka") as url:
        yield url


@pytest.fixture
def deploy(node: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str | Path, ...]]:
    """The command up to what a test adds; every test has a chain without contracts."""
    monkeypatch.setenv("DEPLOYER_KEY", KEY)
    with unchanged(Connection.to(node)):
        yield "deploy", "--rpc", node, "--out", tmp_path / "deployments", "--key-env", "DEPLOYER_KEY"


def test_from_nothing_to_a_checked_deployment(deploy: tuple[str | Path, ...], node: str, tmp_path: Path) -> None:
    document = tmp_path / "deployments" / "31337.json"
    plan = json.loads(pol(*deploy, "--network", "anvil", "--dry-run", "--json").out)
    assert (plan["transactions"], plan["deployer"]) == (37, DEPLOYER)
    assert 0 < plan["cost_at_most"] < plan["balance"]
    assert not document.exists()
    made = json.loads(pol(*deploy, "--network", "anvil", "--json").out)
    assert made["gas"] <= plan["gas_at_most"]
    deployment = Deployment.from_json(document.read_text())
    assert {step["address"] for step in plan["contracts"]} >= set(vars(deployment.desks).values())
    kept = json.loads(document.read_text())
    assert kept["contracts"][deployment.desks.vault]["contract"] == "StakeVault"
    assert kept["contracts"][deployment.desks.vault]["arguments"][3] == DEPLOYER
    assert len(kept["contracts"][deployment.desks.vault]["abi"]) == 66
    # Anybody may check it, with no key; and a second run sends nothing.
    assert pol(*deploy[:-2], "--check") == Said(0, match="hold")
    assert pol(*deploy, "--network", "anvil") == Said(0, match="0 of 37")
    assert json.loads(document.read_text()) == kept
    # Other roles take the document.
    role = ("--deployment", document, "--rpc", node, "--store", str(tmp_path), "--key-env", "DEPLOYER_KEY")
    assert pol("stake", "show", *role, "--json") == Said(0, match='"locked": 0')


def test_changed_code_and_changed_documents_are_seen(deploy: tuple[str | Path, ...], node: str, tmp_path: Path) -> None:
    """A byte of any contract, an immutable address, the bytes that a contract keeps, each member of the document."""
    document, check = tmp_path / "deployments" / "31337.json", (*deploy[:-2], "--check")
    assert pol(*deploy, "--network", "anvil") == Said(0, match="hold")
    connection, kept = Connection.to(node), json.loads(document.read_text())
    code_of = {a: bytes(connection.web3.eth.get_code(a)) for a in (*kept["contracts"], FACTORY)}
    vault, beacon = (bytes.fromhex(address[2:]) for address in (kept["desks"]["vault"], kept["beacon"]))

    def wrong(change: Callable[[bytes], bytes]) -> set[str]:
        """Contracts of which the check says that their code isn't theirs, after this change of all of them."""
        with unchanged(connection):
            for address, code in code_of.items():
                order(connection, "anvil_setCode", address, "0x" + change(code).hex())
            said = pol(*check)
        assert said == Said(1, match="don't hold")
        return {address for address in kept["contracts"] if f" at {address}: expected" in said.out}

    every = set(kept["contracts"])
    assert wrong(lambda code: code[:-9] + bytes([code[-9] ^ 1]) + code[-8:]) == wrong(lambda code: b"") == every
    named = {address for address in every if vault in code_of[address]}
    assert len(named) == 14
    assert wrong(lambda code: code.replace(vault, beacon)) == named
    hasher = next(address for address, told in kept["contracts"].items() if told["contract"] == "VectorHash")
    with unchanged(connection):
        order(connection, "anvil_setCode", first_child(Web3.to_checksum_address(hasher)), "0x00")
        assert pol(*check) == Said(1, match="the bytes that VectorHash keeps")
    changed = json.loads(document.read_text())
    changed["contracts"][kept["desks"]["vault"]]["arguments"][1] += 1
    for other, match in (
        (changed, "arguments.1"),
        (kept | {"surplus": 1}, "surplus"),
        (kept | {"contracts": {}}, "abi"),
    ):
        document.write_text(json.dumps(other))
        assert pol(*check) == Said(1, match=match)
    # Another factory takes transactions and makes nothing.
    order(connection, "anvil_setCode", FACTORY, "0x00")
    before = connection.block_number()
    assert pol(*deploy, "--network", "anvil", "--salt", "0x03") == Said(3, match="isn't the deterministic deployment")
    assert connection.block_number() == before


def test_the_contracts_of_rounds(deploy: tuple[str | Path, ...], node: str, tmp_path: Path) -> None:
    """Nine contracts and six wirings; their document stands beside that of the market."""
    document, command = tmp_path / "deployments" / "31337-rounds.json", (*deploy, "--rounds", "--network", "anvil")
    planned = json.loads(pol(*command, "--dry-run", "--json").out)
    assert (planned["transactions"], len(planned["contracts"])) == (15, 9)
    assert not document.exists()
    assert json.loads(pol(*command, "--json").out)["gas"] <= planned["gas_at_most"]
    deployment = RoundsDeployment.from_json(document.read_text())
    assert {step["address"] for step in planned["contracts"]} >= set(vars(deployment.desks).values())
    bonds = deployment.contracts(Connection.to(node)).bonds
    assert (bonds.read("treasury"), bonds.read("shares")) == (DEPLOYER, deployment.desks.shares)
    assert pol(*deploy[:-2], "--rounds", "--check") == Said(0, match="hold")
    assert pol(*command) == Said(0, match="0 of 15")
    kept = document.read_text()
    assert pol(*deploy[:-2], "--check") == Said(3, match="can't read the deployment")
    with pytest.raises(ProtocolError, match="this is no document of the contracts of rounds"):
        RoundsDeployment.from_json(kept.replace('"demands"', '"demand"'))
    with pytest.raises(ProtocolError, match="is for `pol run worker`"):
        Deployment.from_json(kept)  # `pol stake`, for a newcomer
    document.write_text(kept.replace(DEPLOYER, "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"))
    assert pol(*deploy[:-2], "--rounds", "--check") == Said(1, match="addresses follow from the parameters")


def test_what_is_planned_for_another_account(deploy: tuple[str | Path, ...]) -> None:
    account = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
    said = pol(*deploy[:-2], "--network", "anvil", "--dry-run", "--address", account)
    assert said == Said(0, match=account)
    assert pol(*deploy[:-2], "--dry-run", "--address", "me") == Said(2, match="isn't an address")
    assert pol(*deploy[:-2], "--dry-run") == Said(2, match="name one signer")


def test_a_plan_on_a_rollup_has_the_fee_for_data(deploy: tuple[str | Path, ...], node: str) -> None:
    command = (*deploy, "--network", "anvil", "--dry-run")
    before = json.loads(pol(*command, "--json").out)
    assert before["data_fee_at_most"] == 0
    order(
        Connection.to(node), "anvil_setCode", ORACLE, "0x60043563" + (10**9).to_bytes(4, "big").hex() + "025f5260205ff3"
    )
    plan = json.loads(pol(*command, "--json").out)
    assert 37 * 10**10 * 1000 < plan["data_fee_at_most"] < 37 * 10**10 * 24_576
    assert plan["cost_at_most"] == before["cost_at_most"] + plan["data_fee_at_most"]
    assert pol(*command) == Said(0, match="data on L1      0.00")


def test_parameters_are_shown_without_a_node_or_a_key(tmp_path: Path) -> None:
    """Whoever reviews what a deployment fixes signs nothing."""
    shown = pol("deploy", "--show-parameters")
    assert shown == Said(0, match="[market]")
    assert "\ntreasury" not in shown.out
    assert 'beacon = "block"' in pol("deploy", "--network", "anvil", "--show-parameters").out
    assert f'treasury = "{DEPLOYER}"' in pol("deploy", "--show-parameters", "--address", DEPLOYER).out
    file = tmp_path / "parameters.toml"
    file.write_text(shown.out)
    assert pol("deploy", "--show-parameters", "--parameters", file).out == shown.out


def test_a_deployment_survives_halts_of_its_chain(deploy: tuple[str | Path, ...], tmp_path: Path) -> None:
    def answers(*arguments: str) -> str:
        shown = pol("deploy", "--network", "base-sepolia", "--show-parameters", *arguments).out
        return next(line for line in shown.splitlines() if line.startswith("answer_window"))

    assert answers() == answers("--outage", "0") == "answer_window = 86400"
    assert answers("--outage", "100000") == "answer_window = 107200"
    file = tmp_path / "parameters.toml"
    file.write_text("[market]\nanswer_window = 7200\n")
    plan = (*deploy, "--network", "anvil", "--dry-run", "--parameters", file)
    assert pol(*plan) == Said(0, match="transactions")
    assert pol(*plan, "--outage", "1") == Said(1, match="a halt of the chain may take 1 s: 7201 s are needed")


def test_parameters_are_one_file(deploy: tuple[str | Path, ...], tmp_path: Path) -> None:
    shown = pol(*deploy, "--network", "anvil", "--show-parameters").out
    file = tmp_path / "parameters.toml"
    file.write_text(shown)
    whole = json.loads(pol(*deploy, "--network", "anvil", "--parameters", file, "--dry-run", "--json").out)
    assert whole == json.loads(pol(*deploy, "--network", "anvil", "--dry-run", "--json").out)
    file.write_text(f'[game]\nbits = 5\n[money]\ntreasury = "{"0x" + "11" * 20}"\n')
    assert pol(*deploy, "--network", "anvil", "--parameters", file) == Said(0, match="hold")
    kept = json.loads((tmp_path / "deployments" / "31337.json").read_text())
    assert (kept["parameters"]["game"]["bits"], kept["treasury"]) == (5, "0x" + "11" * 20)
    assert pol(*deploy[:-2], "--check") == Said(0, match="hold")


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("game = 1", "game is no section"),
        ("[game]\nbytes = 4", "no parameter game.bytes: there are draws.beacon"),
        ("[game]\nbits = true", "game.bits: True isn't a whole number"),
        ("[game]\nbits = -1", "isn't a whole number"),
        ('[money]\ntreasury = "me"', "money.treasury: 'me' isn't an address"),
        ('[draws]\nbeacon = "dice"', "draws.beacon"),
        ("[court]\nbuild = 1", "no parameter court.build"),
        ("[game", "aren't TOML"),
    ],
)
def test_parameters_that_nobody_knows(deploy: tuple[str | Path, ...], tmp_path: Path, text: str, match: str) -> None:
    file = tmp_path / "parameters.toml"
    file.write_text(text)
    assert pol(*deploy, "--parameters", file, "--dry-run") == Said(1, match=match)


def test_parameters_that_contracts_refuse(deploy: tuple[str | Path, ...], tmp_path: Path) -> None:
    file = tmp_path / "parameters.toml"
    file.write_text("[market]\nexit_delay = 1\n")
    assert pol(*deploy, "--network", "anvil", "--parameters", file) == Said(1, match="BadExitDelay")
    # The mended file goes on with what is there.
    file.write_text("[market]\nexit_delay = 19008000\n")
    assert pol(*deploy, "--network", "anvil", "--parameters", file) == Said(0, match="35 of 37")


def test_a_main_net_is_told_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keystore, passphrase = tmp_path / "key.json", tmp_path / "passphrase"
    keystore.write_text(json.dumps(_keystore()))
    passphrase.write_text("open")
    keystore.chmod(0o600)
    passphrase.chmod(0o600)
    with anvil_node("--chain-id", "1") as url:
        command = ("deploy", "--rpc", url, "--out", tmp_path, "--keystore", keystore, "--passphrase", passphrase)
        file = tmp_path / "parameters.toml"
        file.write_text('[draws]\nbeacon = "block"\n')
        command = (*command, "--parameters", file)
        assert pol(*command) == Said(2, match="with --main-net and --chain-id 1")
        assert pol(*command, "--main-net") == Said(2, match="say so twice")
        assert pol(*command, "--chain-id", "1") == Said(2, match="say so twice")
        assert pol(*command, "--main-net", "--chain-id", "10") == Said(2, match="is of chain 1")
        assert Connection.to(url).block_number() == 0
        assert pol(*command, "--dry-run") == Said(0, match="37 of 37")
        assert pol(*command, "--main-net", "--chain-id", "1") == Said(0, match="hold")
        monkeypatch.setenv("DEPLOYER_KEY", KEY)
        refused = pol("deploy", "--rpc", url, "--main-net", "--chain-id", "1", "--key-env", "DEPLOYER_KEY")
        assert refused == Said(1, match="no key is taken from the environment")


def _keystore() -> dict[str, object]:
    from eth_account import Account

    kept: dict[str, object] = Account.encrypt(bytes.fromhex(KEY), "open", kdf="pbkdf2", iterations=1000)
    return kept


def test_who_cant_pay_sends_nothing(deploy: tuple[str | Path, ...], node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    poor = bytes([7]) * 32
    monkeypatch.setenv("DEPLOYER_KEY", poor.hex())
    Wallet.create(Connection.to(node), bytes.fromhex(KEY)).transfer(
        Wallet.create(Connection.to(node), poor).address, 10**15
    )
    before = Connection.to(node).block_number()
    assert pol(*deploy, "--network", "anvil") == Said(3, match="send the difference")
    assert Connection.to(node).block_number() == before


def test_a_network_of_another_chain(deploy: tuple[str | Path, ...]) -> None:
    assert pol(*deploy, "--network", "sepolia") == Said(3, match="Sepolia is 11155111")
    assert pol("deploy", "--network", "sepolia") == Said(2, match="say where a node is")


def test_documents_that_are_lost_or_of_others(deploy: tuple[str | Path, ...], tmp_path: Path) -> None:
    document = tmp_path / "deployments" / "31337.json"
    command = (*deploy, "--network", "anvil")
    assert pol(*command) == Said(0, match="pol stake donate")  # the fund is empty
    first = json.loads(document.read_text())
    # Another deployment: the first document is kept aside.
    assert pol(*command, "--salt", "0x02") == Said(0, match="37 of 37")
    aside = document.with_name(f"31337-{first['desks']['vault'].lower()}.json")
    assert json.loads(aside.read_text()) == first
    # The document is lost: the chain knows the contracts, and not since when.
    document.unlink()
    assert pol(*command) == Said(3, match="--since BLOCK")
    assert pol(*command, "--since", str(first["block"])) == Said(0)
    assert json.loads(document.read_text()) == first
    # Somebody has written something else into it.
    check = (*deploy[:-2], "--check")
    document.write_text(json.dumps(first | {"parameters": first["parameters"] | {"game": {"bits": 5}}}))
    assert pol(*check) == Said(1, match="addresses follow from the parameters")
    document.write_text(json.dumps({"desks": {}}))
    assert pol(*check) == Said(1, match="isn't a document of pol deploy")
    document.unlink()
    assert pol(*check) == Said(3, match="can't read the deployment")


@pytest.mark.parametrize(("salt", "match"), [("xy", "isn't hexadecimal"), ("00" * 33, "has 33 bytes")])
def test_salts(deploy: tuple[str | Path, ...], salt: str, match: str) -> None:
    assert pol(*deploy, "--salt", salt, "--dry-run") == Said(2, match=match)


def test_a_folder_that_cant_be_written(deploy: tuple[str | Path, ...], node: str, tmp_path: Path) -> None:
    (tmp_path / "deployments").write_text("a file")
    before = Connection.to(node).block_number()
    assert pol(*deploy, "--network", "anvil") == Said(3, match="nothing was sent")
    assert Connection.to(node).block_number() == before
