"""What a valid program never contains is refused off chain as on chain."""

import pytest

import toy_program
from pol.commitments.keccak import keccak256
from pol.commitments.merkle import PAD, branch, tree
from pol.commitments.program_hash import PROGRAM_TAG, program_header
from pol.dispute.disputed_claim import ProgramHeader
from pol.dispute.openings import WrongInclusionProof, require_branch
from pol.errors import ProtocolError

pytestmark = pytest.mark.rules


def decode(header: bytes) -> ProgramHeader:
    return ProgramHeader.decode(header, keccak256(PROGRAM_TAG + header))


def test_headers() -> None:
    header = program_header(toy_program.build())
    assert decode(header).nodes == 20
    with pytest.raises(ProtocolError, match="version"):
        decode(b"\0\0\0\7" + header[4:])
    with pytest.raises(ProtocolError, match="without"):
        decode(header[:4] + bytes(4) + header[8:])
    with pytest.raises(ProtocolError, match="task's program"):
        ProgramHeader.decode(header, bytes(32))


def test_padding_does_not_stand_anywhere() -> None:
    leaves = [keccak256(bytes([i])) for i in range(3)]
    require_branch(leaves[2], 2, tuple(branch(leaves, 2)), 3, tree(leaves), "it")
    with pytest.raises(WrongInclusionProof, match="past the end"):
        require_branch(PAD, 3, tuple(branch(leaves, 3)), 3, tree(leaves), "it")
