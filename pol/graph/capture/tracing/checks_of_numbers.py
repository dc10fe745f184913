"""Checks of numbers in the user's code: a branch that only raises is the one that a step does not take.

`if torch.isnan(loss): raise ...` and `assert torch.isfinite(x).all()` stop a loop, so every training that goes on takes
the other way, and the values decide nothing else. An exception that the user's code may catch is no such check.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterable
from types import CodeType, FrameType
from typing import Any

from torch.nn.modules import transformer

from pol.graph.capture.tracing.provenance import is_mode, is_user_file

_BEGIN = "training_step.py"
"""The file whose frames call the user's code."""
_SKIPPED = {"CACHE", "TO_BOOL", "NOT_TAKEN"}


def checked(*_: Any) -> Any:
    """The value of a condition with which the user's code goes on if it raises otherwise, or NotImplemented."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_mode(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return NotImplemented
    if frame.f_code is transformer._detect_is_causal_mask.__code__:
        return False  # a hint for a faster kernel: the mask itself is applied in any case
    if not is_user_file(frame.f_code.co_filename) or _is_caught(frame):
        return NotImplemented
    value = _value_that_goes_on(frame.f_code, frame.f_lasti)
    return NotImplemented if value is None else value


def _value_that_goes_on(code: CodeType, reader: int) -> bool | None:
    """Of the condition that the instruction at `reader` reads, which a jump follows or is."""
    instructions = list(dis.get_instructions(code))
    places = {instruction.offset: place for place, instruction in enumerate(instructions)}
    place = places[reader]
    if not instructions[place].opname.startswith("POP_JUMP"):
        place += 1
        while instructions[place].opname in _SKIPPED:
            place += 1
    jump = instructions[place]
    if not jump.opname.startswith("POP_JUMP") or not jump.opname.endswith(("_IF_TRUE", "_IF_FALSE")):
        return None
    jumped, passed = _raises(instructions[places[jump.argval] :]), _raises(instructions[place + 1 :])
    if jumped == passed:
        return None
    return jump.opname.endswith("_IF_TRUE") == passed


def _raises(instructions: Iterable[dis.Instruction]) -> bool:
    """Whether the instructions lead straight to a `raise`, and store nothing before."""
    for instruction in instructions:
        name = instruction.opname
        if name == "RAISE_VARARGS":
            return True
        if "JUMP" in name or name.startswith(("STORE_", "DELETE_", "RETURN_", "YIELD_", "FOR_ITER", "SEND", "RERAISE")):
            return False
    return False


def _is_caught(innermost: FrameType) -> bool:
    """Whether the user's code may catch an exception of this place, by a `try` or a `with`."""
    frame: FrameType | None = innermost
    while frame is not None:
        code = frame.f_code
        if code.co_filename.endswith(_BEGIN):
            return False
        if is_user_file(code.co_filename) and any(_catches(code, handler) for handler in _handlers(frame)):
            return True
        frame = frame.f_back
    return True


def _handlers(frame: FrameType) -> list[int]:
    entries = dis.Bytecode(frame.f_code).exception_entries  # type: ignore[attr-defined]  # typeshed doesn't know it
    return [entry.target for entry in entries if entry.start <= frame.f_lasti < entry.end]


def _catches(code: CodeType, handler: int) -> bool:
    """Whether a handler does anything but raise the exception again, as `finally` does."""
    for instruction in dis.get_instructions(code):
        if instruction.offset < handler:
            continue
        if instruction.opname == "RERAISE":
            return False
        if instruction.opname in {"WITH_EXCEPT_START", "CHECK_EXC_MATCH", "CHECK_EG_MATCH", "POP_EXCEPT"}:
            return True
    return True
