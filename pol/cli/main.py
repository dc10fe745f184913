"""The entry point: ``pol VERB``. Errors raised on purpose end in one line and an exit code, not in a traceback."""

from __future__ import annotations

import contextlib
import errno
import gc
import json
import os
import signal
import sys
import threading
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click

AGAIN_SECONDS = 0.5  # until an interrupt is repeated that some library has swallowed
EXIT_PROTOCOL, EXIT_USAGE, EXIT_OPERATIONAL, EXIT_BUG, EXIT_INTERRUPTED, EXIT_UNREAD = 1, 2, 3, 70, 130, 141
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # a full or broken disk is no bug

_interrupted = threading.Event()


def main() -> None:
    """Run one command.

    Exit codes: 1 bad evidence, 2 bad usage, 3 something couldn't be checked, 70 a bug of pol, 130 interrupted,
    141 the output is closed.
    """
    if sys.stdout is None:  # closed by the parent process
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # until the process ends
    gc.set_threshold(10_000)  # objects: at 700, as is usual, the collector takes a quarter of the time of imports
    before = {number: signal.signal(number, _interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        # The imports are in _run, so that an interrupt during their seconds is handled as well.
        code = _run()
    except KeyboardInterrupt:
        code = _fail("interrupted; nothing was left half-written", EXIT_INTERRUPTED)
    except SystemExit as ended:
        # click exits with 0 after it has completed a line of a shell, and with another code if the output is closed.
        code = EXIT_UNREAD if ended.code else 0
    except Exception:
        # An import that is interrupted may end with any error, even that of a module without a part of itself.
        if not _interrupted.is_set():
            raise
        code = _fail("interrupted; nothing was left half-written", EXIT_INTERRUPTED)
    try:
        sys.stdout.flush()
    except OSError as error:
        code = _unwritten(error)
    for number, handler in before.items():
        signal.signal(number, handler)
    gc.freeze()  # all that is left ends with the process: to look for what refers to what takes half a second
    sys.exit(code)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, and again later: imports of libraries may take the exception for another one.

    Cleaning up after an interrupt isn't interrupted.
    """
    _interrupted.set()
    again = threading.Timer(AGAIN_SECONDS, _repeat, (number,))
    again.daemon = True
    again.start()
    if not _is_interrupt(sys.exception()):
        raise KeyboardInterrupt


def _repeat(number: int) -> None:
    main_thread = threading.main_thread().ident
    # Once the command is over the signal is what it was before.
    if main_thread is not None and signal.getsignal(number) is _interrupt:
        signal.pthread_kill(main_thread, number)


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether an exception is an interrupt or comes from one."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def _run() -> int:
    import click

    from pol.errors import OperationalError, PolError, has_advice, reason_of
    from pol.extras import missing_extra

    try:
        from pol.cli.commands import commands

        result = commands(prog_name="pol", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.exceptions.Abort:
        return _fail("interrupted; nothing was left half-written", EXIT_INTERRUPTED)
    except click.exceptions.NoArgsIsHelpError as error:
        print(error.format_message(), file=sys.stderr)
        return EXIT_USAGE
    except click.ClickException as error:
        return _fail(error.format_message() + _way_out(error), EXIT_USAGE)
    except PolError as error:
        return _fail(str(error), EXIT_OPERATIONAL if isinstance(error, OperationalError) else EXIT_PROTOCOL)
    except Exception as error:  # the last resort: report a bug with its traceback
        if _interrupted.is_set():
            raise KeyboardInterrupt from error
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            return _unwritten(error)
        extra = missing_extra(error)
        if extra is not None:
            return _fail(extra, EXIT_OPERATIONAL)
        if isinstance(error, OSError) and has_advice(error):
            place = "" if error.filename is None else f"{error.filename}: "
            return _fail(f"{place}{reason_of(error)}", EXIT_OPERATIONAL)
        import traceback

        traceback.print_exc()
        return _fail(f"this is a bug of pol, please report it with the lines above: {error!r}", EXIT_BUG)


def _way_out(error: click.ClickException) -> str:
    """Where to look if a message of click doesn't say what to do instead."""
    import click

    is_vague = isinstance(error, click.MissingParameter) and not isinstance(error.param, click.Option)
    is_vague |= error.format_message().startswith("Got unexpected")
    if isinstance(error, click.NoSuchOption):
        is_vague = not error.possibilities
    if not is_vague or not isinstance(error, click.UsageError) or error.ctx is None:
        return ""
    return f" `{error.ctx.command_path} --help` shows what there is."


def _unwritten(error: OSError) -> int:
    """Report that the output can't be written, and drop its buffer: the interpreter must not write it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return EXIT_UNREAD
    _print_error(f"can't write the output: {error.strerror}; make room, or write elsewhere")
    return EXIT_OPERATIONAL


def _fail(message: str, code: int) -> int:
    message = " ".join(message.split())  # one line, also of the words of a stranger's program
    if "--json" not in sys.argv:
        _print_error(message)
        return code
    try:
        print(json.dumps({"error": message}), flush=True)
    except OSError as error:
        return _unwritten(error)
    return code


def _print_error(message: str) -> None:
    with contextlib.suppress(OSError):  # the exit code remains
        print(f"pol: {message}", file=sys.stderr)


if __name__ == "__main__":
    main()
