"""The root of published traces (docs/spec/commitments.md): the state before each step, and the root of its trace."""

from __future__ import annotations

from dataclasses import dataclass

from pol.commitments.keccak import keccak256

TRACES_TAG, STEP_TAG = b"\x0a", b"\x0b"


@dataclass(frozen=True)
class PublishedStep:
    """The state root before a step, and the root over its node roots, as the asserter says."""

    pre: bytes
    trace: bytes

    @property
    def hash(self) -> bytes:
        """The leaf in the tree of the published traces."""
        return keccak256(STEP_TAG + self.pre + self.trace)


def traces_root(steps: int, above: bytes) -> bytes:
    """The root of published traces over the tree of all steps."""
    return keccak256(TRACES_TAG + steps.to_bytes(4, "big") + above)
