"""The 112 bytes that a program hash stands for (docs/spec/commitments.md#step-program)."""

from dataclasses import dataclass

from pol.commitments.program_hash import HEADER_SIZE, header_hash
from pol.errors import ProtocolError

VERSION = (1).to_bytes(4, "big")


@dataclass(frozen=True)
class ProgramHeader:
    """Counts and trees of a step program."""

    nodes: int
    slots: int
    constants: int
    nodes_tree: bytes
    slots_tree: bytes
    constants_tree: bytes

    @classmethod
    def decode(cls, data: bytes, program: bytes) -> "ProgramHeader":
        """Read a header that must hash to ``program``. Raises ProtocolError: it is not that program's header."""
        if len(data) != HEADER_SIZE or header_hash(data) != program:
            raise ProtocolError("the header isn't that of the task's program; build it from the task's program.bin")
        if data[:4] != VERSION:
            raise ProtocolError(f"a program header of another version: {data[:4].hex()}")
        counts = [int.from_bytes(data[i : i + 4], "big") for i in (4, 8, 12)]
        if 0 in counts[:2]:
            raise ProtocolError("a program without nodes or slots")
        return cls(counts[0], counts[1], counts[2], data[16:48], data[48:80], data[80:112])
