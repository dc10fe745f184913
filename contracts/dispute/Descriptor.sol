// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ProgramLayout, ScalarMachine} from "../arithmetic/ScalarMachine.sol";
import {LEAF_WORDS, MerkleBranch, TAG_PROGRAM} from "../commitments/MerkleBranch.sol";

/// @dev Bytes of a program header.
uint256 constant HEADER_BYTES = 112;

/// @notice The counts and trees in a program header that disputes need.
struct Header {
    uint32 nodes;
    uint32 slots;
    bytes32 nodesTree;
    bytes32 slotsTree;
}

/// @notice A tensor type inside a descriptor: `descriptor[begin:end]` is `u8 dtype || u8 rank || u32 dims[rank]`.
struct TypeView {
    uint256 begin;
    uint256 end;
    uint256 dtype;
    uint256 elements;
}

/// @notice An operand of a node; `affineAt` and `boundAt` are offsets of affine forms.
struct OperandView {
    uint256 source;
    uint256 index;
    TypeView tensor;
    uint32 fill;
    uint256 affineAt;
    uint256 bounds;
    uint256 boundAt;
    uint256 gatherAt; // u8 g || i64 stride || i64 limit; 0 if the operand does not gather
    uint256 end;
}

/// @notice Where the parts of a node descriptor begin. Its numbers are read when they are needed.
struct NodeView {
    TypeView output;
    uint256 foldAt; // u8 foldRank || u32 foldDims
    uint256 terms;
    uint32 init;
    uint256 coordinates; // 1 + rank + foldRank
    uint256[] operandAt; // an operand is read when an instruction needs it
    uint256 inputAt; // u8 kind || u8 index for each input
    uint256 bodyAt; // the scalar program, to the end of the descriptor
    ProgramLayout body;
}

/// @notice What a walk needs of a node descriptor.
struct NodeOutline {
    TypeView output;
    uint256 terms;
    uint32 init;
    uint256 instructions;
}

/// @notice A slot of the state.
struct SlotView {
    uint8 component;
    TypeView tensor;
    uint32 producer;
    uint8 scale;
}

/// @title Descriptor
/// @notice Reads program headers, node and slot descriptors (docs/spec/program.md). Nothing is read leniently, but for
/// outlines: bytes that are missing, too many or out of range revert. Of a node that is the frame: an operand's numbers
/// are checked by `operand`.
library Descriptor {
    /// @notice The descriptor ends before byte `end`.
    error Truncated(uint256 end);
    /// @notice The descriptor has bytes after byte `end`.
    error TrailingBytes(uint256 end);
    /// @notice A number at byte `offset` is outside of what the specification allows.
    error OutOfRange(uint256 offset);
    /// @notice The bytes are not the header of the program.
    error WrongHeader();

    uint256 private constant VERSION = 1;
    uint256 private constant DTYPES = 2;
    uint256 private constant COMPONENTS = 3;
    uint256 private constant MAX_SCALE = 23;
    uint256 private constant SOURCES = 3;
    uint256 private constant MAX_RANK = 8;
    uint256 private constant MAX_FOLD_RANK = 4;
    uint256 private constant MAX_OPERANDS = 16;
    uint256 private constant MAX_BOUNDS = 4;
    uint256 private constant MAX_ELEMENTS = 2 ** 31 - 1;
    /// @dev Nodes, and slots: no tree is higher than 31.
    uint256 private constant MAX_LIST = 2 ** 31;
    uint256 private constant MAX_TERMS = 2 ** 32 - 1;

    /// @notice A program header. Whose it is says `programOf`.
    function header(bytes calldata data) internal pure returns (Header memory result) {
        readHeader(result, data);
    }

    /// @notice The same, into `result`.
    function readHeader(Header memory result, bytes calldata data) internal pure {
        if (data.length != HEADER_BYTES) revert WrongHeader();
        if (u32(data, 0) != VERSION) revert OutOfRange(0);
        result.nodes = u32(data, 4);
        result.slots = u32(data, 8);
        if (result.nodes == 0 || result.nodes > MAX_LIST) revert OutOfRange(4);
        if (result.slots == 0 || result.slots > MAX_LIST) revert OutOfRange(8);
        bytes32 nodesTree;
        bytes32 slotsTree;
        assembly ("memory-safe") {
            nodesTree := calldataload(add(data.offset, 16))
            slotsTree := calldataload(add(data.offset, 48))
        }
        (result.nodesTree, result.slotsTree) = (nodesTree, slotsTree);
    }

    /// @notice Hash of the program that has this header.
    function programOf(bytes calldata data) internal pure returns (bytes32) {
        return MerkleBranch.tagged(TAG_PROGRAM, data);
    }

    /// @notice A slot descriptor.
    function slot(bytes calldata data) internal pure returns (SlotView memory result) {
        result.component = u8(data, 0);
        if (result.component == 0 || result.component > COMPONENTS) revert OutOfRange(0);
        result.tensor = tensorType(data, 1);
        result.producer = u32(data, result.tensor.end);
        result.scale = u8(data, result.tensor.end + 4);
        if (result.scale > MAX_SCALE) revert OutOfRange(result.tensor.end + 4);
        if (data.length != result.tensor.end + 5) revert TrailingBytes(result.tensor.end + 5);
    }

    /// @notice Reads a node descriptor into `result`, so that nothing is allocated twice.
    function readNode(NodeView memory result, bytes calldata data) internal pure {
        if (u8(data, 0) != VERSION) revert OutOfRange(0);
        TypeView memory output = result.output;
        readType(output, data, 1);
        uint256 foldAt = output.end;
        (uint256 terms, uint256 offset) = dimensions(data, foldAt, MAX_FOLD_RANK, MAX_TERMS);
        (result.foldAt, result.terms) = (foldAt, terms);
        unchecked {
            // Offsets: ranks are what dimensions of four bytes each take.
            result.coordinates = 1 + (foldAt - output.begin) / 4 + (offset - foldAt) / 4;
            uint256 init = _word(data, offset) >> 224;
            // A map has no accumulator.
            if (init != 0 && offset == foldAt + 1) revert OutOfRange(offset);
            result.init = uint32(init);
            uint256 operands = _word(data, offset + 4) >> 248;
            if (operands > MAX_OPERANDS) revert OutOfRange(offset + 4);
            (result.operandAt, offset) = _operands(data, offset + 5, operands, 8 + 8 * result.coordinates);
            uint256 inputs = _word(data, offset) >> 248;
            result.inputAt = offset + 1;
            result.bodyAt = result.inputAt + 2 * inputs;
            // All before it lies before it: offsets only grow.
            if (result.bodyAt > data.length) revert Truncated(result.bodyAt);
            ScalarMachine.layout(result.body, data[result.bodyAt:]);
            if (result.body.inputs != inputs) revert OutOfRange(offset);
        }
    }

    /// @notice The outline of a node descriptor that stands in the program.
    /// @dev Operands are walked over, not looked at: the program is one that both sides have accepted, so its
    /// descriptors keep the rules. One that breaks them is still read inside of its bytes only, and its last step
    /// reverts in `readNode`.
    function outline(bytes calldata data) internal pure returns (NodeOutline memory result) {
        TypeView memory output = result.output;
        readType(output, data, 1);
        uint256 foldAt = output.end;
        (uint256 terms, uint256 offset) = dimensions(data, foldAt, MAX_FOLD_RANK, MAX_TERMS);
        result.terms = terms;
        unchecked {
            // Offsets: ranks are what dimensions of four bytes each take.
            uint256 affineBytes = 16 + 8 * ((foldAt - output.begin) / 4 + (offset - foldAt) / 4);
            uint256 word = _word(data, offset);
            result.init = uint32(word >> 224);
            (, offset) = _operands(data, offset + 5, (word >> 216) & type(uint8).max, affineBytes);
            // Inputs, then the counts of inputs, constants and instructions of the body. All before the last one lies
            // before it.
            result.instructions = u8(data, offset + 1 + 2 * (_word(data, offset) >> 248) + 2);
        }
    }

    /// @notice Reads the operand at byte `offset` of the descriptor of a node with so many `coordinates` into `result`.
    function readOperand(OperandView memory result, bytes calldata data, uint256 offset, uint256 coordinates)
        internal
        pure
    {
        uint256 word = _word(data, offset);
        (result.source, result.index) = (word >> 248, (word >> 216) & type(uint32).max);
        if (result.source == 0 || result.source > SOURCES) revert OutOfRange(offset);
        readType(result.tensor, data, offset + 5);
        offset = result.tensor.end;
        result.fill = uint32(_word(data, offset) >> 224);
        result.affineAt = offset + 4;
        unchecked {
            // Ranks and counts are bounded above: an operand is shorter than 1,000 bytes.
            uint256 affineBytes = 8 + 8 * coordinates;
            offset += 4 + affineBytes;
            uint256 bounds = _word(data, offset) >> 248;
            if (bounds > MAX_BOUNDS) revert OutOfRange(offset);
            (result.bounds, result.boundAt) = (bounds, offset + 1);
            offset += 1 + bounds * (affineBytes + 8);
            uint256 gathers = _word(data, offset) >> 248;
            if (gathers > 1) revert OutOfRange(offset);
            if (gathers == 1) result.gatherAt = offset + 1;
            result.end = offset + 1 + 17 * gathers;
        }
        // All of it lies before its end: offsets only grow.
        if (result.end > data.length) revert Truncated(result.end);
    }

    /// @dev Where `count` operands from byte `offset` on begin, and the byte after them. Affine forms take
    /// `affineBytes`.
    function _operands(bytes calldata data, uint256 offset, uint256 count, uint256 affineBytes)
        private
        pure
        returns (uint256[] memory begins, uint256 end)
    {
        assembly ("memory-safe") {
            begins := mload(0x40)
            mstore(begins, count)
            let place := add(begins, 32)
            let last := add(place, mul(32, count))
            mstore(0x40, last)
            end := offset
            for {} lt(place, last) { place := add(place, 32) } {
                mstore(place, end)
                let at := add(data.offset, end)
                // source, index, dtype; rank, dimensions; fill, address
                let size := add(add(11, affineBytes), shr(246, and(shl(48, calldataload(at)), shl(248, 0xff))))
                // Bounds, then the gather.
                let bounds := byte(0, calldataload(add(at, size)))
                size := add(add(size, 1), mul(bounds, add(affineBytes, 8)))
                size := add(size, add(1, mul(17, byte(0, calldataload(add(at, size))))))
                end := add(end, size)
            }
        }
    }

    /// @notice The tensor type at byte `offset`.
    function tensorType(bytes calldata data, uint256 offset) internal pure returns (TypeView memory result) {
        readType(result, data, offset);
    }

    /// @notice The same, into `result`.
    function readType(TypeView memory result, bytes calldata data, uint256 offset) internal pure {
        (uint256 elements, uint256 end) = dimensions(data, offset + 1, MAX_RANK, MAX_ELEMENTS);
        // Before its dimensions, which are there.
        uint256 dtype = _word(data, offset) >> 248;
        if (dtype == 0 || dtype > DTYPES) revert OutOfRange(offset);
        (result.begin, result.end, result.dtype, result.elements) = (offset, end, dtype, elements);
    }

    /// @notice `u8 rank || u32 dims[rank]` at byte `offset`: the product of the dimensions and the byte after them.
    function dimensions(bytes calldata data, uint256 offset, uint256 maxRank, uint256 maxProduct)
        internal
        pure
        returns (uint256 product, uint256 end)
    {
        unchecked {
            uint256 rank = _word(data, offset) >> 248;
            end = offset + 1 + 4 * rank;
            if (end > data.length) revert Truncated(end);
            if (rank > maxRank) revert OutOfRange(offset);
            product = 1;
            // Before each multiplication by a u32 the product is at most `maxProduct`, a u32 itself.
            for (uint256 i = offset + 1; i != end; i += 4) {
                product *= _word(data, i) >> 224;
                if (product - 1 >= maxProduct) revert OutOfRange(i);
            }
        }
    }

    /// @notice Data leaves of a tensor with so many elements.
    function leaves(uint256 elements) internal pure returns (uint256) {
        unchecked {
            // Elements are below 2^31.
            return (elements + LEAF_WORDS - 1) / LEAF_WORDS;
        }
    }

    /// @notice Value of the affine form at byte `offset`.
    function affine(bytes calldata data, uint256 offset, uint256[] memory coordinates)
        internal
        pure
        returns (int256 sum)
    {
        _require(data, offset, 8 + 8 * coordinates.length);
        // An i64 times a u64, at most 13 times: far below 2^255.
        assembly ("memory-safe") {
            let form := add(data.offset, offset)
            sum := sar(192, calldataload(form))
            let coordinate := add(coordinates, 32)
            for { let end := add(coordinate, mul(32, mload(coordinates))) } lt(coordinate, end) {} {
                form := add(form, 8)
                sum := add(sum, mul(sar(192, calldataload(form)), mload(coordinate)))
                coordinate := add(coordinate, 32)
            }
        }
    }

    /// @notice The byte at `offset`.
    function u8(bytes calldata data, uint256 offset) internal pure returns (uint8 value) {
        unchecked {
            if (offset + 1 > data.length) revert Truncated(offset + 1);
        }
        assembly ("memory-safe") {
            value := shr(248, calldataload(add(data.offset, offset)))
        }
    }

    /// @notice Four bytes at `offset`, big-endian.
    function u32(bytes calldata data, uint256 offset) internal pure returns (uint32 value) {
        unchecked {
            if (offset + 4 > data.length) revert Truncated(offset + 4);
        }
        assembly ("memory-safe") {
            value := shr(224, calldataload(add(data.offset, offset)))
        }
    }

    /// @notice Eight bytes at `offset`, big-endian two's complement.
    function i64(bytes calldata data, uint256 offset) internal pure returns (int64 value) {
        unchecked {
            if (offset + 8 > data.length) revert Truncated(offset + 8);
        }
        assembly ("memory-safe") {
            value := sar(192, calldataload(add(data.offset, offset)))
        }
    }

    /// @dev 32 bytes from `offset` on, wherever the descriptor ends: it is up to the caller to show that what it takes
    /// of them lies inside.
    function _word(bytes calldata data, uint256 offset) private pure returns (uint256 word) {
        assembly ("memory-safe") {
            word := calldataload(add(data.offset, offset))
        }
    }

    /// @dev That there are `size` bytes at `offset`. Offsets are sums of lengths that are bounded by the format: they
    /// never wrap.
    function _require(bytes calldata data, uint256 offset, uint256 size) private pure {
        unchecked {
            if (offset + size > data.length) revert Truncated(offset + size);
        }
    }
}
