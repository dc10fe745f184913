"""``pol selftest``: does a device give the defined bits, and how fast is it?"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from pol import __version__
from pol.cli.examples import example
from pol.cli.file_output import DIFFERS, FINE, console, json_option
from pol.cli.verification.verification_options import device_option

if TYPE_CHECKING:
    from pol.execution.device.self_test.figures import SpeedFigure
    from pol.execution.device.self_test.self_test import Check
    from pol.execution.device.self_test.subjects import Subject


@click.command(epilog=example("pol selftest --short"))
@device_option
@click.option("--short", is_flag=True, help="2^16 words for each primitive, not 2^24, and small figures.")
@json_option
def selftest(device: str, short: bool, as_json: bool) -> int:
    """Compare primitives, kernels of every class, keccak trees and whole training steps with constants.

    The document of --json names the model of the device and its driver, no machine and no path: send it to us.

    Exit codes: 0 all bits are the defined ones, 1 some differ, 3 there is no such device.
    """
    from pol.execution.device.self_test.figures import measure_figures
    from pol.execution.device.self_test.self_test import self_test

    with Console(stderr=True, quiet=as_json).status("opening the device") as status:
        subject = _subject(device)
        checks = self_test(subject, short, lambda check: status.update(check.name))
        status.update("figures")
        figures = measure_figures(subject, short)
    if as_json:
        print(json.dumps(_document(subject, short, checks, figures), indent=2))
    else:
        _tell(subject, checks, figures)
    return FINE if all(check.passed for check in checks) else DIFFERS


def _subject(device: str) -> Subject:
    """What to test; a GPU is opened without the test of its first use, which is this one."""
    from pol.execution.device.open_device import CPU, untested_device
    from pol.execution.device.self_test.subjects import CpuSubject, DeviceSubject

    return CpuSubject() if device == CPU else DeviceSubject(untested_device(device))


def _document(subject: Subject, short: bool, checks: Sequence[Check], figures: Sequence[SpeedFigure]) -> dict[str, Any]:
    from pol.execution.device.self_test.first_use import driver_version, source_digest

    return {
        "pol": __version__,
        "device": subject.name,
        "driver": driver_version(),
        "sources": source_digest(),
        "form": "short" if short else "full",
        "passed": all(check.passed for check in checks),
        "checks": len(checks),
        "failed": [{"name": check.name, "detail": check.detail} for check in checks if not check.passed],
        "figures": [
            {"name": figure.name, "value": float(f"{figure.value:.4g}"), "unit": figure.unit} for figure in figures
        ],
    }


def _tell(subject: Subject, checks: Sequence[Check], figures: Sequence[SpeedFigure]) -> None:
    terminal, failed = console(), [check for check in checks if not check.passed]
    for check in failed:
        terminal.print(f"DIFFERS: {check.name}: {check.detail}", soft_wrap=True, markup=False)
    if failed:
        terminal.print(
            f"{subject.name}: {len(failed)} of {len(checks)} checks differ. Don't verify on it; send us the output of "
            "the same command with --json.",
            soft_wrap=True,
        )
    else:
        terminal.print(f"{subject.name}: all {len(checks)} checks give the defined bits.", soft_wrap=True)
    table = Table("figure", "value", "unit")
    for figure in figures:
        table.add_row(figure.name, f"{figure.value:.4g}", figure.unit)
    terminal.print(table)
