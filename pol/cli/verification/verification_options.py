"""The options that say where segments are replayed, and the engine that follows from them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pol.cli.examples import defaulted
from pol.cli.finite_range import FiniteRange
from pol.errors import ProtocolError
from pol.training.record.recorded_run import open_store

if TYPE_CHECKING:
    from pol.verification.engines.engine import Engine
    from pol.verification.engines.replay_worker import Tell
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pol.execution.executor import ExecutorFactory


_HASH = re.compile(r"(?:0x)?([0-9a-f]{64})", re.IGNORECASE)


def hash_in(text: str) -> str:
    """32 bytes in hexadecimal, in small letters. Raises BadParameter: it isn't that."""
    match = _HASH.fullmatch(text)
    if match is None:
        raise click.BadParameter(f"{text!r} isn't 32 bytes in hexadecimal")
    return match[1].lower()


def digest_in(text: str) -> str:
    """As `hash_in`, or the content of a file. Raises BadParameter: it is neither."""
    if _HASH.fullmatch(text):
        return hash_in(text)
    try:
        content = Path(text).read_bytes()[:100].decode(errors="replace").strip()
    except OSError as error:
        raise click.BadParameter(f"{text!r} is neither 32 bytes in hexadecimal nor a file with them") from error
    if not _HASH.fullmatch(content):
        raise click.BadParameter(f"the file {text!r} doesn't hold 32 bytes in hexadecimal, the digest of a document")
    return hash_in(content)


def hash_option(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """The callback of an option that takes 32 bytes."""
    return None if value is None else hash_in(value)


def digest_option(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """The callback of an option that takes 32 bytes, or a file with them."""
    return None if value is None else digest_in(value)


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


class Share(click.ParamType[Fraction]):
    """A number above 0 and up to 1, exactly as it is written: 0.05, 5%, 1/20; with ``zero`` also 0."""

    name = "share"

    def __init__(self, zero: bool = False) -> None:
        self._zero = zero

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Fraction:
        """The exact number."""
        text = str(value).strip()
        try:
            share = Fraction(text[:-1]) / 100 if text.endswith("%") else Fraction(text)
        except (ValueError, ZeroDivisionError):
            self.fail(f"{text!r} isn't a number; write 0.05, 5% or 1/20", param, ctx)
        if not (0 < share <= 1 or (self._zero and share == 0)):
            self.fail(f"{text} isn't {'from' if self._zero else 'above'} 0 and up to 1 (or 100%)", param, ctx)
        return share


F = TypeVar("F", bound=Callable[..., Any])
ENGINES = ("local", "cores", "ray", "command", "store")
ONLY = {
    "address": ("ray",),
    "command": ("command",),
    "parallel": ("command",),
    "attempts": ("command",),
    "queue": ("command", "store"),
    "job_seconds": ("command", "store"),
    "admitted": ("store",),
    "redundancy": ("store",),
    "audit": ("store",),
    "wait": ("store",),
}
"""The engines that an option is for."""
_KEY = re.compile(r"[0-9a-f]{64}")


def _keys(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> list[bytes]:
    """Keys in hexadecimal, and those in files, one a line."""
    found: list[str] = []
    for item in value:
        try:
            found += [item] if _KEY.fullmatch(item) else Path(item).read_text(encoding="utf-8").split()
        except (OSError, UnicodeDecodeError) as error:
            raise click.BadParameter(f"{item!r} is neither a key (64 hexadecimal digits) nor a file of keys") from error
    wrong = [key for key in found if not _KEY.fullmatch(key)]
    if wrong:
        raise click.BadParameter(f"{wrong[0][:80]!r} isn't a key: 64 hexadecimal digits, as pol worker prints")
    return [bytes.fromhex(key) for key in dict.fromkeys(found)]


_OPTIONS = (
    defaulted("--engine", type=click.Choice(ENGINES), default="local"),
    click.option(
        "--threads", type=click.IntRange(0), default=0, metavar="N", help="Threads of the kernels, for each segment."
    ),
    device_option,
    click.option("--address", envvar="RAY_ADDRESS", help="Address of a Ray cluster; without it Ray starts one here."),
    click.option("--command", metavar="LINE", help="Run this for each segment: 'srun {worker}', 'ssh host {shell}'."),
    defaulted("--parallel", type=click.IntRange(1), default=1, metavar="N", help="Commands at the same time."),
    defaulted("--attempts", type=click.IntRange(1), default=3, metavar="N", help="Runs of a command that fails."),
    click.option("--queue", metavar="STORE", help="Where jobs and results lie, if not beside the tensors."),
    defaulted(
        "--job-seconds",
        type=click.IntRange(1, 7 * 24 * 3600),
        default=3600,
        metavar="N",
        help="A segment that takes longer is begun again, by somebody else if there is one.",
    ),
    click.option(
        "--admit", "admitted", multiple=True, callback=_keys, metavar="KEY", help="A worker's key, or a file of keys."
    ),
    defaulted("--redundancy", type=click.IntRange(1, 16), default=2, metavar="K", help="Workers for each segment."),
    defaulted(
        "--audit",
        default="0.05",
        type=Share(zero=True),
        metavar="F",
        help="Replay this share of segments here, though the workers agree.",
    ),
    defaulted(
        "--wait",
        type=FiniteRange(0),
        default=60.0,
        metavar="S",
        help="Seconds without a worker for a segment, until it is replayed here.",
    ),
)


def engine_options(command: F) -> F:
    """Decorator: the options of engines."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def open_engine(options: dict[str, Any], tell: Tell) -> Engine:
    """The engine that was asked for; one of them needs an optional package.

    Raises:
        click.UsageError: options of another engine, or ones that exclude each other.
        OperationalError: the queue can't be opened, or the package isn't there.
    """
    name, threads, device = options["engine"], options["threads"], options["device"]
    _require_options_of(name)
    try:
        if name == "cores":
            if device != "cpu":
                raise click.UsageError("--engine cores is for the processor's cores: name another one with --device")
            from pol.verification.engines.cores import CoresEngine

            return CoresEngine(threads)
        if name == "ray":
            from pol.verification.engines.ray_cluster import RayEngine

            return RayEngine(threads, options["address"], device)
        if name == "command":
            return _command_engine(options)
        if name == "store":
            return _store_engine(options, tell)
    except ProtocolError as error:
        raise click.UsageError(str(error)) from error
    from pol.verification.engines.engine import LocalEngine

    return LocalEngine(threads, device)


def _require_options_of(engine: str) -> None:
    """Refuse options that would have no effect."""
    context = click.get_current_context()
    for name, engines in ONLY.items():
        given = context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if given and engine not in engines:
            option = next(p.opts[0] for p in context.command.params if p.name == name)
            raise click.UsageError(f"{option} has no effect here: it is for --engine {' or '.join(engines)}")


def _command_engine(options: dict[str, Any]) -> Engine:
    from pol.verification.engines.command_engine import CommandEngine
    from pol.verification.engines.job_command import JobCommand

    if options["command"] is None:
        raise click.UsageError("--engine command needs --command LINE, such as 'srun {worker}' or 'ssh host {shell}'")
    return CommandEngine(
        JobCommand.of_text(options["command"]),
        options["parallel"],
        options["attempts"],
        options["job_seconds"],
        None if options["queue"] is None else open_store(options["queue"]),
        options["threads"],
        options["device"],
    )


def _store_engine(options: dict[str, Any], tell: Tell) -> Engine:
    from pol.verification.engines.engine import LocalEngine
    from pol.verification.engines.redundancy import Redundancy
    from pol.verification.engines.store_engine import StoreEngine

    if not options["admitted"]:
        raise click.UsageError("--engine store needs the keys of its workers: --admit KEY, which pol worker prints")
    return StoreEngine(
        open_store(options["queue"] or options["store"]),
        options["admitted"],
        Redundancy(options["redundancy"], options["audit"]),
        LocalEngine(options["threads"], options["device"]),
        options["job_seconds"],
        options["wait"],
        tell=tell,
    )
