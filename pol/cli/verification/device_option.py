"""The option that names the device on which steps are executed."""

from __future__ import annotations

import click

from pol.errors import ProtocolError


def _device(ctx: click.Context, param: click.Parameter, value: str) -> str:
    from pol.execution.device.open_device import require_device_name

    try:
        return require_device_name(value)
    except ProtocolError as error:
        raise click.BadParameter(str(error)) from error


device_option = click.option(
    "--device",
    default="cpu",
    show_default=True,
    callback=_device,
    metavar="DEVICE",
    help="Execute steps on cpu, cuda or cuda:N (a GPU), or host (a GPU's kernels on the processor; slow).",
)
