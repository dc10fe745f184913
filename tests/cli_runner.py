"""A command of `pol` in this process, as its entry point runs it."""

import contextlib
import io
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from pol.cli.main import main


@dataclass(eq=False)
class Said:
    """Exit code and output. Equal to another if the codes are, and the other's words stand in the output."""

    code: int
    out: str = ""
    match: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Said) and self.code == other.code and other.match in self.out

    __hash__ = None


def pol(*arguments: str | Path) -> Said:
    out = io.StringIO()
    argv = ["pol", *map(str, arguments)]
    with mock.patch.object(sys, "argv", argv), contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            main()
        except SystemExit as ended:
            return Said(int(ended.code or 0), out.getvalue())
    raise AssertionError("main() returned")
