"""The examples in the help of a verb; tests parse every one."""

from __future__ import annotations


def example(*lines: str) -> str:
    """The epilog of a command that shows command lines, each as it is typed."""
    return "\n".join(["\b", "Example:" if len(lines) == 1 else "Examples:", *(f"  {line}" for line in lines)])
