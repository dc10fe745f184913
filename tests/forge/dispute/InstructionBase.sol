// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Picked, StepBase} from "./StepBase.sol";

/// @notice Nodes, and what is picked of them: one term of an element, one instruction of a term, or the word of a map.
abstract contract InstructionBase is StepBase {
    /// @dev A node of shape [2, 3], folded over [4], without operands; inputs are `kinds`, the body is one MOV of
    /// `register`.
    function _mover(bytes memory kinds, uint8 register, bytes memory more) internal pure returns (bytes memory) {
        bytes memory body = abi.encodePacked(more, hex"31", register, hex"0000");
        return _describe(hex"020000000200000003", hex"0100000004", 0, hex"00", kinds, body);
    }

    /// @dev A scalar map that reads word 1 of a tensor of two words (of slot 2 word 0), through what `gather` says.
    function _reader(uint8 source, uint32 index, bytes memory gather) internal view returns (bytes memory) {
        uint256 size = source == 3 ? 2 : source == 1 ? state[index].length : constants[index].length;
        int64 base = size == 1 || gather.length > 1 ? int64(0) : int64(1);
        bytes memory plain = _operand(1, 2, 1, 0, new int64[](1), hex"00", hex"00");
        bytes memory through = _operand(source, index, size, base, new int64[](1), hex"00", gather);
        return _describe(hex"00", hex"00", 0, abi.encodePacked(uint8(2), plain, through), hex"0201", hex"000131000000");
    }

    /// @dev One term of an element, of a fold over 4 whose body is one instruction.
    function _ofTerm(bytes memory descriptor, uint64 element, uint64 term, uint32 agreed)
        internal
        view
        returns (Facts memory f, Picked memory p)
    {
        f = _facts(descriptor);
        f.element = element;
        p = Picked(TERMS, 0, term, term + 1, agreed, 0, _frame(f, TERMS, 4, 0, 1));
    }

    /// @dev The picked word of a map whose body is one instruction.
    function _ofWord(bytes memory descriptor, uint64 element) internal view returns (Facts memory f, Picked memory p) {
        f = _withRoots(_facts(descriptor));
        p = Picked(LEAF, 0, element, 0, 0, 0, _frame(f, LEAF, 1, 0, 1));
    }

    /// @dev Three instructions of a fold over 4: acc + 7, that twice, and their exclusive or.
    function _ofBody(uint8 index, bytes memory values) internal view returns (Facts memory f, Picked memory p) {
        f = _facts(
            _describe(
                hex"00",
                hex"0100000004",
                5,
                hex"00",
                hex"0100",
                abi.encodePacked(hex"0103", uint32(7), hex"20000100", hex"20020200", hex"26020300")
            )
        );
        (f.term, f.agreed) = (2, 100);
        uint32 claimed;
        assembly ("memory-safe") {
            claimed := and(mload(add(values, mul(4, add(index, 1)))), 0xffffffff)
        }
        p = Picked(BODY, index, 0, 0, 0, claimed, _frame(f, BODY, 4, 5, 3));
    }
}
