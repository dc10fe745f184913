"""Finds the line of the user's code that an operation comes from."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import torch
from torch import nn
from torch.fx import traceback as fx_traceback
from torch.nn.modules import module as module_hooks
from torch.overrides import TorchFunctionMode

PHASE = "pol.phase"
SOURCE = "pol.source"
ROLE = "pol.name"
SHOWN = 120
"""Characters of a line of code that a message shows."""

_TORCH = str(Path(torch.__file__).parent) + os.sep
_CAPTURE = str(Path(__file__).parents[1]) + os.sep
_EXECUTION = str(Path(__file__).parents[3] / "execution") + os.sep
_MODES = {
    __file__,
    *(
        str(Path(__file__).parents[1] / name)
        for name in ("tracing/tensor_assignments.py", "replacements/torch_functions.py", "tracing/number_stand_ins.py")
    ),
}
"""Files of the modes that run between the user's line and torch."""
_SELECTIONS = str(Path(__file__).parents[1] / "replacements/selections") + os.sep


class LineRecorder(TorchFunctionMode):
    """While active, marks every traced operation with the innermost user line, or the module it is in.

    The line is the innermost frame between the capture and torch; a model without own code (nn.Sequential) has none,
    and then the innermost running module stands in, or else the loss function.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self._paths = {id(module): f"model.{path}".rstrip(".") for path, module in model.named_modules()}
        self._loss = ""
        self._running: list[nn.Module] = []
        self._unknown = ""

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run the function with the current line noted for the operations that it traces."""
        line = self.line()
        if not self._unknown and _has_unknown_shape(func, args):
            self._unknown = line
        with fx_traceback.annotate({SOURCE: line}):
            return func(*args, **(kwargs or {}))

    def line(self) -> str:
        """The current place in the user's code, "file.py:12: code"."""
        return current_line() or self.running()

    def place(self) -> str:
        """For a failure without a line: the first line whose result's shape depends on data, or what is running."""
        return self._unknown or self.running()

    def running(self) -> str:
        """The module that is running, or the loss: "model.1: Linear"."""
        if self._running:
            module = self._running[-1]
            return f"{self._paths.get(id(module), 'loss')}: {type(module).__name__}"
        return f"loss: {self._loss}"

    @contextmanager
    def modules(self, outermost: nn.Module, loss: Callable[..., Any] | None) -> Iterator[None]:
        """Follow which module inside `outermost` is running, through hooks that are global and gone afterwards.

        `loss` is the loss that runs; None if the model gives it.
        """
        self._loss = "of the model" if loss is None else getattr(loss, "__name__", type(loss).__name__)

        def enter(module: nn.Module, _: object) -> None:
            if module is not outermost:
                self._running.append(module)

        def leave(module: nn.Module, *_: object) -> None:
            if module is not outermost:
                self._running.pop()

        self._running.clear()
        before = module_hooks.register_module_forward_pre_hook(enter)
        after = module_hooks.register_module_forward_hook(leave)
        try:
            yield
        finally:
            before.remove()
            after.remove()


def _has_unknown_shape(func: Callable[..., Any], args: Sequence[Any]) -> bool:
    if func is torch.Tensor.__getitem__:
        indices = args[1] if isinstance(args[1], tuple) else (args[1],)
        return any(isinstance(index, torch.Tensor) and index.dtype is torch.bool for index in indices)
    return getattr(func, "__name__", "") in {"masked_select", "nonzero", "argwhere", "unique", "_pack_padded_sequence"}


def current_line() -> str:
    """The innermost line of the user's code below the capture, or an empty string."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (
        is_mode(frame.f_code.co_filename) or not frame.f_code.co_filename.startswith(_CAPTURE)
    ):
        if is_user_file(frame.f_code.co_filename):
            return describe(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return ""


def describe(filename: str, line: int) -> str:
    """ "file.py:12: code", without directories; of long code the beginning."""
    code = " ".join(linecache.getline(filename, line).split())
    return f"{Path(filename).name}:{line}: {code if len(code) <= SHOWN else code[: SHOWN - 3] + '...'}"


def line_of_error(traceback: TracebackType | None, caller: str = _CAPTURE) -> str:
    """The innermost user line below the caller's that an exception passed through, or an empty string."""
    found = ""
    inside = False
    while traceback is not None:
        filename = traceback.tb_frame.f_code.co_filename
        inside = inside or filename.startswith(caller)
        if inside and is_user_file(filename) and not filename.startswith(caller):
            found = describe(filename, traceback.tb_lineno)
        traceback = traceback.tb_next
    return found


def is_mode(filename: str) -> bool:
    """Whether a file holds a mode that runs between the user's line and torch."""
    return filename in _MODES or filename.startswith(_SELECTIONS)


def is_user_file(filename: str) -> bool:
    """Whether code is the user's, or of a library that the user calls."""
    return not filename.startswith((_TORCH, _CAPTURE, _EXECUTION, "<")) and f"{os.sep}contextlib.py" not in filename
