"""The table of rules: `@lowers(operation, defines=...)` enters a function, with the sentence that documents it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from pol.graph.lowering.call import Call
from pol.graph.lowering.values import Value

Lowered: TypeAlias = Callable[[Call], Value | tuple[Value, ...]]
"""From a call to what stands for its results; may emit nodes."""


L = TypeVar("L", bound=Lowered)


@dataclass(frozen=True)
class Rule:
    """How an operation is lowered, and what it computes and leaves out, in a sentence.

    `is_exact` says that results are words of the operands but for the sign: bfloat16 stays bfloat16.
    """

    lower: Lowered
    defines: str
    is_exact: bool = False


RULES: dict[str, Rule] = {}
"""Every operation that has a definition, by its full name."""


def lowers(*operations: str, defines: str, is_exact: bool = False) -> Callable[[L], L]:
    """Make the decorated function the rule of the operations; ValueError if one has a rule already."""

    def entered(rule: L) -> L:
        for operation in operations:
            if operation in RULES:
                raise ValueError(f"{operation} has two rules")
            RULES[operation] = Rule(rule, defines, is_exact)
        return rule

    return entered
