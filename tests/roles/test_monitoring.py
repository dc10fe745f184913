"""``pol monitor``, and what processes show of themselves: metrics and health."""

import json
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from operator_processes import KEY, Operator
from prometheus_client.parser import text_string_to_metric_families
from role_market import Town, submitted

from anvil_node import anvil_node
from cli_runner import Said, pol
from node_snapshots import order
from pol.chain.node.connection import Connection
from pol.cli.market.health_server import STALE_SECONDS, HealthMetrics, serve_health
from pol.errors import OperationalError
from pol.roles.monitor import read_only_monitor as monitor_module
from pol.roles.monitor.read_only_monitor import Monitor

pytestmark = pytest.mark.long

JOINED = ()


@pytest.fixture(scope="module")
def operator(node: Town, tmp_path_factory: pytest.TempPathFactory) -> Operator:
    submitted(node)
    return Operator(tmp_path_factory.mktemp("operator"), node)


def get(url: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(url, timeout=30) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def metrics(text: bytes) -> dict[str, float]:
    return {
        sample.name + "".join(f" {value}" for _, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text.decode())
        for sample in family.samples
    }


def place(operator: Operator) -> tuple[str, ...]:
    """Without the store: a monitor needs none."""
    return operator.place[:-2]


def test_a_monitor_holds_no_key_and_finds_that_everything_holds(operator: Operator) -> None:
    said = pol("monitor", *place(operator), "--looks", "1", "--json")
    look = json.loads(said.out)
    assert (said.code, look["wrong"]) == (0, [])
    assert look["held"] == look["owed"] > 0
    assert look["tasks"] == {"profiling": 1}
    assert look["waiting"][0]["why"]
    assert pol("monitor", *place(operator), "--looks", "1") == Said(0, match="everything holds")


@pytest.mark.parametrize(
    ("more", "said"), [(-7, Said(1, match="7 are missing")), (7, Said(0, match="everything holds"))]
)
def test_money_that_is_missing_is_said(
    operator: Operator, monkeypatch: pytest.MonkeyPatch, more: int, said: Said
) -> None:
    """More than it owes is no harm: anybody can force ether on a contract."""
    real = monitor_module.held
    monkeypatch.setattr(monitor_module, "held", lambda vault: real(vault) + more)
    assert pol("monitor", *place(operator), "--looks", "1") == said


def test_a_node_that_fails(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Monitor) -> None:
        raise OperationalError("the node is gone")

    monkeypatch.setattr(Monitor, "look", fail)
    assert pol("monitor", *place(operator), "--looks", "2", "--poll", "0.01") == Said(3, match="the node is gone")


def test_how_long_a_call_has_waited(operator: Operator) -> None:
    connection = operator.town.connection
    watcher = Monitor(connection, operator.town.deployment)
    task_id = bytes(operator.town.deployment.market(connection).registry.events("TaskSubmitted")[0]["taskId"])
    connection.wait_for_block(operator.town.deployment.market(connection).seats.seating(task_id).round + 1)
    first = watcher.look()
    order(connection, "evm_increaseTime", 3600)
    order(connection, "evm_mine")
    second = watcher.look()
    since = [waiting.since for waiting in second.waiting if waiting.since is not None]
    assert [w.state.waits for w in first.waiting] == [w.state.waits for w in second.waiting]
    assert since == [first.time]
    assert second.time - since[0] >= 3600


def test_a_process_shows_its_metrics_while_it_runs(operator: Operator) -> None:
    arguments = ("run", "verifier", *operator.party, "--data", str(operator.folder / "shown"), "--poll", "0.05")
    command = operator.command(*arguments, "--mode", "watch", "--json", "--metrics", "127.0.0.1:0")
    environment = {"OPERATOR_KEY": KEY.hex(), "PATH": "/usr/bin:/bin"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["metrics"]
        process.stdout.readline()  # a decision: it has looked
        code, health = get(f"{url}/health")
        while "pol_head_block 0.0" in (text := get(f"{url}/metrics")[1].decode()):
            pass
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=300)
    assert (code, json.loads(health)["well"]) == (200, True)
    shown = metrics(text.encode())
    assert shown["pol_process 31337 verifier"] == 1
    assert any(name.startswith("pol_decisions_total") for name in shown)
    assert shown["pol_failures_in_a_row"] == 0
    assert shown["pol_head_block"] > 29
    assert {"pol_balance_wei", "pol_free", "pol_locked", "pol_leaving", "pol_gas_paid_wei"} <= shown.keys()
    assert any(name.startswith("pol_node_answered http://127.0.0.1") for name in shown)


@pytest.fixture
def vitals(operator: Operator) -> tuple[HealthMetrics, Callable[[float], None]]:
    now = 1000.0

    def later(seconds: float) -> None:
        nonlocal now
        now += seconds

    return HealthMetrics("monitor", operator.town.connection, lambda: now), later


def test_health(vitals: tuple[HealthMetrics, Callable[[float], None]]) -> None:
    shown, later = vitals
    with serve_health(shown, "127.0.0.1:0") as url:
        # It may take its time to begin, and says so; a container isn't restarted for it.
        code, told = get(f"{url}/health")
        assert (code, json.loads(told)["has_looked"]) == (200, False)
        shown.looked()
        later(STALE_SECONDS - 1)
        shown.failing(3, "the node is gone")
        code, told = get(f"{url}/health")
        assert (code, json.loads(told)["trouble"]) == (200, "the node is gone")
        assert metrics(get(f"{url}/metrics")[1])["pol_failures_in_a_row"] == 3
        later(1)
        code, told = get(f"{url}/health")
        assert (code, json.loads(told)["well"]) == (503, False)
        shown.looked()
        assert get(f"{url}/health")[0] == 200
        assert get(f"{url}/secrets")[0] == 404
    with pytest.raises(urllib.error.URLError):
        get(f"{url}/health")


@pytest.mark.parametrize(("address", "match"), [("9100", "HOST:PORT"), ("here:x", "HOST:PORT"), (":1", "HOST:PORT")])
def test_addresses(operator: Operator, address: str, match: str) -> None:
    assert pol("monitor", *place(operator), "--looks", "1", "--metrics", address) == Said(2, match=match)


def test_an_address_that_is_taken(operator: Operator, vitals: tuple[HealthMetrics, Callable[[float], None]]) -> None:
    with serve_health(vitals[0], "127.0.0.1:0") as url:
        assert url is not None
        taken = url.removeprefix("http://")
        assert pol("monitor", *place(operator), "--looks", "1", "--metrics", taken) == Said(3, match="another port")


def test_a_deployment_of_another_chain(operator: Operator, tmp_path: Path) -> None:
    with anvil_node("--chain-id", "4242") as url:
        assert Connection.to(url).chain_id == 4242
        document = operator.place[1]
        assert pol("monitor", "--deployment", document, "--rpc", url, "--looks", "1") == Said(3, match="4242")
