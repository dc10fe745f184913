"""``pol up``, ``pol submit`` and ``pol fetch``: a market on this machine, and the user's own model on it."""

import asyncio
import importlib
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
import tomllib
import urllib.request
from dataclasses import fields
from pathlib import Path

import pytest
import torch
from market_runner import TRAIN, RunningMarket, alive
from safetensors.torch import load_file
from web3 import Web3

from cli_runner import Said, pol
from pol.chain.account.wallet import Wallet
from pol.chain.deployments.deployment import Deployment
from pol.chain.desks.market import MarketAddresses
from pol.chain.desks.task_registry import TaskOutcome
from pol.demo import digits
from pol.errors import OperationalError, ProtocolError
from pol.local_market.local_node import find_anvil, start_node
from pol.local_market.market_folder import MarketFolder
from pol.local_market.market_processes import MarketProcesses
from pol.roles.submitter.submitter import Offer
from pol.submission import MarketPlace, Submission, submit
from pol.submission.submission import interval_of, offer_of
from pol.submission.task_function import captured_step, shuffled_order

ANVIL_CHAIN, ETHER = 31337, 10**18


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("user") / "train.py"
    file.write_text(TRAIN)
    return file


# --- parts ------------------------------------------------------------------------------------------------------------


def test_a_folder_is_used_by_one_market_and_holds_nothing_else(tmp_path: Path) -> None:
    folder = MarketFolder(tmp_path / "market")
    with folder.locked():
        key = folder.key("solver")
        assert stat.S_IMODE(folder.key_file("solver").stat().st_mode) == 0o600
        with pytest.raises(OperationalError, match="another `pol up` runs"), MarketFolder(folder.path).locked():
            pass
        (folder.chain / "anvil.json").write_text("half of a chain")
    with folder.locked():
        assert not list(folder.chain.iterdir())  # the set-up had been interrupted
        assert folder.key("solver") == key
        folder.write_place("http://127.0.0.1:1234")
        (folder.chain / "anvil.json").write_text("a chain")
    with folder.locked():
        assert list(folder.chain.iterdir())
        assert folder.port == 1234
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("years of work")
    with pytest.raises(OperationalError, match="holds other files"), MarketFolder(tmp_path / "other").locked():
        pass
    assert (tmp_path / "other" / "thesis.tex").exists()


@pytest.mark.parametrize("embedded", [False, True])
def test_a_port_in_use_is_replaced(tmp_path: Path, embedded: bool) -> None:
    """Two that begin at once find the same ports free: only who listens first has them."""
    folder = MarketFolder(tmp_path / "market")
    processes = MarketProcesses(folder.processes)
    with socket.create_server(("127.0.0.1", 0)) as taken, folder.locked():
        port = taken.getsockname()[1]
        try:
            assert not start_node(folder, processes, port, embedded).name.endswith(f":{port}")
        finally:
            processes.end()


def test_the_explorer_replaces_a_port_in_use(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = importlib.import_module("pol.cli.market.explore")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        monkeypatch.setattr(page, "FIRST_PORT", taken.getsockname()[1])
        served = page._serve(page.Explorer(None, 1, frozenset(), []), "127.0.0.1", None, True)
        with pytest.raises(TimeoutError):
            asyncio.run(asyncio.wait_for(served, 1))
        assert not json.loads(capsys.readouterr().out)["url"].endswith(f":{taken.getsockname()[1]}/")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
def test_a_program_of_somebody_else_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as one in a folder for all, above the one in which a market is started."""
    planted = tmp_path / "node_modules" / ".bin" / "anvil"
    planted.parent.mkdir(parents=True)
    planted.write_text("#!/bin/sh\n")
    planted.chmod(0o755)
    (tmp_path / "own").mkdir()
    monkeypatch.chdir(tmp_path / "own")
    monkeypatch.setenv("PATH", str(tmp_path / "own"))
    assert find_anvil() == planted
    os.chown(planted, 65534, 65534)
    assert find_anvil() != planted


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("anvil.json", "is anvil's: put anvil on the PATH and leave --embedded out"),
        ("embedded.journal", r"the node didn't start .*can't open the chain's journal"),
    ],
)
def test_a_node_that_does_not_start_says_why(tmp_path: Path, entry: str, problem: str) -> None:
    folder = MarketFolder(tmp_path / "market")
    with folder.locked():
        (folder.chain / entry).mkdir()
        with pytest.raises(OperationalError, match=problem):
            start_node(folder, MarketProcesses(folder.processes), 0, embedded=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
def test_a_list_of_processes_by_somebody_else_ends_none(tmp_path: Path) -> None:
    processes = MarketProcesses(tmp_path / "processes.json")
    processes.start("own", [sys.executable, "-c", "import time; time.sleep(600)"], tmp_path / "log")
    try:
        os.chown(tmp_path / "processes.json", 65534, 65534)
        assert MarketProcesses(tmp_path / "processes.json").end_orphans() == 0
        assert processes.is_alive("own")
    finally:
        processes.end()


def test_only_own_processes_are_ended(tmp_path: Path) -> None:
    """An id that is another process's by now is left alone."""
    sleep = [sys.executable, "-c", "import time; time.sleep(600)"]
    first = MarketProcesses(tmp_path / "processes.json")
    first.start("orphan", sleep, tmp_path / "log")
    pid, stranger = first.pids()["orphan"], subprocess.Popen(sleep)
    try:
        known = json.loads((tmp_path / "processes.json").read_text())
        known["stranger"] = [stranger.pid, known["orphan"][1] - 1]
        known["gone"] = [2**22 - 3, 1]
        (tmp_path / "processes.json").write_text(json.dumps(known))
        assert MarketProcesses(tmp_path / "processes.json").end_orphans() == 1
        assert not alive(pid)
        assert alive(stranger.pid)
        for damaged in ("[1]", '{"a": ["x", 1]}', '{"a": 1}', "{"):
            (tmp_path / "processes.json").write_text(damaged)
            assert MarketProcesses(tmp_path / "processes.json").end_orphans() == 0
    finally:
        stranger.kill()
        stranger.wait()
    assert first.ended() == ["orphan"]
    assert first.restart("orphan", 2, 3600)
    assert first.is_alive("orphan")
    os.kill(first.pids()["orphan"], signal.SIGKILL)
    while first.is_alive("orphan"):
        time.sleep(0.01)
    assert not first.restart("orphan", 2, 3600)  # the second time within an hour
    first.end()


@pytest.mark.parametrize(("steps", "interval"), [(300, 25), (24, 2), (12, 1), (7, 1), (301, 7), (1, 1)])
def test_segments_are_equal_and_there_are_enough(steps: int, interval: int) -> None:
    assert interval_of(steps) == interval


def test_an_offer_is_at_most_the_price_and_leaves_time_for_replays() -> None:
    quick, slow = (offer_of(300, 10**6, ETHER, ANVIL_CHAIN, seconds, 25) for seconds in (0.0, 10.0))
    assert quick.wei_per_work_unit * 300 * 10**6 <= ETHER < (quick.wei_per_work_unit + 1) * 300 * 10**6
    assert slow.challenge_window - quick.challenge_window == 12 * 6 * 10 * 3
    assert offer_of(300, 10**6, ETHER, 1, 0.0, 25).challenge_window == Offer.challenge_window
    assert offer_of(2, 10**6, ETHER, ANVIL_CHAIN, 0.0, 1).draws == 2
    with pytest.raises(ProtocolError, match="300000000 wei are the least"):
        offer_of(300, 10**6, 5, ANVIL_CHAIN, 0.0, 25)


def test_an_order_is_shuffles_one_after_another() -> None:
    order = shuffled_order(10, 7, 3, seed=1)
    assert order.shape == (7, 3)
    assert len(set(order[:3].flatten().tolist())) == 9
    assert torch.equal(order, shuffled_order(10, 7, 3, seed=1))
    assert not torch.equal(order, shuffled_order(10, 7, 3, seed=2))
    assert shuffled_order(5, 4).shape == (4, 5)  # a small data set is a batch
    with pytest.raises(ProtocolError, match="a batch of 11 can't be drawn from 10 samples"):
        shuffled_order(10, 7, 11)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (7, "the function returns int: return .model, loss, optimizer, dataset."),
        ((1, 2), "the function returns 2 parts"),
        (("model", None, None, None), "model is a str, not a torch.nn.Module"),
        ({"model": torch.nn.Linear(1, 1)}, "no loss and no optimizer and no dataset"),
        ((torch.nn.Linear(1, 1), None, None, "file.csv"), "no tuple of tensors"),
    ],
)
def test_what_is_no_task_is_said(made: object, told: str) -> None:
    with pytest.raises(ProtocolError, match=told):
        captured_step(made)


def test_a_captured_step_is_a_task_as_it_is() -> None:
    step = captured_step(digits.captured(1))
    assert (step.steps, step.weights) == (digits.STEPS, None)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("network = ", "isn't TOML"),
        ('network = "local"\n[networks.other]\n', "doesn't say the rpc of the network local"),
        ('network = "a"\n[networks.a]\nrpc = "http://127.0.0.1:9"\nstore = "s"\n', "doesn't say the deployment"),
    ],
)
def test_a_place_that_says_something_else(tmp_path: Path, content: str, told: str) -> None:
    (tmp_path / "pol.toml").write_text(content)
    with pytest.raises(ProtocolError, match=told):
        MarketPlace.here(tmp_path)


@pytest.mark.parametrize("where", ["", "pol-market"])
def test_a_place_that_others_may_write_is_taken_only_by_name(
    tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who writes it chooses the node and the contracts that get this user's money."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / where / "pol.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text('network = "local"\n[networks.local]\nrpc = "http://127.0.0.1:9"\ndeployment = "d"\nstore = "s"\n')
    file.chmod(0o666)
    with pytest.raises(ProtocolError, match=r"others than you may write .*: name its folder"):
        MarketPlace.here()
    assert pol("fetch", "1234") == Said(1 if where else 2, match="others than you may write")
    with pytest.raises(OperationalError, match="start it by `pol up --folder"):
        MarketPlace.here(file.parent)
    file.chmod(0o644)
    with pytest.raises(OperationalError, match="start it by `pol up --folder"):
        MarketPlace.here()


def test_without_a_market_there_is_one_line(tmp_path: Path, script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert pol("fetch", "1234") == Said(3, match="there is no market here: start one by `pol up`")
    assert pol("fetch", "1234", "--out", "/") == Said(2, match="is a directory")
    (tmp_path / "pol.toml").write_text(
        'network = "local"\n[networks.local]\nrpc = "http://127.0.0.1:9"\ndeployment = "d"\nstore = "s"\n'
    )
    places = [Web3.to_checksum_address("0x" + "11" * 20)] * (4 + len(fields(MarketAddresses)))
    deployment = Deployment(1, 0, *places[:4], MarketAddresses(*places[4:]))
    (tmp_path / "d").write_text(deployment.to_json())
    # Named, or found: another line of code says it.
    said = pol("submit", f"{script}:make_task", "--price", "1", "--market", tmp_path)
    assert said == Said(3, match="start it by `pol up --folder")
    (tmp_path / "market.lock").touch()
    assert pol("submit", f"{script}:make_task", "--price", "1") == Said(3, match="start the market by `pol up --folder")


# --- the whole --------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.timeout(900)
def test_from_nothing_to_weights(tmp_path: Path, script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A market, a task, its weights; a role is killed; the market ends, and goes on where it was."""
    folder = tmp_path / "pol-market"
    monkeypatch.chdir(tmp_path)
    with RunningMarket(folder) as market:
        ready = market.ready()
        assert set(ready["processes"]) == {"node", "solver", "verifier-1", "verifier-2", "whistleblower", "explorer"}
        for file in (folder / "keys").iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
        place = tomllib.loads((folder / "pol.toml").read_text())["networks"]["local"]
        assert place["rpc"] == ready["rpc"]
        assert pol("up", "--folder", folder) == Said(3, match="another `pol up` runs")
        for function, told in (
            ("half_a_task", "the function returns 2 parts: return (model, loss, optimizer, dataset)"),
            ("no_task", "the function returns int: return"),
            ("broken", "RuntimeError: no such data set"),
            ("missing", "has no function missing"),
        ):
            said = pol("submit", f"{script}:{function}", "--price", "1")
            assert told in said.out.splitlines()[-1], said.out
            assert said.code in {1, 3}
            assert len(said.out.splitlines()) <= 3  # "pol: running" and "pol: capturing" come before
        assert pol("submit", f"{script}:make_task", "--price", "much") == Said(1, match="much is no price")

        sent = pol("submit", f"{script}:make_task", "--price", "1", "--no-follow", "--json")
        assert sent == Said(0), sent.out
        task = json.loads(sent.out)["task"]
        assert pol("fetch", task[:8]) == Said(3, match="isn't settled yet")
        # A party is killed while the task is on its way, and is there again without anybody's help.
        os.kill(ready["processes"]["verifier-1"], signal.SIGKILL)
        market.until(lambda line: "verifier-1 had ended" in line.get("message", ""))
        weights = tmp_path / "weights.safetensors"
        assert pol("fetch", task[:8], "--wait", "--out", weights) == Said(0, match="with the root that is on chain")
        monkeypatch.chdir(folder)
        # Where pol.toml is, nothing has to be named.
        assert pol("explain", task[:8]) == Said(0, match="accepted")
        assert pol("stake", "enrol") == Said(0, match="tickets        1")
        assert pol("run", "verifier", "--test-terms", "--turns", "1") == Said(0, match="verifier 0x")
        assert pol("fetch", "--out", tmp_path / "again.safetensors") == Said(0)
        assert (tmp_path / "again.safetensors").read_bytes() == weights.read_bytes()
        monkeypatch.chdir(tmp_path)
        with urllib.request.urlopen(ready["page"] + f"task/{task}") as page:
            assert "accepted" in page.read().decode()

    assert market.process.returncode == 0, market.log.read_text()
    assert not [name for name, pid in ready["processes"].items() if alive(pid)]
    space: dict[str, object] = {}
    exec(TRAIN, space)
    model = space["make_model"]()  # type: ignore[operator]  # of the script
    assert model.load_state_dict(load_file(weights)).missing_keys == []
    assert int(model.seen) == 300 * 32
    assert digits.accuracy(model) > 0.9

    with RunningMarket(folder) as market:
        assert market.ready()["rpc"] == place["rpc"]
        found = Submission.of(task[:8], MarketPlace.here())
        assert found.task().outcome is TaskOutcome.ACCEPTED
        with pytest.raises(ProtocolError, match=f"none of 1 tasks begins with zz: {task[:8]} is the newest"):
            Submission.of("zz", MarketPlace.here())
        assert torch.equal(found.weights()["first.weight"], model.first.weight)
        _require_told_what_to_do(market.ready()["processes"]["solver"], folder)


def _require_told_what_to_do(solver: int, folder: Path) -> None:
    """Without a solver: one that neither lives nor has ended. Nobody bids, and whoever follows the task is told."""
    os.kill(solver, signal.SIGSTOP)
    try:
        sent = submit(digits.captured(1), 1, folder)
        with pytest.raises(OperationalError, match=r"nobody has made the next call .* start them by `pol up`"):
            sent.wait(patience=10)
    finally:
        os.kill(solver, signal.SIGCONT)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_solver_that_lies_is_caught_and_nobody_pays_for_it(tmp_path: Path, script: Path) -> None:
    """On the embedded chain; on anvil the quickstarts of parties have such a solver."""
    with RunningMarket(tmp_path / "market", "--cheat", "solver", "--embedded") as market:
        market.ready()
        place = MarketPlace.here(tmp_path / "market")
        assert place.signer is not None
        vault = place.deployment.market(place.connection).vault
        before = vault.free(place.signer.address)
        space: dict[str, object] = {}
        exec(TRAIN, space)
        sent = submit(space["make_task"](), 1, place, batch=16)  # type: ignore[operator]  # of the script
        assert before - vault.free(place.signer.address) > ETHER * 999 // 1000
        told = [step.what for step in sent.progress(patience=900)]
        assert told[-1] == "The task is settled."
        assert sent.task().outcome is TaskOutcome.REJECTED
        # The verifier's fee is paid from the stake of the solver.
        assert vault.free(place.signer.address) >= before
        with pytest.raises(ProtocolError, match="the task was rejected"):
            sent.weights()
    assert market.process.returncode == 0, market.log.read_text()


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_verifier_that_lies_loses_its_seat_and_the_task_is_accepted(tmp_path: Path, script: Path) -> None:
    """The whistleblower disputes the false verdict; the liar stays away from the task, and another verifier sits."""
    with RunningMarket(tmp_path / "market", "--cheat", "verifier") as market:
        market.ready()
        place = MarketPlace.here(tmp_path / "market")
        space: dict[str, object] = {}
        exec(TRAIN, space)
        sent = submit(space["make_task"](), 1, place, batch=16)  # type: ignore[operator]  # of the script
        told = [step.what for step in sent.progress(patience=900)]
        assert told[-1] == "The task is settled."
        assert sent.task().outcome is TaskOutcome.ACCEPTED
        desks = place.deployment.market(place.connection)
        settled = desks.challenges.events("DisputeSettled")
        assert [event["asserterWon"] for event in settled].count(False) >= 1
        liar = Wallet.create(place.connection, MarketFolder(tmp_path / "market").key("verifier-1")).address
        first, *_, last = desks.verdicts.events("VerdictPosted")
        assert (first["verifier"], last["verifier"] == liar) == (liar, False)
    assert market.process.returncode == 0, market.log.read_text()
