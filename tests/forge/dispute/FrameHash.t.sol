// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {FrameHash, StepFacts} from "../../../contracts/dispute/FrameHash.sol";
import {Header} from "../../../contracts/dispute/Descriptor.sol";
import {Cursor, PackedReader} from "../../../contracts/dispute/PackedReader.sol";
import {Base} from "../Base.sol";

/// @notice Frames from calldata, and facts, read to the last byte.
contract FactsReader {
    using PackedReader for Cursor;

    function replay(bytes32 id, bytes32 program, bytes32 constants) external pure returns (bytes32) {
        return FrameHash.replay(id, program, constants);
    }

    function sum(bytes32 id, bytes32 program, bytes32 x, bytes32 y, uint8 component) external pure returns (bytes32) {
        return FrameHash.sum(id, program, x, y, component);
    }

    function step(bytes32 base, bytes32 end, bytes32 pre, uint64 number) external pure returns (bytes32) {
        return FrameHash.step(base, end, pre, number);
    }

    function pair(bytes32 a, bytes32 b) external pure returns (bytes32) {
        return FrameHash.pair(a, b);
    }

    function pick(bytes32 frame, bytes32 opening, uint256 height) external pure returns (bytes32) {
        return FrameHash.pick(frame, opening, height);
    }

    function node(bytes32 frame, bytes32 descriptor, uint32 number, uint64 terms, uint32 init, uint8 instructions)
        external
        pure
        returns (bytes32)
    {
        return FrameHash.node(frame, descriptor, number, terms, init, instructions);
    }

    function element(bytes32 frame, uint64 number) external pure returns (bytes32) {
        return FrameHash.element(frame, number);
    }

    function body(bytes32 frame, uint64 term, uint32 agreed) external pure returns (bytes32) {
        return FrameHash.body(frame, term, agreed);
    }

    function slot(bytes32 frame, uint32 number, bytes32 descriptor) external pure returns (bytes32) {
        return FrameHash.slot(frame, number, descriptor);
    }

    function readStep(bytes calldata data) external pure returns (StepFacts memory facts) {
        Cursor memory cursor = PackedReader.over(data);
        facts = FrameHash.readStep(cursor);
        cursor.finish();
    }

    function readSum(bytes calldata data) external pure returns (Header memory header, uint8 component, bytes32 frame) {
        Cursor memory cursor = PackedReader.over(data);
        (header, component, frame) = FrameHash.readSum(cursor);
        cursor.finish();
    }
}

/// @notice Frames, against the specification's table.
contract FrameHashTest is Base {
    FactsReader private reader;
    bytes private header;

    function setUp() public {
        reader = new FactsReader();
        header =
            abi.encodePacked(uint32(1), uint32(7), uint32(9), uint32(2), keccak256("n"), keccak256("s"), bytes32(0));
    }

    function testFuzz_frames(bytes32 a, bytes32 b, uint64 u, uint32 v, uint32 w, uint8 x) public view {
        vm.assertEq(reader.pair(a, b), keccak256(abi.encodePacked(a, b)));
        vm.assertEq(reader.pick(a, b, x), keccak256(abi.encodePacked(a, b, x)));
        vm.assertEq(reader.node(a, b, v, u, w, x), keccak256(abi.encodePacked(a, b, v, u, w, x)));
        vm.assertEq(reader.element(a, u), keccak256(abi.encodePacked(a, u)));
        vm.assertEq(reader.body(a, u, v), keccak256(abi.encodePacked(a, u, v)));
        vm.assertEq(reader.slot(a, v, b), keccak256(abi.encodePacked(a, v, b)));
    }

    function testFuzz_facts_of_a_step(bytes32[4] memory f, uint64 step) public view {
        // id, constants, end, pre
        bytes32 program = keccak256(abi.encodePacked(uint8(6), header));
        bytes32 base = keccak256(abi.encodePacked(keccak256(abi.encodePacked(f[0], program)), f[1]));
        bytes32 frame = keccak256(abi.encodePacked(keccak256(abi.encodePacked(base, f[2])), f[3], step));
        vm.assertEq(reader.replay(f[0], program, f[1]), base);
        vm.assertEq(reader.step(base, f[2], f[3], step), frame);
        StepFacts memory facts = reader.readStep(abi.encodePacked(header, f[0], f[1], f[2], f[3], step));
        vm.assertEq(facts.frame, frame);
        vm.assertEq(facts.end, f[2]);
        vm.assertTrue(facts.header.nodes == 7 && facts.header.slots == 9);
        vm.assertTrue(facts.header.nodesTree == keccak256("n") && facts.header.slotsTree == keccak256("s"));
    }

    function testFuzz_facts_of_a_sum(bytes32 id, bytes32 x, bytes32 y, uint8 component) public view {
        bytes32 program = keccak256(abi.encodePacked(uint8(6), header));
        bytes32 origin = keccak256(abi.encodePacked(id, program));
        bytes32 expected = keccak256(abi.encodePacked(origin, x, y, component));
        vm.assertEq(reader.sum(id, program, x, y, component), expected);
        (Header memory counts, uint8 found, bytes32 frame) =
            reader.readSum(abi.encodePacked(header, id, x, y, component));
        vm.assertEq(frame, expected);
        vm.assertTrue(found == component && counts.nodes == 7 && counts.slots == 9);
    }
}
