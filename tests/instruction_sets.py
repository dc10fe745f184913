"""The instruction sets that this processor has kernels for, one after another."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from pol.execution import _kernels


@contextmanager
def held(isa: str, module: ModuleType = _kernels) -> Iterator[None]:
    """Kernels of one set, then of the one that was there before."""
    before = module.isa()
    module.set_isa(isa)
    try:
        yield
    finally:
        module.set_isa(before)


def each(module: ModuleType = _kernels) -> Iterator[str]:
    """The name of each, while its kernels are in use: a reference is computed once for all of them."""
    for isa in module.isas():
        with held(isa, module):
            yield isa
