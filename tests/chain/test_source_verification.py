"""What explorers get to show the sources of a deployment: it compiles to what was sent, and reaches them."""

import email.parser
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from loopback_server import Quiet, serving
from pol.chain.account.wallet import Wallet
from pol.chain.contract_abi import artifact, init_code
from pol.chain.deployment_rules import MARKET_RULES, Settings
from pol.chain.deployments.deployment_plan import Plan
from pol.chain.node.connection import Connection
from pol.cli.deployment.deployment_documents import document

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def plan() -> Plan:
    connection = Connection.embedded()
    wallet = Wallet.create(connection, b"\1" * 32)
    settings = Settings(wallet.address, market=MARKET_RULES)
    return Plan(connection, settings, wallet.address, bytes(32))


@pytest.fixture
def prepared(plan: Plan, tmp_path: Path) -> Path:
    """Folder of what `.ci/source_verification.py` has written."""
    path = tmp_path / "31337.json"
    path.write_text(json.dumps(document(plan, 1)))
    verification(path, "--out", tmp_path / "out")
    return tmp_path / "out"


def verification(*arguments: str | Path) -> str:
    command = [sys.executable, ROOT / ".ci" / "source_verification.py", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Service(Quiet):
    """Any of the three: remembers what it is sent."""

    def respond(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append((self.path, self.headers["Content-Type"], body))
        self.reply()


@pytest.fixture
def service() -> Iterator[tuple[str, list[tuple[str, str, bytes]]]]:
    with serving(Service, seen=[]) as server:
        yield server.url, server.seen


def send(prepared: Path, *arguments: str, **environment: str) -> None:
    environment["PATH"] = "/usr/bin:/bin"
    subprocess.run([prepared / "verify.sh", *arguments], check=True, capture_output=True, env=environment)


def test_sourcify_gets_json(prepared: Path, plan: Plan, service: tuple[str, list[tuple[str, str, bytes]]]) -> None:
    url, seen = service
    send(prepared, "sourcify", url)
    assert {path for path, _, _ in seen} == {f"/{plan.connection.chain_id}/{c.address}" for c in plan.creations}
    for _, kind, body in seen:
        request = json.loads(body)
        path = request["contractIdentifier"].partition(":")[0]
        assert kind == "application/json"
        assert request["stdJsonInput"]["sources"][path]["content"] == (ROOT / path).read_text()
        assert request["compilerVersion"].startswith("0.8.37+commit.")


def test_blockscout_gets_a_form(prepared: Path, plan: Plan, service: tuple[str, list[tuple[str, str, bytes]]]) -> None:
    url, seen = service
    send(prepared, "blockscout", url)
    assert len(seen) == len(plan.creations)
    for path, kind, body in seen:
        parts = email.parser.BytesParser().parsebytes(f"Content-Type: {kind}\r\n\r\n".encode() + body)
        form = {
            p.get_param("name", header="content-disposition"): p.get_payload(decode=True) for p in parts.get_payload()
        }
        (creation,) = (c for c in plan.creations if c.address in path)
        _matches(plan, creation.address, str(form["constructor_args"], "ascii"))
        assert json.loads(form["files[0]"])["language"] == "Solidity"


def test_etherscan_gets_fields(prepared: Path, plan: Plan, service: tuple[str, list[tuple[str, str, bytes]]]) -> None:
    url, seen = service
    send(prepared, "etherscan", url, ETHERSCAN_KEY="K")
    assert len(seen) == len(plan.creations)
    for path, _, body in seen:
        form = {name: values[0] for name, values in parse_qs(body.decode(), keep_blank_values=True).items()}
        assert path == f"/?chainid={plan.connection.chain_id}"
        assert form["apikey"] == "K"
        _matches(plan, form["contractaddress"], form["constructorArguements"])
        assert json.loads(form["sourceCode"])["settings"]["metadata"] == {"bytecodeHash": "none", "appendCBOR": False}


def _matches(plan: Plan, address: str, encoded: str) -> None:
    """Code and encoded arguments are what is sent to the chain."""
    (creation,) = (c for c in plan.creations if c.address == address)
    assert bytes.fromhex(artifact(creation.contract)["bytecode"][2:] + encoded) == creation.code
    assert creation.code == init_code(creation.contract, *creation.arguments)


def test_who_is_asked_has_to_be_said(prepared: Path) -> None:
    for arguments in ((), ("bing",), ("etherscan",), ("blockscout",)):
        with pytest.raises(subprocess.CalledProcessError):
            send(prepared, *arguments)


@pytest.mark.parametrize(
    "names",
    [("Forwarder", "StakeVault"), pytest.param((), marks=[pytest.mark.slow, pytest.mark.timeout(3600)])],
    ids=["two", "all"],
)
def test_the_compiler_makes_what_was_sent(plan: Plan, tmp_path: Path, names: tuple[str, ...]) -> None:
    path = tmp_path / "31337.json"
    path.write_text(json.dumps(document(plan, 1)))
    said = verification(path, "--out", tmp_path / "out", "--check", *names)
    assert said.count("makes the same") == len(names or {c.contract for c in plan.creations})
