"""Files for operators: what they name exists, what they run is understood, and their alerts go off."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from prometheus_client import CollectorRegistry

from ended_process import ran
from pol.cli.commands import commands
from pol.cli.market.health_server import HealthMetrics, serve_health
from pol.cli.market.monitor import MonitorGauges
from pol.cli.market.party_gauges import PartyGauges
from pol.roles.party.role import Role
from shared_chain import SharedChain
from toy_market import lent

FOLDER = Path(__file__).parent.parent / "docs" / "operate"


@pytest.fixture(scope="module")
def role(chain: SharedChain) -> Role:
    with lent(chain) as ground:
        return Role(ground.connection, ground.deployment, b"\1" * 32, "memory://")


@pytest.fixture(scope="module")
def known(role: Role) -> set[str]:
    """Names of all metrics that a process shows."""
    found: set[str] = set()
    for gauges in (PartyGauges, MonitorGauges):
        vitals = HealthMetrics("verifier", role.connection)
        if gauges is PartyGauges:
            PartyGauges(vitals, role)
        else:
            MonitorGauges(vitals)
        found |= names(vitals.registry)
    return found


def names(registry: CollectorRegistry) -> set[str]:
    return {m.name + ("_total" if m.type == "counter" else "") for m in registry.collect()}


def test_alerts_and_panels_name_metrics_that_there_are(known: set[str]) -> None:
    rules = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"][0]["rules"]
    panels = json.loads((FOLDER / "grafana.json").read_text())["panels"]
    expressions = [rule["expr"] for rule in rules] + [t["expr"] for panel in panels for t in panel["targets"]]
    used = set(re.findall(r"\bpol_[a-z_]+", " ".join(expressions)))
    assert used <= known
    assert len(used) > 15


def test_every_alert_says_what_to_do_and_is_tried() -> None:
    rules = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"][0]["rules"]
    assert all({"summary", "action"} <= rule["annotations"].keys() for rule in rules)
    tried = {
        case["alertname"]
        for test in yaml.safe_load((FOLDER / "alerts.test.yml").read_text())["tests"]
        for case in test["alert_rule_test"]
        if case["exp_alerts"]
    }
    assert tried == {rule["alert"] for rule in rules}


def test_the_dashboard_has_no_two_panels_in_one_place() -> None:
    dashboard = json.loads((FOLDER / "grafana.json").read_text())
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def require_understood(words: list[str], environment: dict[str, str]) -> None:
    """The command line names a verb, and words and environment together are all that it needs."""
    verb = commands.get_command(click.Context(commands), words[0])
    assert verb is not None
    given = {name for name in environment if name.startswith("POL_")}
    allowed = {f"POL_{words[0].upper()}_{p.name.upper()}": p for p in verb.params if p.name is not None}
    assert given <= allowed.keys(), given - allowed.keys()
    options = [p for p in verb.params if isinstance(p, click.Option) and p.required]
    assert all(f"POL_{words[0].upper()}_{str(p.name).upper()}" in given for p in options)
    arguments = [p for p in verb.params if isinstance(p, click.Argument)]
    assert len(words) - 1 == len(arguments)
    for argument, word in zip(arguments, words[1:], strict=True):
        argument.type.convert(word, argument, None)


def services() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yml").read_text())["services"]
    return found


def test_compose_runs_every_role_with_options_that_there_are() -> None:
    ours = {name: service for name, service in services().items() if service["image"] == "pol"}
    assert set(ours) == {"submitter", "solver", "verifier", "whistleblower", "monitor"}
    for name, service in ours.items():
        require_understood(service["command"], service["environment"])
        assert service["command"][-1] == name
    scraped = yaml.safe_load((FOLDER / "prometheus.yml").read_text())["scrape_configs"][0]["static_configs"][0][
        "targets"
    ]
    assert {target.partition(":")[0] for target in scraped} == set(ours) - {"submitter"}


def test_files_that_compose_mounts_are_there() -> None:
    for service in services().values():
        for volume in service["volumes"]:
            source = volume.partition(":")[0]
            if source.startswith("./") and "keys/" not in source:
                assert (FOLDER / source).is_file(), source


def test_the_health_command_tells_a_well_process_from_none(role: Role) -> None:
    (command,) = {tuple(s["healthcheck"]["test"]) for s in services().values() if s["image"] == "pol"}
    kind, interpreter, *arguments = command
    assert (kind, interpreter) == ("CMD", "python")
    with serve_health(HealthMetrics("verifier", role.connection), "127.0.0.1:0") as url:
        assert url is not None
        here = [argument.replace("http://127.0.0.1:9100", url) for argument in arguments]
        assert here != arguments
        assert subprocess.run([sys.executable, *here], check=False, capture_output=True).returncode == 0
    assert subprocess.run([sys.executable, *here], check=False, capture_output=True).returncode != 0


def unit(name: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in (FOLDER / name).read_text().splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(key, []).append(value)
    return found


@pytest.mark.parametrize("name", ["pol@.service", "pol-monitor.service"])
def test_units_run_commands_that_there_are(name: str) -> None:
    told = unit(name)
    (start,) = told["ExecStart"]
    program, *words = start.split()
    assert program == "/opt/pol/.venv/bin/pol"
    environment = dict(pair.split("=", 1) for line in told["Environment"] for pair in line.split())
    verb = words[0].upper()
    # What the operator's file has to say.
    environment |= {f"POL_{verb}_DEPLOYMENT": "x", f"POL_{verb}_RPC": "x"}
    if words[0] == "run":
        environment["POL_RUN_STORE"] = "x"
    for role in ("verifier", "solver") if "%i" in words else ("",):
        require_understood([word.replace("%i", role) for word in words], environment)
    assert told["Restart"] == ["always"]


def test_the_guide_names_every_file() -> None:
    guide = (FOLDER.parent / "guides" / "operate.md").read_text()
    for path in FOLDER.iterdir():
        assert path.name in guide or path.suffix == ".dockerignore", path.name


@pytest.mark.slow
def test_promtool_and_systemd_agree(tmp_path: Path) -> None:
    for tool in ("promtool", "systemd-analyze"):
        assert shutil.which(tool), f"{tool} is missing: .ci/setup --slow"
    subprocess.run(["promtool", "test", "rules", "alerts.test.yml"], cwd=FOLDER, check=True)
    subprocess.run(["promtool", "check", "config", "prometheus.yml"], cwd=FOLDER, check=True)
    for name, installed in (("pol@.service", "pol@verifier.service"), ("pol-monitor.service", "pol-monitor.service")):
        # systemd looks for the program.
        text = (FOLDER / name).read_text().replace("/opt/pol/.venv/bin/pol", shutil.which("true") or "")
        (tmp_path / installed).write_text(text)
        done = ran(["systemd-analyze", "verify", tmp_path / installed], code=None)
        assert (done.returncode, done.stderr) == (0, "")
