"""The text that a compiler gets: headers of this folder, each once, and kernels."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path

from pol.execution.device.device import Kernel

_INCLUDE = re.compile(r'^#include "(\w+\.h)"$', re.MULTILINE)


def translation_unit(kernels: Sequence[Kernel]) -> str:
    """One text without includes of our own: a compiler needs no search path."""
    body = "\n".join(kernel.named_source for kernel in kernels)
    return f"{headers()}\nnamespace pol {{\n{body}\n}}\n"


@functools.cache
def headers() -> str:
    """All headers, in the order in which they need each other."""
    folder = Path(__file__).parent
    done: set[str] = set()

    def expand(name: str) -> str:
        if name in done:
            return ""
        done.add(name)
        text = (folder / name).read_text(encoding="utf-8").replace("#pragma once\n", "")
        return _INCLUDE.sub(lambda match: expand(match[1]), text)

    return "".join(expand(name) for name in ("words.h", "byte_contraction.h", "keccak.h"))
