"""The option that names the device on which steps are executed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from pol.cli.examples import defaulted
from pol.errors import ProtocolError

if TYPE_CHECKING:
    from pol.execution.executor import ExecutorFactory


def _device(ctx: click.Context, param: click.Parameter, value: str) -> str:
    from pol.execution.device.open_device import require_device_name

    try:
        return require_device_name(value)
    except ProtocolError as error:
        raise click.BadParameter(str(error)) from error


device_option = defaulted(
    "--device",
    default="cpu",
    callback=_device,
    metavar="DEVICE",
    help="Execute steps on cpu, cuda or cuda:N (a GPU), or host (a GPU's kernels on the processor; slow).",
)


def party_executors(device: str) -> ExecutorFactory:
    """The executors of a party; a device is opened now, before anything is staked on it.

    Raises:
        OperationalError: the device can't be used.
    """
    from pol.execution.cpu import on_all_cores
    from pol.execution.device.open_device import CPU, executors_on, open_device

    if device == CPU:
        return on_all_cores
    open_device(device)
    return executors_on(device)
