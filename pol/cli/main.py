"""The entry point: ``pol VERB``. Errors raised on purpose end in one line and an exit code, not in a traceback."""

from __future__ import annotations

import json
import signal
import sys
from types import FrameType

EXIT_PROTOCOL, EXIT_USAGE, EXIT_OPERATIONAL, EXIT_BUG, EXIT_INTERRUPTED = 1, 2, 3, 70, 130


def main() -> None:
    """Run one command.

    Exit codes: 1 bad evidence, 2 bad usage, 3 something couldn't be looked at, 70 a bug of pol, 130 interrupted.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        # Imported here, so that an interrupt during the seconds that this takes is met as well.
        code = _run()
    except KeyboardInterrupt:
        code = _fail("interrupted; nothing was left half-written", EXIT_INTERRUPTED)
    sys.exit(code)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _run() -> int:
    import click

    from pol.errors import OperationalError, PolError

    try:
        from pol.cli.commands import commands

        result = commands(standalone_mode=False)
        return result if isinstance(result, int) else 0
    except click.exceptions.Abort:
        return _fail("interrupted; nothing was left half-written", EXIT_INTERRUPTED)
    except click.ClickException as error:
        return _fail(error.format_message(), EXIT_USAGE)
    except PolError as error:
        return _fail(str(error), EXIT_OPERATIONAL if isinstance(error, OperationalError) else EXIT_PROTOCOL)
    except Exception as error:  # noqa: BLE001  # the last resort: say whose fault it is, and keep the evidence
        import traceback

        traceback.print_exc()
        return _fail(f"this is a bug of pol, please report it with the lines above: {error!r}", EXIT_BUG)


def _fail(message: str, code: int) -> int:
    if "--json" in sys.argv:
        print(json.dumps({"error": message}))
    else:
        print(f"pol: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    main()
