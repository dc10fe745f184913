"""The decentralised demo as a user runs it, and what can be done with the run that it keeps."""

import io
import json
import sys
import tarfile
from pathlib import Path

import pytest
from test_demo import report_of

from cli_runner import DOCS, Said, pol, run_line, shell_lines
from ended_process import ran
from lab.rounds.public_run import packed
from pol.decentralised.processes.local_processes import local_key
from pol.demo import worker_processes
from pol.rounds import audit
from pol.training.storage.store import Store

pytestmark = pytest.mark.long
LIAR, LYING_ROUND = 1, 3


@pytest.mark.parametrize(("imported", "expected"), [(0.5, (90.0, 180.0)), (20.0, (1000.0, 2000.0))])
def test_patience_grows_with_what_an_import_takes(
    imported: float, expected: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.process_time", lambda: imported)
    found = worker_processes.patience()
    assert (found.members, found.limit) == expected


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "public-run"
    command = [sys.executable, "-m", "pol.cli.main", "demo", "--decentralised", "--json", "--out", str(folder)]
    done = ran(command)
    assert json.loads(done.stdout) == json.loads((folder / "report.json").read_text())
    return folder


def test_the_story_ends_as_it_should(run: Path) -> None:
    report = report_of(run)
    assert (report["cheats_caught"], report["honest_accused"]) == (1, 0)
    assert report["late_joiner_root_equal"] is True
    assert report["resumed_root_equal"] is True
    assert report["loss_by_round"][-1] < report["loss_by_round"][0] - 0.5
    assert report["seconds"] > 0


def test_the_dispute_ends_at_one_scalar_and_the_stake_goes_somewhere(run: Path) -> None:
    report = report_of(run)
    assert report["dispute"]["winner"] == "challenger"
    # Who has which data, and so where the dispute ends, depends on the order of arrival.
    assert 200_000 < report["dispute"]["gas_total"] < 900_000
    assert report["one_step"]["claimed"] != report["one_step"]["computed"]
    assert report["slashed"] is True
    assert report["reward_wei"] + report["burnt_wei"] == report["stake_wei"]
    assert 0 < report["reward_wei"] < report["stake_wei"] // 2


def test_the_kept_run_is_audited(run: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    report = report_of(run)
    assert (report["liar"], report["lying_round"]) == (local_key(LIAR).name, LYING_ROUND)
    lying = ("--worker", report["liar"], "--round", str(LYING_ROUND))
    said = pol("audit", run, *lying, "--report", page)
    assert said == Said(1, match=f"execution: round {LYING_ROUND}, local: {local_key(LIAR).name}")
    assert "The challenger has won" in page.read_text()
    for honest in (0, 2, 3):
        assert pol("audit", run, "--worker", local_key(honest).name, "--round", str(LYING_ROUND)) == Said(
            0, match="accepted"
        )


def test_the_quickstart_about_it(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins with the demo, and what it audits is there."""
    first, *lines = shell_lines(DOCS / "quickstarts" / "audit_a_public_run.md")
    assert first == f"pol demo --decentralised --out {run.name}"
    (tmp_path / run.name).symlink_to(run)
    monkeypatch.chdir(tmp_path)
    for line in lines:
        run_line(line)


def test_the_page_of_the_kept_run_is_there(run: Path) -> None:
    text = (run / "page.html").read_text()
    for words in ("1 lie was found", "The challenger has won", "nobody else is to blame", f"pol audit {run}", "Loss"):
        assert words in text, words
    assert ".pol-demo-" not in text


def test_an_archive_of_the_run_is_audited_as_the_run(run: Path, tmp_path: Path) -> None:
    """Release assets: the archive has the same bytes whoever packs it, and what is in it is true without its page."""
    data = packed(run)
    assert data == packed(run)
    assert len(data) < 10_000_000
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        archive.extractall(tmp_path, filter="data")
    lying = ("--worker", local_key(LIAR).name, "--round", str(LYING_ROUND))
    assert pol("audit", tmp_path / run.name, *lying) == Said(1, match="steps replayed in ")


def test_nobody_equivocates_and_the_joiner_begins_from_the_log(run: Path) -> None:
    """The killed worker has signed some claims twice: the same ones."""
    found = audit(Store(f"file://{run}/store"), is_all_roots=True)
    assert found.findings == ()
    joined = [entry for entry in found.rounds.claims.values() if entry.worker == local_key(3).name]
    assert min(entry.claim.round for entry in joined) >= 1
