"""Fresh processes, forked from one that has imported torch already."""

import multiprocessing
import os
import sys
import warnings
from pathlib import Path
from types import ModuleType

PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["torch._dynamo", "torch.utils.data", "pol.training.recorder.recorder"])


def run_program(text: str, folder: Path) -> None:
    """Runs a program in a folder, as `python -W error -c` does. AssertionError with its output: it failed."""
    said = folder.with_name(f"{folder.name}-said")
    process = PROCESSES.Process(target=_program, args=(text, folder, said))
    process.start()
    process.join()
    assert process.exitcode == 0, said.read_text()


def _program(text: str, folder: Path, said: Path) -> None:
    output = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    os.chdir(folder)
    warnings.resetwarnings()
    warnings.simplefilter("error")
    main = ModuleType("__main__")
    sys.modules["__main__"], sys.argv, sys.path[0] = main, ["-c"], ""
    exec(compile(text, "<string>", "exec"), main.__dict__)
