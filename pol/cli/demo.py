"""``pol demo``: the whole protocol in one story, on real data."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from pol.cli.dispute.recorded_dispute import RECORDED
from pol.cli.examples import defaulted, example
from pol.cli.file_output import write_file
from pol.errors import OperationalError, reason_of
from pol.report.narrator import ConsoleNarrator, Narrator

if TYPE_CHECKING:
    from pol.chain.node.connection import Connection
    from pol.demo.rounds_scenario import RoundsReport
    from pol.demo.scenario_report import ScenarioReport

EXIT_UNEXPECTED = 1
PICTURE_WIDTH = 120


@click.command(epilog=example("pol demo --out story"))
@defaulted("--seed", type=click.IntRange(0, 2**53), default=2, help="Moves everything elsewhere.")  # 2: tests/demo
@click.option("--rpc", metavar="URL", help="Use this node instead of the embedded chain.")
@click.option("--funder-key", envvar="POL_FUNDER_KEY", metavar="HEX", help="Pays where the node unlocks no account.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Keep everything here; replay it later.")
@click.option("--picture", type=click.Path(path_type=Path), metavar="FILE", help="Save the story as an SVG picture.")
@click.option("--decentralised", is_flag=True, help="Many workers train one network; one of them cheats.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of the story.")
def demo(
    seed: int,
    rpc: str | None,
    funder_key: str | None,
    out: Path | None,
    picture: Path | None,
    decentralised: bool,
    as_json: bool,
) -> int:
    """Train, verify, cheat, lie, dispute and settle: the whole protocol on 1,797 handwritten digits."""
    if decentralised and funder_key is not None:
        raise click.UsageError("--decentralised is for test chains, where money is free: leave --funder-key out")
    began = time.monotonic()
    console = Console(quiet=as_json, record=picture is not None, width=PICTURE_WIDTH if picture else None)
    with output_folder(out) as folder:
        if decentralised:
            told = run_rounds(seed, rpc, folder, ConsoleNarrator(console))
            kept, document = told.kept_its_promises, told.to_json()
        else:
            report = run(seed, rpc, _key(funder_key), folder, ConsoleNarrator(console))
            from pol.demo.scenario_report import to_json

            kept, document = report.kept_its_promises, to_json(report)
        document |= {
            "seconds": round(time.monotonic() - began, 3),
            "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            "seed": seed,
        }
        if out is not None and decentralised:
            keep_rounds(folder, told, document)
        elif out is not None:
            keep(folder, report, document)
    if out is not None and decentralised:
        keep_page(out, told, ConsoleNarrator(console))
    if as_json:
        print(json.dumps(document, indent=2))
    else:
        console.print(f"\nDone in {document['seconds']:.0f} seconds, {document['peak_memory_mb']} MB at most.")
        flag = " --decentralised" if decentralised else ""
        if out is not None and decentralised:
            look = f"pol audit {out} --worker {told.liar} --round {told.lying_round}"
            text = f"Everything is in {out}, with a page about it. Look at the liar's claims yourself: {look}"
        elif out is not None:
            text = f"Everything is in {out}. Replay the dispute move by move: pol replay {out}"
        else:
            text = f"Keep everything with: pol demo{flag} --out DIR   Another story: pol demo{flag} --seed 1"
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    if picture is not None:
        save_picture(console, picture)
    return 0 if kept else EXIT_UNEXPECTED


def save_picture(console: Console, path: Path) -> None:
    """Write what was told as an SVG. Raises OperationalError: it can't be written."""
    # rich refers to fonts on a web server; the picture must not load anything.
    text = re.sub(r"@font-face \{.*?\}", "", console.export_svg(title="pol demo"), flags=re.DOTALL)
    write_file(path, text.encode())


def run(seed: int, rpc: str | None, funder_key: bytes | None, folder: Path, narrator: Narrator) -> ScenarioReport:
    """Run the story with its store in ``folder``."""
    try:
        import torch

        from pol.demo.scenario import Scenario
    except ImportError as error:
        raise OperationalError(
            f"the demo trains with torch and runs a chain: pip install 'proof-of-learning[demo]' ({error})"
        ) from error
    # For so small a step, threads only cost time.
    torch.set_num_threads(1)
    url = f"file://{(folder / 'store').resolve()}"
    return Scenario(connector(rpc, seed), url, seed, narrator, funder_key).run()


def run_rounds(seed: int, rpc: str | None, folder: Path, narrator: Narrator) -> RoundsReport:
    """Run the story of many workers with its store in ``folder``."""
    try:
        import torch

        from pol.demo.rounds_scenario import RoundsScenario
    except ImportError as error:
        raise OperationalError(
            f"the demo trains with torch and runs a chain: pip install 'proof-of-learning[demo]' ({error})"
        ) from error
    torch.set_num_threads(1)
    return RoundsScenario(connector(rpc, seed), folder, seed, narrator).run()


def connector(rpc: str | None, seed: int) -> Callable[[], Connection]:
    """A factory of connections, one for each party; on the embedded chain they share one node."""
    from pol.chain.node.connection import Connection

    if rpc is not None:
        return lambda: Connection.to(rpc)
    embedded = Connection.embedded(seed)
    return lambda: Connection(embedded.web3, embedded.name)


@contextmanager
def output_folder(out: Path | None) -> Iterator[Path]:
    """A folder that is moved to ``out`` at the end; after an error nothing half-written stays.

    Raises:
        UsageError: ``out`` exists and isn't empty.
    """
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise click.UsageError(f"{out} exists and isn't empty; name another folder with --out")
    try:
        parent = None if out is None else out.resolve().parent
        if parent is not None:
            parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".pol-demo-", dir=parent))
    except OSError as error:
        raise OperationalError(
            f"can't write beside {out}: {reason_of(error)}; name another folder with --out"
        ) from error
    try:
        yield folder
        if out is not None:
            if out.exists():
                out.rmdir()
            os.replace(folder, out)
            out.chmod(0o777 & ~_umask())
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def keep(folder: Path, report: ScenarioReport, document: dict[str, Any]) -> None:
    """Write what `pol replay` reads, beside the store."""
    from pol.demo.scenario_report import to_document

    (folder / "report.json").write_text(json.dumps(document, indent=2) + "\n")
    (folder / "deployment.json").write_text(report.deployment.to_json())
    proofs = dict(zip(RECORDED, (*report.proofs, report.objection_proof), strict=True))
    (folder / "task.json").write_text(json.dumps({"document": report.task_document, "proofs": proofs}) + "\n")
    disputes = (report.dispute, report.false_dispute, report.objection.dispute)
    for name, dispute in zip(RECORDED, disputes, strict=True):
        (folder / f"{name}.json").write_text(json.dumps(to_document(dispute), indent=1) + "\n")


def keep_rounds(folder: Path, report: RoundsReport, document: dict[str, Any]) -> None:
    """Write the report and the dispute beside the store, which `pol audit` reads."""
    from pol.demo.scenario_report import to_document

    (folder / "report.json").write_text(json.dumps(document, indent=2) + "\n")
    (folder / "dispute.json").write_text(json.dumps(to_document(report.slash.dispute), indent=1) + "\n")


def keep_page(out: Path, report: RoundsReport, narrator: Narrator) -> None:
    """Write the page about a kept run beside its store."""
    from pol.cli.verification.rounds_report import PAGE, write_rounds_page
    from pol.rounds.auditing.drawn_audit import open_rounds
    from pol.training.record.recorded_run import open_store

    moved = replace(report.audit, rounds=open_rounds(open_store(str(out))))
    write_rounds_page(out / PAGE, str(out), moved, [], "", None, narrator)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _key(text: str | None) -> bytes | None:
    if text is None:
        return None
    try:
        key = bytes.fromhex(text.removeprefix("0x"))
    except ValueError:
        key = b""
    if len(key) != 32 or not any(key):
        raise click.UsageError("--funder-key needs a private key of 64 hexadecimal digits")
    return key
