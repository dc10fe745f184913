"""`pol demo` as a person runs it: on the embedded chain, on a node, interrupted, with bad input."""

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from anvil_node import anvil_node
from cli_runner import DOCS, Said, blocks, pol, require_shown, run_line, shell_lines, words_and_code
from ended_process import ran
from forked_programs import run_program
from pol.chain.account.wallet import Wallet
from pol.chain.node.connection import Connection

SCRIPT = Path(sys.executable).parent / "pol"
KEY = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
"""Anvil's first, known to everyone."""
MOVE_GAS, DESCRIBE_GAS, LAST_GAS = 60_000, 80_000, 200_000
"""Of a transaction in all: a move, one that shows a descriptor and the facts that it belongs to, and the last one, in
which the market settles its side of the dispute: a stake is split, and another seat opened."""


def story(*arguments: str | Path) -> dict[str, Any]:
    command = [str(SCRIPT), "demo", "--json", *map(str, arguments)]
    done = ran(command)
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


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The story that README.md tells, in a folder."""
    parent = tmp_path_factory.mktemp("demo")
    report = story("--out", parent / "story")
    assert [file.name for file in parent.iterdir()] == ["story"]
    assert report == report_of(parent / "story")
    return parent / "story"


def report_of(folder: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())
    return report


@pytest.mark.long
def test_the_story(kept: Path) -> None:
    report = report_of(kept)
    check(report)
    assert not report["objection"]["drawn"], "choose a default seed whose objection finds what no verifier looked at"
    assert report["dispute"]["ended_by"] == "proof", "in the story that is told by default the EVM convicts the liar"
    assert pol("demo", "--out", kept) == Said(2, match="isn't empty")


@pytest.mark.long
def test_its_replay(kept: Path) -> None:
    report, again = report_of(kept), json.loads(pol("replay", kept, "--json").out)
    assert again["winner"] == "challenger"
    assert len(again["moves"]) == report["dispute"]["moves"]
    assert again["moves"][-1]["one_step"] == report["one_step"]
    assert [m["gas"] for m in again["moves"]] == [m["gas"] for m in report["dispute"]["gas_by_move"]]
    assert pol("replay", kept) == Said(0, match=report["one_step"]["node"])
    assert pol("replay", kept, "--false-dispute") == Said(0, match="The asserter wins")
    objected = json.loads(pol("replay", kept, "--objection", "--json").out)
    assert objected["moves"][-1]["one_step"] == report["objection"]["one_step"]
    for verb in ("replay", "dispute"):  # as processes of their own
        assert subprocess.run([SCRIPT, verb, kept], capture_output=True, check=False).returncode == 0


@pytest.mark.long
def test_every_move_by_itself(kept: Path) -> None:
    """What lay open, what was picked, what is left; the numbers are those of the story."""
    report, moves = report_of(kept), json.loads(pol("dispute", kept, "--json").out)["moves"]
    assert [m["number"] for m in moves] == list(range(report["dispute"]["transactions"] + 1))
    for before, move in pairwise(moves):
        assert move["lay_open"] == before["opened"]
        assert move["side"] != before["side"]
    last = moves[-1]
    assert (last["winner"], last["one_step"]) == ("challenger", report["one_step"])
    assert last["lay_open"][last["picked"]]["value"] == report["one_step"]["claimed"]
    assert last["place"]["source"] == report["one_step"]["source"]
    table = pol("dispute", kept)
    assert table == Said(0, match=report["one_step"]["source"])
    assert all(f"{move['gas']:,}" in table.out for move in moves[1:])
    one = pol("dispute", kept, "--move", str(last["number"]))
    assert one == Said(0, match=f"-> {last['lay_open'][last['picked']]['part']}")
    assert pol("dispute", kept, "--move", "99") == Said(2)


@pytest.mark.long
def test_what_was_tampered_with_is_noticed(kept: Path, tmp_path: Path) -> None:
    """A record that was changed or cut, and a store that lost its bytes."""
    out = tmp_path / "story"
    shutil.copytree(kept, out)
    record = out / "dispute.json"
    original = record.read_text()
    document = json.loads(original)
    document["moves"][0]["payload"] = "00" + document["moves"][0]["payload"][2:]
    record.write_text(json.dumps(document))
    assert pol("replay", out) == Said(1, match="it was changed")
    document = json.loads(original)
    del document["moves"][-1]
    record.write_text(json.dumps(document))
    assert "cut off" in pol("replay", out).out
    record.write_text(original[: len(original) // 2])
    assert pol("replay", out) == Said(1)
    record.write_text(original)
    digest = json.loads((out / "task.json").read_text())["document"]
    (out / "store" / digest[:2] / digest).write_bytes(b"{}")
    assert pol("replay", out) == Said(1, match="corrupt")


@pytest.mark.long
@pytest.mark.parametrize("page", ["guides/replay.md", "quickstarts/protocol_developer.md"])
def test_pages_about_the_story(page: str, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They begin with the demo, and what they look at is there."""
    first, *lines = shell_lines(DOCS / page)
    (*command, place), _ = words_and_code(first)
    assert command == ["pol", "demo", "--out"]
    (tmp_path / place).parent.mkdir()
    (tmp_path / place).symlink_to(kept)
    monkeypatch.chdir(tmp_path)
    said = "".join(map(run_line, lines))
    for program, shown in zip(blocks(DOCS / page, "python"), blocks(DOCS / page, "text"), strict=False):
        run_program(program, tmp_path)
        require_shown(shown, tmp_path.with_name(f"{tmp_path.name}-said").read_text())
        require_shown(blocks(DOCS / page, "text")[-1], said)


@pytest.mark.long
def test_on_a_real_node() -> None:
    with anvil_node() as url:
        check(story("--rpc", url, "--seed", "3"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(25))
def test_every_seed_works(seed: int) -> None:
    check(story("--seed", str(seed)))


def disturbed(folder: Path, disturb: Callable[[subprocess.Popen[str]], None], *options: str) -> tuple[int, str]:
    """Exit code and errors of a demo that leaves nothing in its folder."""
    command = [SCRIPT, "demo", "--out", "story", *options]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        disturb(process)
        _, stderr = process.communicate()
    assert "Traceback" not in stderr
    assert list(folder.iterdir()) == []
    return process.returncode, stderr


def wait_until(process: subprocess.Popen[str], holds: Callable[[], bool]) -> None:
    while not holds():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


@pytest.mark.long
def test_a_node_that_dies_in_the_middle(tmp_path: Path) -> None:
    with ExitStack() as stack:
        url = stack.enter_context(anvil_node())

        def die(process: subprocess.Popen[str]) -> None:
            wait_until(process, lambda: Connection.to(url).block_number() > 20)
            stack.close()

        code, errors = disturbed(tmp_path, die, "--rpc", url)
    assert code == 3
    assert "Is the node running" in errors


@pytest.mark.slow
def test_a_funder_gets_back_what_is_left() -> None:
    """The parties' keys follow from the funder's: nobody else can have them."""
    with anvil_node() as url:
        check(report := story("--rpc", url, "--funder-key", KEY))
        left = Wallet.create(Connection.to(url), bytes.fromhex(KEY)).balance()
        # Tickets can be resigned, which takes days; what the fund was given is nobody's any more.
        balances = report["balances_wei"]
        stays = balances["jackpot fund"]["after"] + sum(balance["locked"] for balance in balances.values())
        assert left > 9_999 * 10**18 - stays


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_interrupted(tmp_path: Path, number: signal.Signals) -> None:
    """^C in the middle: one line, exit code 130, nothing half-written. While it imports: cli/test_interrupts.py."""

    def interrupt(process: subprocess.Popen[str]) -> None:
        wait_until(process, lambda: any(tmp_path.glob(".pol-demo-*/store/*")))
        process.send_signal(number)

    code, errors = disturbed(tmp_path, interrupt)
    assert code == 130
    assert "interrupted" in errors


@pytest.mark.slow
@pytest.mark.timeout(3600)  # of waiting for windows and blocks alone it takes more than twenty minutes
def test_on_a_chain_whose_time_nobody_moves() -> None:
    """A block every second, windows waited for, parties paid by a funder: as on a public test network, in minutes."""
    with anvil_node("--block-time", "1") as url:
        program = (
            "import sys, pol.chain.node.connection as c; c.TEST_CLIENTS = ();"
            f"sys.argv = ['pol', 'demo', '--json', '--rpc', '{url}', '--funder-key', '{KEY}'];"
            "from pol.cli.main import main; main()"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    check(json.loads(done.stdout))
