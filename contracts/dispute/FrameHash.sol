// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Descriptor, Header, HEADER_BYTES} from "./Descriptor.sol";
import {Cursor, PackedReader} from "./PackedReader.sol";

/// @notice What a step's frame is made of, as far as later rules need it.
struct StepFacts {
    Header header;
    bytes32 end; // state root after the step that the side said whose part was picked
    bytes32 frame; // F1
}

/// @title FrameHash
/// @notice Hashes over everything that both sides agree on (docs/spec/dispute.md, Frames).
library FrameHash {
    using PackedReader for Cursor;

    /// @notice F0: what a replay starts with.
    function replay(bytes32 id, bytes32 program, bytes32 constants) internal pure returns (bytes32) {
        return pair(pair(id, program), constants);
    }

    /// @notice What the dispute of a sum starts with.
    function sum(bytes32 id, bytes32 program, bytes32 x, bytes32 y, uint8 component) internal pure returns (bytes32) {
        return keccak256(abi.encodePacked(pair(id, program), x, y, component));
    }

    /// @notice F1: a step's trace.
    function step(bytes32 base, bytes32 end, bytes32 pre, uint64 step_) internal pure returns (bytes32) {
        return _hash(pair(base, end), pre, bytes32(uint256(step_) << 192), 72);
    }

    /// @notice After a pick from NODES.
    function pick(bytes32 frame, bytes32 opening, uint256 height) internal pure returns (bytes32) {
        return _hash(frame, opening, bytes32(height << 248), 65);
    }

    /// @notice After a descriptor.
    function node(bytes32 frame, bytes32 descriptor, uint32 node_, uint64 terms, uint32 init, uint8 instructions)
        internal
        pure
        returns (bytes32)
    {
        uint256 rest =
            (uint256(node_) << 224) | (uint256(terms) << 160) | (uint256(init) << 128) | (uint256(instructions) << 120);
        return _hash(frame, descriptor, bytes32(rest), 81);
    }

    /// @notice After a pick from LEAF.
    function element(bytes32 frame, uint64 element_) internal pure returns (bytes32) {
        return _hash(frame, bytes32(uint256(element_) << 192), 0, 40);
    }

    /// @notice In BODY.
    function body(bytes32 frame, uint64 term, uint32 agreed) internal pure returns (bytes32) {
        return _hash(frame, bytes32((uint256(term) << 192) | (uint256(agreed) << 160)), 0, 44);
    }

    /// @notice After a slot's descriptor.
    function slot(bytes32 frame, uint32 slot_, bytes32 descriptor) internal pure returns (bytes32) {
        return keccak256(abi.encodePacked(frame, slot_, descriptor));
    }

    /// @notice `H(left || right)`.
    function pair(bytes32 left, bytes32 right) internal pure returns (bytes32 result) {
        assembly ("memory-safe") {
            mstore(0, left)
            mstore(32, right)
            result := keccak256(0, 64)
        }
    }

    /// @notice Reads `header || id || constants || end || pre || u64 step`.
    function readStep(Cursor memory cursor) internal pure returns (StepFacts memory facts) {
        bytes calldata header = cursor.slice(HEADER_BYTES);
        Descriptor.readHeader(facts.header, header);
        bytes32 id = cursor.hash();
        bytes32 base = replay(id, Descriptor.programOf(header), cursor.hash());
        facts.end = cursor.hash();
        bytes32 pre = cursor.hash();
        facts.frame = step(base, facts.end, pre, uint64(cursor.number(8)));
    }

    /// @notice Reads `header || id || x || y || u8 component`.
    function readSum(Cursor memory cursor)
        internal
        pure
        returns (Header memory header, uint8 component, bytes32 frame)
    {
        bytes calldata data = cursor.slice(HEADER_BYTES);
        header = Descriptor.header(data);
        bytes32 id = cursor.hash();
        (bytes32 x, bytes32 y) = (cursor.hash(), cursor.hash());
        component = uint8(cursor.number(1));
        frame = sum(id, Descriptor.programOf(data), x, y, component);
    }

    /// @dev Hash of the first `size` bytes of three words.
    function _hash(bytes32 a, bytes32 b, bytes32 c, uint256 size) private pure returns (bytes32 result) {
        assembly ("memory-safe") {
            let hashed := mload(0x40)
            mstore(hashed, a)
            mstore(add(hashed, 32), b)
            mstore(add(hashed, 64), c)
            result := keccak256(hashed, size)
        }
    }
}
