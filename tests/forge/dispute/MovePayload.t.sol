// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Distance} from "../../../contracts/dispute/Distance.sol";
import {MovePayload} from "../../../contracts/dispute/MovePayload.sol";
import {Level, Position} from "../../../contracts/dispute/Position.sol";
import {Base} from "../Base.sol";
import {PlainShares} from "./PlainShares.sol";

/// @notice What `MovePayload` says, with memory that is not empty.
contract MovePayloadHarness {
    modifier dirty() {
        assembly ("memory-safe") {
            let free := mload(0x40)
            for { let i := 0 } lt(i, 0x2000) { i := add(i, 32) } { mstore(add(free, i), not(0)) }
        }
        _;
    }

    function openSteps(uint256 steps, bytes calldata payload, bytes32 agreed, bytes32 claimed, uint256 width)
        external
        pure
        dirty
        returns (bytes32)
    {
        return MovePayload.openSteps(steps, payload, agreed, claimed, width);
    }

    function openTerms(Position memory p, bytes calldata payload, bytes32 agreed, bytes32 claimed)
        external
        pure
        dirty
        returns (bytes32)
    {
        MovePayload.openTerms(p, payload, agreed, claimed);
        return p.opening;
    }

    function openSums(Position memory p, bytes calldata payload, bytes32 claimed, uint256 width)
        external
        pure
        dirty
        returns (bytes32)
    {
        MovePayload.openSums(p, payload, claimed, width);
        return p.opening;
    }

    function openSubtree(Position memory p, bytes calldata payload, uint256 width)
        external
        pure
        dirty
        returns (bytes32)
    {
        MovePayload.openSubtree(p, payload, width);
        return p.opening;
    }

    function openLeaf(Position memory p, bytes calldata payload)
        external
        pure
        dirty
        returns (bytes32 opening, bytes32 hash)
    {
        hash = MovePayload.openLeaf(p, payload);
        opening = p.opening;
    }

    function openBody(Position memory p, bytes calldata payload, bytes32 claimed)
        external
        pure
        dirty
        returns (bytes32)
    {
        MovePayload.openBody(p, payload, claimed);
        return p.opening;
    }
}

/// @notice What moves open, against rules that are written down once more.
contract MovePayloadTest is Base {
    MovePayloadHarness private harness = new MovePayloadHarness();

    /// @dev Around powers of two, in trees of one to four openings.
    function _sizes() private pure returns (uint64[18] memory) {
        return [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 255, 257, type(uint64).max - 3];
    }

    function _expectLength(uint256 actual, uint256 expected) private {
        vm.expectRevert(abi.encodeWithSelector(MovePayload.WrongPayloadLength.selector, actual, expected));
    }

    function _range(uint256 size) private pure returns (Position memory p) {
        (p.lo, p.hi) = (3, size + 3);
    }

    // --- ranges ---

    function _openSteps(uint256 size, uint256 width) private {
        bytes32 agreed = keccak256("agreed");
        bytes32[] memory roots = PlainShares.row(PlainShares.parts(size, width), 1);
        bytes memory payload = abi.encodePacked(roots);
        bytes32[] memory pairs = new bytes32[](roots.length);
        for (uint256 i = 0; i < pairs.length; i++) {
            pairs[i] = keccak256(abi.encodePacked(i == 0 ? agreed : roots[i - 1], roots[i]));
        }
        bytes32 opening = PlainShares.root(pairs, PlainShares.padding(0));
        vm.assertEq(harness.openSteps(size, payload, agreed, 0, width), opening);
        vm.expectRevert(MovePayload.Agreed.selector);
        harness.openSteps(size, payload, agreed, roots[roots.length - 1], width);
        _expectLength(payload.length + 1, payload.length);
        harness.openSteps(size, abi.encodePacked(payload, uint8(0)), agreed, 0, width);
        _expectLength(0, payload.length);
        harness.openSteps(size, "", agreed, 0, width);
    }

    function test_states() public {
        uint64[18] memory sizes = _sizes();
        for (uint256 i = 0; i < sizes.length; i++) {
            _openSteps(sizes[i], 4);
            _openSteps(sizes[i], 5);
        }
    }

    function _openTerms(uint256 size) private {
        uint32[] memory values = new uint32[](PlainShares.parts(size, 6));
        bytes memory payload;
        for (uint256 i = 0; i < values.length; i++) {
            values[i] = uint32(uint256(keccak256(abi.encode(size, i))));
            payload = abi.encodePacked(payload, values[i]);
        }
        bytes32[] memory leaves = PlainShares.leaves(PlainShares.pieces(0xa9eed123, values));
        bytes32 agreed = bytes32(uint256(0xa9eed123));
        bytes32 opening = PlainShares.root(leaves, PlainShares.padding(0));
        vm.assertEq(harness.openTerms(_range(size), payload, agreed, 0), opening);
        vm.expectRevert(MovePayload.Agreed.selector);
        harness.openTerms(_range(size), payload, agreed, bytes32(uint256(values[values.length - 1])));
        _expectLength(payload.length + 1, payload.length);
        harness.openTerms(_range(size), abi.encodePacked(payload, uint8(0)), agreed, 0);
        _expectLength(0, payload.length);
        harness.openTerms(_range(size), "", agreed, 0);
    }

    function test_accumulators() public {
        uint64[18] memory sizes = _sizes();
        for (uint256 i = 0; i < sizes.length; i++) {
            _openTerms(sizes[i]);
        }
    }

    function _openSums(uint256 size, uint256 width) private {
        bytes32[] memory sums = PlainShares.row(PlainShares.parts(size, width), 2);
        uint256 total = 0;
        for (uint256 i = 0; i < sums.length; i++) {
            // All together below what counts as infinite.
            sums[i] >>= 70;
            total = Distance.add(total, uint256(sums[i]));
        }
        bytes memory payload = abi.encodePacked(sums);
        bytes32 opening = PlainShares.root(sums, PlainShares.padding(0));
        vm.assertEq(harness.openSums(_range(size), payload, 0, width), opening);
        // What follows in the call is not summed up.
        bytes memory call = abi.encodeCall(harness.openSums, (_range(size), payload, bytes32(total), width));
        (bool isOpened, bytes memory reason) = address(harness).staticcall(abi.encodePacked(call, uint256(1)));
        vm.assertFalse(isOpened);
        vm.assertEq(reason, abi.encodeWithSelector(MovePayload.Agreed.selector));
        vm.expectRevert(MovePayload.Agreed.selector);
        harness.openSums(_range(size), payload, bytes32(total), width);
        _expectLength(payload.length + 1, payload.length);
        harness.openSums(_range(size), abi.encodePacked(payload, uint8(0)), 0, width);
        _expectLength(0, payload.length);
        harness.openSums(_range(size), "", 0, width);
    }

    function test_sums() public {
        uint64[18] memory sizes = _sizes();
        for (uint256 i = 0; i < sizes.length; i++) {
            _openSums(sizes[i], 4);
            _openSums(sizes[i], 5);
        }
    }

    // --- subtrees ---

    function _openSubtree(Level level, uint256 height, uint256 leaves, uint256 lo) private {
        Position memory p;
        (p.level, p.height, p.lo) = (level, height, lo);
        p.count = level == Level.LEAVES ? 64 * leaves - 63 : leaves;
        uint256 share = PlainShares.share(height, 4);
        bytes32[] memory row = PlainShares.row(2 ** share, 3);
        bytes memory payload;
        for (uint256 i = 0; i < row.length; i++) {
            if (lo + (i << (height - share)) < leaves) payload = abi.encodePacked(payload, row[i]);
            else row[i] = PlainShares.padding(height - share);
        }
        vm.assertEq(harness.openSubtree(p, payload, 4), PlainShares.root(row, 0));
        _expectLength(payload.length + 32, payload.length);
        harness.openSubtree(p, abi.encodePacked(payload, bytes32(0)), 4);
        _expectLength(0, payload.length);
        harness.openSubtree(p, "", 4);
    }

    function test_children() public {
        Level[3] memory levels = [Level.NODES, Level.LEAVES, Level.STATE];
        for (uint256 i = 0; i < 3; i++) {
            for (uint256 height = 1; height < 10; height++) {
                uint256 size = 1 << height;
                _openSubtree(levels[i], height, size, 0);
                _openSubtree(levels[i], height, size - size / 4, 0);
                _openSubtree(levels[i], height, 4 * size, size);
                _openSubtree(levels[i], height, 3 * size + 1, 3 * size);
                _openSubtree(levels[i], height, 4 * size - 1, 3 * size);
            }
        }
    }

    // --- leaves ---

    /// @dev A leaf whose tensor ends after so many words of it, and every byte from there on.
    function _openLeaf(uint256 words, uint256 from) private {
        Position memory p;
        (p.level, p.count, p.lo) = (Level.LEAF, 64 * 3 + words, 3);
        bytes memory payload = new bytes(256);
        for (uint256 i = 0; i < from; i++) {
            payload[i] = bytes1(uint8(i + 1));
        }
        (bytes32 opening, bytes32 hash) = harness.openLeaf(p, payload);
        bytes32[] memory row = new bytes32[](8);
        for (uint256 i = 0; i < 8; i++) {
            assembly {
                mstore(add(row, mul(32, add(i, 1))), mload(add(payload, mul(32, add(i, 1)))))
            }
        }
        vm.assertEq(opening, PlainShares.root(row, 0));
        vm.assertEq(hash, keccak256(abi.encodePacked(uint8(0), payload)));
        for (uint256 i = from; i < 256; i++) {
            payload[i] = 0x01;
            vm.expectRevert(MovePayload.DirtyLeaf.selector);
            harness.openLeaf(p, payload);
            payload[i] = 0;
        }
    }

    function test_leaves() public {
        _openLeaf(1, 4);
        _openLeaf(8, 32);
        _openLeaf(13, 52);
        _openLeaf(63, 252);
        _openLeaf(64, 256);
        _openLeaf(65, 256);
        _openLeaf(1000, 256);
    }

    function test_leaves_of_another_length() public {
        Position memory p;
        (p.level, p.count) = (Level.LEAF, 64);
        for (uint256 length = 0; length < 600; length += length == 255 ? 2 : 51) {
            _expectLength(length, 256);
            harness.openLeaf(p, new bytes(length));
        }
    }

    // --- bodies ---

    function test_results() public {
        bytes memory payload;
        for (uint32 i = 1; i < 20; i++) {
            payload = abi.encodePacked(payload, 0xabcdef00 + i);
            Position memory p;
            p.count = i;
            vm.assertEq(harness.openBody(p, payload, bytes32(uint256(0xabcdef00 + i - 1))), keccak256(payload));
            vm.expectRevert(MovePayload.Agreed.selector);
            harness.openBody(p, payload, bytes32(uint256(0xabcdef00 + i)));
            p.count = i + 1;
            _expectLength(4 * i, 4 * i + 4);
            harness.openBody(p, payload, 0);
        }
    }
}
