"""`pol demo` as a person runs it: on the embedded chain, on a node, interrupted, with bad input."""

import json
import os
import signal
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from anvil_node import anvil_node
from pol.chain.account.wallet import Wallet
from pol.chain.node.connection import Connection

POL = Path(sys.executable).parent / "pol"


MOVE_GAS, DESCRIBE_GAS, LAST_GAS = 60_000, 80_000, 200_000
"""Of a transaction in all: a move, one that shows a descriptor and the facts that it belongs to, and the last one, in
which the market settles its side of the dispute: a stake is split, and another seat opened."""


def pol(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [str(POL), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


def story(*arguments: str | Path) -> dict[str, Any]:
    done = pol("demo", "--json", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def check(report: dict[str, Any]) -> None:
    assert report["accepted"]
    assert report["cheating_solver_rejected"]
    assert report["lying_verifier_slashed"]
    assert report["false_challenger_slashed"]
    assert report["settled"] == ["rejected", "accepted"]
    assert report["total_change_wei"] == 0
    change = {party: balance["change"] for party, balance in report["balances_wei"].items()}
    earning, losing = ("honest solver", "honest verifier", "whistleblower"), ("cheating solver", "lying verifier")
    assert all(change[party] > 0 for party in earning)
    assert all(change[party] < 0 for party in (*losing, "false challenger", "submitter"))
    locked = {party for party, balance in report["balances_wei"].items() if balance["locked"]}
    assert locked == {"honest verifier", "lying verifier", "whistleblower"}
    assert 0 <= report["planted_errors"] <= 3
    objection = report["objection"]
    assert (objection["winner"], objection["ended_by"]) == ("challenger", "proof")
    assert objection["verdict_accepted"] is not objection["drawn"]
    assert objection["one_step"]["claimed"] == "0x00000000"
    assert report["dispute"]["winner"] == "challenger"
    assert report["false_dispute"]["winner"] == "asserter"
    one = report["one_step"]
    assert one["claimed"] != one["computed"]
    assert one["source"]
    assert len(one["operands"]) >= 1 or one["terms"][1] > one["terms"][0]
    for dispute in (report["dispute"], report["false_dispute"], objection):
        *moves, last = dispute["gas_by_move"]
        assert last["gas"] == dispute["gas_last"] <= LAST_GAS
        assert (last["move"] == "Resign") == (dispute["ended_by"] == "resignation")
        for move in moves:
            shows = move["move"].startswith(("Describe", "Show"))
            assert move["gas"] <= (DESCRIBE_GAS if shows else MOVE_GAS), move


@pytest.mark.long
def test_the_story_and_its_replay(tmp_path: Path) -> None:
    out = tmp_path / "story"
    report = story("--out", out)
    check(report)
    # The story that README.md tells.
    assert not report["objection"]["drawn"]
    assert report["dispute"]["ended_by"] == "proof", "in the story that is told by default the EVM convicts the liar"
    assert sorted(f.name for f in tmp_path.iterdir()) == ["story"]
    assert json.loads((out / "report.json").read_text())["dispute"] == report["dispute"]
    done = pol("replay", out, "--json")
    assert done.returncode == 0, done.stderr
    again = json.loads(done.stdout)
    assert again["winner"] == "challenger"
    assert len(again["moves"]) == report["dispute"]["moves"]
    assert again["moves"][-1]["one_step"] == report["one_step"]
    assert [m["gas"] for m in again["moves"]] == [m["gas"] for m in report["dispute"]["gas_by_move"]]
    words = pol("replay", out)
    assert report["one_step"]["node"] in words.stdout
    baseless = pol("replay", out, "--false-dispute")
    assert "The asserter wins" in baseless.stdout
    objected = json.loads(pol("replay", out, "--objection", "--json").stdout)
    assert objected["moves"][-1]["one_step"] == report["objection"]["one_step"]
    audit(out, report)
    occupied = pol("demo", "--out", out)
    assert occupied.returncode == 2
    assert "isn't empty" in occupied.stderr
    damage(out)


def audit(out: Path, report: dict[str, Any]) -> None:
    """Every move by itself: what lay open, what was picked, what is left; the numbers are those of the story."""
    moves = json.loads(pol("dispute", out, "--json").stdout)["moves"]
    assert [m["number"] for m in moves] == list(range(report["dispute"]["transactions"] + 1))
    for before, move in pairwise(moves):
        assert move["lay_open"] == before["opened"]
        assert move["side"] != before["side"]
    last = moves[-1]
    assert (last["winner"], last["one_step"]) == ("challenger", report["one_step"])
    assert last["lay_open"][last["picked"]]["value"] == report["one_step"]["claimed"]
    assert last["place"]["source"] == report["one_step"]["source"]
    table = pol("dispute", out)
    assert table.returncode == 0, table.stderr
    assert report["one_step"]["source"] in table.stdout
    assert all(f"{move['gas']:,}" in table.stdout for move in moves[1:])
    one = pol("dispute", out, "--move", str(last["number"]))
    assert f"-> {last['lay_open'][last['picked']]['part']}" in one.stdout
    assert pol("dispute", out, "--move", "99").returncode == 2


def damage(out: Path) -> None:
    """A record that was tampered with, and a store that lost its bytes, are both noticed."""
    record = out / "dispute.json"
    original = record.read_text()
    document = json.loads(original)
    document["moves"][0]["payload"] = "00" + document["moves"][0]["payload"][2:]
    record.write_text(json.dumps(document))
    done = pol("replay", out)
    assert done.returncode == 1
    assert "it was changed" in done.stderr
    document = json.loads(original)
    del document["moves"][-1]
    record.write_text(json.dumps(document))
    assert "cut off" in pol("replay", out).stderr
    record.write_text(original[: len(original) // 2])
    assert pol("replay", out).returncode == 1
    record.write_text(original)
    digest = json.loads((out / "task.json").read_text())["document"]
    (out / "store" / digest[:2] / digest).write_bytes(b"{}")
    done = pol("replay", out)
    assert done.returncode == 1
    assert "corrupt" in done.stderr


@pytest.mark.long
def test_on_a_real_node() -> None:
    with anvil_node() as url:
        check(story("--rpc", url, "--seed", "3"))
        check(story("--rpc", url, "--seed", "4"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(25))
def test_every_seed_works(seed: int) -> None:
    check(story("--seed", str(seed)))


@pytest.mark.long
def test_a_node_that_is_down() -> None:
    done = pol("demo", "--rpc", "http://127.0.0.1:9")
    assert done.returncode == 3
    assert "Is the node running" in done.stderr


def test_bad_usage() -> None:
    assert pol("demo", "--funder-key", "xyz").returncode == 2
    assert pol("replay", "nowhere").returncode == 3
    assert pol("bench", "nothing").returncode == 2
    assert pol("demo", "--seed", "-1").returncode == 2
    assert pol("demo", "--funder-key", "00" * 32).returncode == 2
    under_a_file = pol("demo", "--out", Path(__file__) / "story", "--json")
    assert under_a_file.returncode == 3
    assert "another folder" in json.loads(under_a_file.stdout)["error"]


@pytest.mark.long
def test_a_server_that_is_no_node() -> None:
    """It answers, with a web page."""

    class Page(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>hello</html>")

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        done = pol("demo", "--rpc", f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
    assert done.returncode == 3
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_a_node_that_dies_in_the_middle(tmp_path: Path) -> None:
    with anvil_node() as url:
        command = [str(POL), "demo", "--rpc", url, "--out", "story"]
        process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        time.sleep(5)
    _, stderr = process.communicate(timeout=300)
    assert process.returncode == 3
    assert "Is the node running" in stderr
    assert "Traceback" not in stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_funder_gets_back_what_is_left() -> None:
    """The parties' keys follow from the funder's: nobody else can have them."""
    key = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"  # anvil's first, known to everyone
    with anvil_node() as url:
        check(report := story("--rpc", url, "--funder-key", key))
        connection = Connection.to(url)
        left = Wallet.create(connection, bytes.fromhex(key)).balance()
        # Tickets can be resigned, which takes days; what the fund was given is nobody's any more.
        balances = report["balances_wei"]
        stays = balances["jackpot fund"]["after"] + sum(balance["locked"] for balance in balances.values())
        assert left > 9_999 * 10**18 - stays


@pytest.mark.long
@pytest.mark.parametrize(
    ("seconds", "number"), [(0.3, signal.SIGINT), (1.0, signal.SIGINT), (4.5, signal.SIGINT), (4.5, signal.SIGTERM)]
)
def test_interrupted(tmp_path: Path, seconds: float, number: int) -> None:
    """^C at any time: one line, exit code 130, nothing half-written."""
    command = [str(POL), "demo", "--out", "story"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        time.sleep(seconds)
        os.kill(process.pid, number)
        _, stderr = process.communicate(timeout=240)
    assert process.returncode == 130
    assert "interrupted" in stderr
    assert "Traceback" not in stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.timeout(3600)  # of waiting for windows and blocks alone it takes more than twenty minutes
def test_on_a_chain_whose_time_nobody_moves() -> None:
    """A block every second, windows waited for, parties paid by a funder: as on a public test network, in minutes."""
    key = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"  # anvil's first, known to everyone
    with anvil_node("--block-time", "1") as url:
        program = (
            "import sys, pol.chain.node.connection as c; c.TEST_CLIENTS = ();"
            f"sys.argv = ['pol', 'demo', '--json', '--rpc', '{url}', '--funder-key', '{key}'];"
            "from pol.cli.main import main; main()"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    check(json.loads(done.stdout))
