"""State of a running program that its recorder doesn't hold; `pol doctor` reports it as missing.

The search covers local variables of all running functions, the user's objects behind them, and attributes of the
model's modules and of all parts. It takes digests and changes nothing.
"""

from __future__ import annotations

import dis
import functools
import inspect
import random
import re
import sys
import sysconfig
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler
from torch.utils.data import DataLoader

from pol.commitments.array import array_root
from pol.commitments.keccak import keccak256
from pol.errors import PolError
from pol.training.state import components, tensors
from pol.training.state.trainer_state import Stateful, TrainerState

MAX_DEPTH = 4
MAX_ITEMS = 256
NEVER, FAR = -1, 1 << 16
"""In place of the number of instructions after which a variable is read: it isn't, and it is by other functions."""
Found: TypeAlias = tuple[str, str, int]
"""Kind, digest, and after how many instructions the loop reads it before it writes it."""
GENERATOR, MODULE, STATEFUL, SCHEDULER, SCALER = "generator", "module", "stateful", "scheduler", "scaler"
ATTRIBUTE, PLAIN, VALUE, TENSOR = "attribute", "plain attribute", "value", "tensor"
_LOADER = ("dataset", "sampler", "batch_sampler", "generator")
_LIBRARIES = tuple(str(Path(sysconfig.get_path(name)).resolve()) for name in ("stdlib", "purelib", "platlib"))
_OWN = str(Path(__file__).resolve().parents[2])
_RECORDED = frozenset(vars(nn.Module())) | {"training", "state", "param_groups"}
_SCALARS = (bool, int, float, complex, str, bytes, np.generic, type(None))
_ACCESS = re.compile(r"(LOAD|STORE|DELETE)_(?:FAST|NAME|GLOBAL|DEREF|CLOSURE|CLASSDEREF)")


def unrecorded(state: TrainerState, goes_on: Mapping[FrameType, int | None]) -> dict[str, Found]:
    """All state found, under names that are equal in every run of the program.

    goes_on: functions in which a resumed loop goes on, and the instruction where it does, if not at the present one.
    """
    search = _Search(state)
    for name, module in state.model.named_modules():
        search.attributes_of(module, f"module {name}" if name else "the model")
    for name, part in state.parts.items():
        for thing in (part, *getattr(part, "watched", ())):
            search.attributes_of(thing, name if thing is part else f"{type(thing).__name__} in {name}")
        for inner, module in part.named_modules() if isinstance(part, nn.Module) else ():
            search.attributes_of(module, f"module {inner} of {name}")
    for level, frame in enumerate(dict.fromkeys([*goes_on, *users_frames()])):
        function = frame.f_code.co_name
        file = Path(frame.f_code.co_filename).name
        place = file if function == "<module>" else f"{function} in {file}"
        begin = goes_on.get(frame, frame.f_lasti)
        reads = _reads(frame.f_code, frame.f_lasti if begin is None else begin) if frame in goes_on else {}
        for name, value in list(frame.f_locals.items()):
            if not name.startswith("__"):
                search.read = level * 2 * FAR + reads[name] if name in reads else NEVER
                search.look(value, f"{name} ({place})", 0, VALUE)
    return search.found


def users_frames() -> list[FrameType]:
    """The running functions of the user's program, the innermost first."""
    found = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if _is_users(frame.f_code.co_filename):
            found.append(frame)
        frame = frame.f_back
    return found


class _Search:
    def __init__(self, state: TrainerState):
        known: list[object] = [state, *state.parts.values(), *state.random.named.values()]
        for module in (state.model, *(part for part in state.parts.values() if isinstance(part, nn.Module))):
            known += [*module.modules(), *module.parameters(), *module.buffers()]
        self._seen = {id(thing) for thing in known}
        self._kept: list[object] = [known]  # an id is unique only as long as its object lives
        self.found: dict[str, Found] = {}
        self.read = 0

    def attributes_of(self, thing: object, owner: str) -> None:
        """Attributes of a module or a part; those of a library's classes may be caches, and are told as variables."""
        file = getattr(inspect.getmodule(type(thing)), "__file__", None)
        if file is None or not str(Path(file).resolve()).startswith(f"{_OWN}/"):
            kind = ATTRIBUTE if _is_users(file) else VALUE
            for attribute, value in list(getattr(thing, "__dict__", {}).items()):
                if attribute not in _RECORDED:
                    self.look(value, f"attribute {attribute} of {owner}", 0, kind)

    def look(self, value: object, label: str, depth: int, kind: str) -> None:
        """Note the state of a value and of the objects behind it."""
        if (text := _plain(value)) is not None:
            self.found.setdefault(label, (PLAIN if kind == ATTRIBUTE else kind, text, self.read))
            return
        if isinstance(value, ModuleType | FunctionType | type) or id(value) in self._seen:
            return
        if len(self.found) >= MAX_ITEMS * MAX_ITEMS or depth > MAX_DEPTH:
            return
        self._seen.add(id(value))
        self._kept.append(value)
        own = _own_kind(value)
        if _is_data(value) and kind == VALUE:
            own = TENSOR
        if own is not None or isinstance(value, Tensor | np.ndarray):
            digest = _digest(value)
            if digest is not None:
                self.found.setdefault(label, (own or kind, digest, self.read))
        if own in (None, STATEFUL):
            for name, below in _below(value):
                self.look(below, _joined(label, name), depth + 1, kind)


def _plain(value: object, depth: int = 0) -> str | None:
    """A value that holds numbers and text only, in text: a scalar itself, a container's size and digest."""
    if isinstance(value, _SCALARS):
        text = repr(value)
        return text if len(text) <= MAX_ITEMS else f"{len(text)} characters, {keccak256(text.encode()).hex()[:16]}"
    if not isinstance(value, list | tuple | set | frozenset | dict | deque) or depth > MAX_DEPTH:
        return None
    if isinstance(value, set | frozenset):
        shown: list[object] = [*sorted(map(repr, value))]
    else:
        shown = list(value.items() if isinstance(value, dict) else value)
    texts = [_plain(item, depth + 1) for item in shown[:MAX_ITEMS] + shown[MAX_ITEMS:][-MAX_ITEMS:]]
    if None in texts:
        return None
    return f"{len(shown)} values, {keccak256(repr(texts).encode()).hex()[:16]}"


@functools.lru_cache(maxsize=4096)
def _reads(code: CodeType, begin: int) -> Mapping[str, int]:
    """After how many instructions a function, which is at ``begin``, first reads a variable that it hasn't written."""
    found = list(dis.get_instructions(code))
    at = {instruction.offset: number for number, instruction in enumerate(found)}
    accesses = [_accesses(instruction) for instruction in found]
    first = max((number for offset, number in at.items() if offset <= begin), default=0) + 1
    reads = dict.fromkeys(_inner_names(code), FAR)
    for name in {name for access in accesses for name in access}:
        waiting, seen = deque([(first, 1)]), {first}
        while waiting:
            number, distance = waiting.popleft()
            if number >= len(found):
                continue
            if (how := accesses[number].get(name)) is not None:
                if how == "LOAD":
                    reads[name] = distance
                    break
                continue
            instruction = found[number]
            following = [at[instruction.argval]] if instruction.opcode in (*dis.hasjrel, *dis.hasjabs) else []
            if not instruction.opname.startswith(("RETURN_", "RAISE_", "RERAISE", "JUMP_")):
                following.append(number + 1)
            for target in set(following) - seen:
                seen.add(target)
                waiting.append((target, distance + 1))
    return reads


def _accesses(instruction: dis.Instruction) -> dict[str, str]:
    """How an instruction, which may be of two variables, uses them first."""
    names = instruction.argval if isinstance(instruction.argval, tuple) else (instruction.argval,)
    return dict(reversed(list(zip(names, _ACCESS.findall(instruction.opname), strict=False))))


def _inner_names(code: CodeType) -> set[str]:
    """Names that functions defined inside of a function, or in a module, read from it."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return {name for one in inner for name in (*one.co_names, *one.co_freevars, *_inner_names(one))}


def _own_kind(value: object) -> str | None:
    if isinstance(value, torch.Generator | np.random.Generator | np.random.RandomState | random.Random):
        return GENERATOR
    for kind, types in ((MODULE, nn.Module), (SCHEDULER, LRScheduler), (SCALER, torch.amp.GradScaler)):
        if isinstance(value, types):
            return kind
    if not isinstance(value, DataLoader) and isinstance(value, Stateful):
        return STATEFUL
    return None


def _is_data(value: object) -> bool:
    """A tensor without gradient: a batch, not the loss."""
    return isinstance(value, np.ndarray) or (isinstance(value, Tensor) and not value.requires_grad)


def _below(value: object) -> Iterator[tuple[str, object]]:
    """The content of a container, a loader or an object of the user's classes."""
    if isinstance(value, dict):
        named = ((name, item) for name, item in list(value.items())[:MAX_ITEMS] if isinstance(name, _SCALARS))
        yield from ((f"[{name!r}]", item) for name, item in named)
    elif isinstance(value, list | tuple | deque):
        yield from ((f"[{i}]", item) for i, item in enumerate(list(value)[:MAX_ITEMS]))
    elif isinstance(value, DataLoader):
        yield from ((f".{name}", getattr(value, name)) for name in _LOADER)
    elif _is_users(getattr(inspect.getmodule(type(value)), "__file__", None)):
        yield from ((f".{name}", item) for name, item in getattr(value, "__dict__", {}).items())


def _joined(label: str, name: str) -> str:
    head, mark, tail = label.partition(" of " if label.startswith("attribute ") else " (")
    return f"{head}{name}{mark}{tail}"


def _digest(value: object) -> str | None:
    try:
        return keccak256(b"".join(_pieces(value))).hex()
    except (PolError, RuntimeError, TypeError, ValueError, AttributeError, KeyError):
        return None  # an object that can't give its state right now: nothing to compare


def _pieces(value: object) -> Iterator[bytes]:
    if isinstance(value, Tensor):
        yield array_root(tensors.of_tensor(value, "a tensor"))
    elif isinstance(value, np.ndarray):
        yield array_root(tensors.of_numpy(value, "an array"))
    elif isinstance(value, torch.Generator):
        yield value.get_state().numpy().tobytes()
    elif isinstance(value, np.random.Generator):
        yield repr(value.bit_generator.state).encode()
    elif isinstance(value, np.random.RandomState):
        yield components.encode({"state": value.get_state(legacy=False)}).root
    elif isinstance(value, random.Random):
        yield repr(value.getstate()).encode()
    else:
        state: Any = value if isinstance(value, Mapping) else value.state_dict()  # type: ignore[attr-defined]  # a module or Stateful
        yield components.encode({"state": dict(state)}).root


@functools.cache
def _is_users(file: str | None) -> bool:
    """Whether a file belongs to the user's program, not to a library or this package."""
    if file is None or file.startswith("<"):
        return False
    path = str(Path(file).resolve())
    return not path.startswith((*_LIBRARIES, f"{_OWN}/")) and "site-packages" not in path
