"""The 112 bytes that a program hash stands for (docs/spec/commitments.md#step-program)."""

from dataclasses import dataclass
from typing import ClassVar

from pol.commitments.keccak import keccak256
from pol.errors import ProtocolError


@dataclass(frozen=True)
class Header:
    """Counts and trees of a step program."""

    SIZE: ClassVar[int] = 112

    nodes: int
    slots: int
    constants: int
    nodes_tree: bytes
    slots_tree: bytes
    constants_tree: bytes

    @classmethod
    def decode(cls, data: bytes, program: bytes) -> "Header":
        """Read a header that must hash to ``program``.

        Raises:
            ProtocolError: it is not that program's header.
        """
        if len(data) != cls.SIZE or keccak256(b"\x06" + data) != program:
            raise ProtocolError(
                "the header does not belong to the task's program; use the header of the task's program.bin"
            )
        counts = [int.from_bytes(data[i : i + 4], "big") for i in (4, 8, 12)]
        return cls(counts[0], counts[1], counts[2], data[16:48], data[48:80], data[80:112])
