"""No party stakes on a task whose dispute it can't hold in memory or get into a block."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from role_market import EXACT, Town, captured, submitted

from cli_runner import Said, pol
from pol.dispute.dispute_needs import DisputeNeeds
from pol.dispute.encoding.move_sizes import gas_of
from pol.errors import ProtocolError
from pol.execution.available_memory import available_memory
from pol.roles.party.machine import MachineSpeeds
from pol.roles.party.policy import PUBLIC_CHAIN
from pol.roles.process import defence
from pol.roles.process.defence import require_log, require_memory
from pol.roles.solver.solver import Solver

NEEDS = DisputeNeeds(captured().program, EXACT.interval)


@pytest.fixture(scope="module")
def task_id(node: Town) -> bytes:
    return submitted(node, EXACT)[0]


def test_what_exceeds_the_policy_s_gas_is_left_alone(town: Town, task_id: bytes) -> None:
    solver = town.join(Solver, "t")
    terms, gas = solver.market.registry.terms(task_id), gas_of(NEEDS.dearest_move)
    require_log(solver, task_id, terms)
    solver.policy = replace(solver.policy, max_move_gas=gas - 1)
    with pytest.raises(ProtocolError, match=f"takes up to {gas} gas.*leave the task alone"):
        require_log(solver, task_id, terms)
    solver.policy = replace(solver.policy, max_move_gas=gas)
    require_log(solver, task_id, terms)


def test_what_exceeds_a_block_is_left_alone() -> None:
    """The proof of some node is the dearest move."""
    gas = gas_of(NEEDS.dearest_proof[1])
    PUBLIC_CHAIN.require_gas(NEEDS, gas)
    with pytest.raises(ProtocolError, match=f"a block has {gas - 1}"):
        PUBLIC_CHAIN.require_gas(NEEDS, gas - 1)


def test_what_exceeds_free_memory_is_left_alone(
    town: Town, task_id: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The task's own data are in memory when free memory is looked at."""
    more = NEEDS.memory - NEEDS.constant_bytes
    require_memory(NEEDS, more)
    require_memory(NEEDS, None)
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc" / "meminfo").write_text(f"MemAvailable: {(more - 1) // 1024} kB\n")
    monkeypatch.setattr(defence, "available_memory", lambda: available_memory(tmp_path))
    solver = town.join(Solver, "t")
    with pytest.raises(ProtocolError, match=r"bytes of memory besides its data.*leave the task alone"):
        require_log(solver, task_id, solver.market.registry.terms(task_id))


def test_the_needs_of_a_dispute_are_explained(town: Town, task_id: bytes, tmp_path: Path) -> None:
    """Of a task on chain, with this machine's times and the limits; of its program in a file, without."""
    (tmp_path / "deployment.json").write_text(town.deployment.to_json())
    place = ("--deployment", tmp_path / "deployment.json", "--rpc", town.connection.name, "--store", town.store_url)
    shown = json.loads(pol("explain", task_id.hex()[:8], "--dispute", "--json", *place).out)
    assert shown["moves"] == NEEDS.moves
    assert shown["dearest_proof"]["gas"] == gas_of(NEEDS.dearest_proof[1])
    assert shown["bytes"]["memory"] == NEEDS.memory
    assert 0 < shown["seconds"]["later"] < shown["seconds"]["all"]
    assert shown["limits"]["clock"] == EXACT.clock
    assert shown["refusal"] == ""
    said = pol("explain", task_id.hex(), "--dispute", *place)
    assert said == Said(0, match="all moves of one side (clock)")
    assert said == Said(0, match=f"moves of both sides  {NEEDS.moves} at most")
    (tmp_path / "program.bin").write_bytes(NEEDS.program.to_bytes())
    of_file = ("explain", tmp_path / "program.bin", "--dispute", "--interval", str(EXACT.interval), "--json")
    alone = json.loads(pol(*of_file).out)
    assert alone == {name: shown[name] for name in alone} | {"seconds": None}
    assert json.loads(pol(*of_file, "--step-seconds", "100").out)["seconds"]["later"] > 100
    assert pol("explain", task_id.hex(), "--dispute") == Said(2, match="name the market")
    assert pol("explain", tmp_path / "deployment.json", "--dispute") == Said(1, match="not a step program")


KIB = 1024
MEMINFO = "MemTotal: 100 kB\nMemFree: 1 kB\nMemAvailable: 50 kB\n"
LIMITS = {
    "none": ({}, 50 * KIB),
    "no limit": ({"memory.max": "max", "memory.current": "1000", "memory.stat": ""}, 50 * KIB),
    "version 2": (
        {"memory.max": "20480", "memory.current": "15000", "memory.stat": "anon 9\ninactive_file 1000"},
        6480,
    ),
    "version 1": (
        {
            "memory/memory.limit_in_bytes": "20480",
            "memory/memory.usage_in_bytes": "15000",
            "memory/memory.stat": "total_inactive_file 1000",
        },
        6480,
    ),
    "a high limit": ({"memory.max": "9999999", "memory.current": "0", "memory.stat": ""}, 50 * KIB),
    "over the limit": ({"memory.max": "100", "memory.current": "15000", "memory.stat": ""}, 0),
}


@pytest.mark.parametrize("name", LIMITS)
def test_free_memory_is_within_the_limit_of_the_control_group(tmp_path: Path, name: str) -> None:
    files, free = LIMITS[name]
    written = {"proc/meminfo": MEMINFO} | {f"sys/fs/cgroup/{file}": text for file, text in files.items()}
    for file, text in written.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    assert available_memory(tmp_path) == free


@pytest.mark.parametrize(
    ("own", "files"),
    [
        ("0::/system.slice/pol.service", ("memory.max", "memory.current")),
        ("3:cpu:/\n2:memory:/system.slice/pol.service\n0::/", ("memory.limit_in_bytes", "memory.usage_in_bytes")),
    ],
)
@pytest.mark.parametrize("limited", ["system.slice/pol.service", "system.slice"])
def test_a_limit_of_a_service_or_of_a_group_around_it_counts(
    tmp_path: Path, own: str, files: tuple[str, str], limited: str
) -> None:
    """MemoryMax of systemd: outside of a container the process's group is below the top."""
    top = tmp_path / "sys/fs/cgroup" / ("memory" if "limit" in files[0] else "")
    written = {tmp_path / "proc/meminfo": MEMINFO, tmp_path / "proc/self/cgroup": own + "\n"}
    for group, most in (("system.slice/pol.service", "99999999"), ("system.slice", "99999999"), (limited, "20480")):
        lines = {files[0]: most, files[1]: "15000", "memory.stat": "inactive_file 1000"}
        written |= {top / group / name: text for name, text in lines.items()}
    for file, text in written.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    assert available_memory(tmp_path) == 6480


def test_free_memory_is_unknown_where_linux_is_not(tmp_path: Path) -> None:
    assert available_memory(tmp_path) is None


def test_speeds_are_what_the_timer_says() -> None:
    """Each piece of work takes two seconds by it, so none is timed twice."""
    readings = iter(range(0, 100, 2))
    speeds = MachineSpeeds.measured(lambda: next(readings))
    assert (speeds.hashing, speeds.folding) == (4 * (1 << 22) / 2, 2 * (1 << 20) / 2)
    assert next(readings) == 8
