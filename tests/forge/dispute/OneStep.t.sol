// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ScalarMachine} from "../../../contracts/arithmetic/ScalarMachine.sol";
import {Outcome} from "../../../contracts/dispute/IOneStep.sol";
import {OneStep} from "../../../contracts/dispute/OneStep.sol";
import {Opening, Openings} from "../../../contracts/dispute/Opening.sol";
import {Level, Position} from "../../../contracts/dispute/Position.sol";
import {Toy} from "./Toy.sol";

/// @notice How registers are resolved, and what of a program that nobody should have accepted is refused.
contract OneStepTest is Toy {
    OneStep private oneStep = new OneStep();
    Opening[] private openings;

    function setUp() public {
        _buildToy(1);
    }

    function _position(bytes memory descriptor, uint64 element, uint64 term) private view returns (Position memory p) {
        p.level = Level.ONE_STEP;
        p.descriptor = keccak256(descriptor);
        p.step = FIRST_STEP;
        p.node = 2;
        p.element = element;
        p.term = term;
        p.instructions = 1;
        p.pre = _stateRoot(FIRST_STEP);
    }

    /// @dev A node of shape [2, 3], folded over [4], without operands; inputs are `kinds`, the body is one MOV of `register`.
    function _node(bytes memory kinds, uint8 register, bytes memory more) private pure returns (bytes memory) {
        uint8 inputs = uint8(kinds.length / 2);
        return abi.encodePacked(
            hex"01",
            hex"01020000000200000003",
            hex"0100000004",
            uint32(0),
            uint8(0),
            inputs,
            kinds,
            inputs,
            more,
            hex"31",
            register,
            hex"0000"
        );
    }

    function _run(bytes memory descriptor, uint64 element, uint64 term) private view returns (Outcome memory) {
        return oneStep.execute(_position(descriptor, element, term), 0, descriptor, "", openings);
    }

    function test_coordinates_are_row_major() public view {
        uint32[4] memory expected = [uint32(FIRST_STEP), 1, 2, 3];
        for (uint8 i = 0; i < 4; i++) {
            Outcome memory o = _run(_node(abi.encodePacked(uint8(3), i), 0, hex"0001"), 5, 3);
            vm.assertEq(uint256(o.a), expected[i]);
            vm.assertEq(uint256(o.computed), expected[i]);
        }
    }

    function testFuzz_coordinates(uint64 element, uint64 term, uint64 step) public view {
        element = uint64(bound(element, 0, 5));
        term = uint64(bound(term, 0, 3));
        bytes memory descriptor = _node(hex"0300030103020303", 0, hex"0001");
        uint32[4] memory expected = [uint32(step), uint32(element / 3), uint32(element % 3), uint32(term)];
        for (uint8 i = 0; i < 4; i++) {
            descriptor[descriptor.length - 3] = bytes1(i);
            Position memory p = _position(descriptor, element, term);
            p.step = step;
            vm.assertEq(uint256(oneStep.execute(p, 0, descriptor, "", openings).a), expected[i]);
        }
    }

    function test_accumulator_and_constant() public view {
        bytes memory descriptor = _node(hex"0100", 0, hex"0001");
        Position memory p = _position(descriptor, 0, 0);
        p.agreed = bytes32(uint256(0xdeadbeef));
        p.claimed = bytes32(uint256(0xdeadbeef));
        Outcome memory o = oneStep.execute(p, 0, descriptor, "", openings);
        vm.assertEq(uint256(o.computed), 0xdeadbeef);
        vm.assertEq(uint256(o.claimed), 0xdeadbeef);
        o = _run(_node(hex"0100", 1, hex"010112345678"), 0, 0);
        vm.assertEq(uint256(o.computed), 0x12345678);
    }

    function _refuse(bytes memory descriptor, bytes4 selector) private {
        Position memory p = _position(descriptor, 0, 0);
        vm.expectPartialRevert(selector);
        oneStep.execute(p, 0, descriptor, "", openings);
    }

    function test_unknown_instruction() public {
        uint8[7] memory codes = [0x00, 0x0f, 0x19, 0x1f, 0x2d, 0x32, 0xff];
        for (uint256 i = 0; i < codes.length; i++) {
            bytes memory descriptor = _node(hex"0100", 0, hex"0001");
            descriptor[descriptor.length - 4] = bytes1(codes[i]);
            _refuse(descriptor, ScalarMachine.InvalidInstruction.selector);
        }
    }

    function test_unused_operand_that_is_not_zero() public {
        bytes memory descriptor = _node(hex"0100", 0, hex"0001");
        descriptor[descriptor.length - 1] = 0x01;
        _refuse(descriptor, ScalarMachine.InvalidProgram.selector);
    }

    function test_register_that_is_not_yet_defined() public {
        _refuse(_node(hex"0100", 1, hex"0001"), ScalarMachine.InvalidProgram.selector);
    }

    function test_input_that_the_node_does_not_have() public {
        _refuse(_node(hex"0000", 0, hex"0001"), OneStep.InvalidInput.selector);
        _refuse(_node(hex"0400", 0, hex"0001"), OneStep.InvalidInput.selector);
        _refuse(_node(hex"0101", 0, hex"0001"), OneStep.InvalidInput.selector);
        _refuse(_node(hex"0200", 0, hex"0001"), OneStep.InvalidInput.selector);
        _refuse(_node(hex"0304", 0, hex"0001"), OneStep.InvalidInput.selector);
    }

    function test_map_has_no_accumulator() public {
        bytes memory descriptor =
            abi.encodePacked(hex"01", hex"0100", hex"00", uint32(0), hex"00", hex"010100", hex"010001", hex"31000000");
        _refuse(descriptor, OneStep.InvalidInput.selector);
    }

    /// @dev A scalar map that reads word 0 of a tensor, through what `gather` says.
    function _reader(uint8 source, uint32 index, bytes memory gather) private pure returns (bytes memory) {
        bytes memory plain =
            abi.encodePacked(source, index, _type(2, 1), uint32(7), int64(0), int64(0), uint8(0), uint8(0));
        bytes memory through =
            abi.encodePacked(uint8(1), uint32(2), _type(2, 1), uint32(9), int64(0), int64(0), uint8(0), gather);
        return abi.encodePacked(
            hex"01", hex"0200", hex"00", uint32(0), hex"02", plain, through, hex"010201", hex"010001", hex"31000000"
        );
    }

    function test_later_node_is_not_read() public {
        openings.push(_openOutput(FIRST_STEP, 4, 0));
        bytes memory descriptor = _reader(3, 2, hex"0100" hex"0000000000000001" hex"0000000000000001");
        _refuse(descriptor, OneStep.InvalidOperand.selector);
    }

    function test_gather_through_itself_or_a_later_operand() public {
        _refuse(_reader(1, 2, hex"0101" hex"0000000000000001" hex"0000000000000001"), OneStep.InvalidOperand.selector);
        _refuse(_reader(1, 2, hex"0102" hex"0000000000000001" hex"0000000000000001"), OneStep.InvalidOperand.selector);
    }

    /// @dev The counter is 40: at or past the limit, the index has been opened, the word behind it has not.
    function test_gather_limit() public {
        openings.push(_openState(FIRST_STEP, 2, 0));
        Outcome memory o = _run(_reader(1, 2, abi.encodePacked(hex"0100", int64(0), int64(40))), 0, 0);
        vm.assertEq(uint256(o.computed), 9);
        openings.push(_openState(FIRST_STEP, 2, 0));
        o = _run(_reader(1, 2, abi.encodePacked(hex"0100", int64(0), int64(41))), 0, 0);
        vm.assertEq(uint256(o.computed), 40);
    }

    function test_gather_of_a_negative_index_is_filled() public {
        states[FIRST_STEP][2][0] = 0xffffffff;
        openings.push(_openState(FIRST_STEP, 2, 0));
        Outcome memory o = _run(_reader(1, 2, abi.encodePacked(hex"0100", int64(0), int64(41))), 0, 0);
        vm.assertEq(uint256(o.computed), 9);
    }

    /// @dev `a + a`: one register, one opening.
    function test_equal_registers_are_read_once() public {
        bytes memory descriptor = _reader(1, 2, hex"00");
        descriptor[descriptor.length - 4] = 0x20;
        openings.push(_openState(FIRST_STEP, 2, 0));
        vm.assertEq(uint256(_run(descriptor, 0, 0).computed), 80);
        openings.push(_openState(FIRST_STEP, 2, 0));
        _refuse(descriptor, OneStep.WrongNumberOfOpenings.selector);
    }

    /// @dev fma(a, b, c) of two inputs, the accumulator 2.0 and the step (as a word, a tiny number): which register goes where shows.
    function test_equal_registers_get_equal_words() public view {
        uint32 two = 0x40000000;
        uint8[3][5] memory registers = [[0, 0, 1], [0, 1, 0], [1, 0, 0], [0, 0, 0], [0, 1, 1]];
        for (uint256 i = 0; i < 5; i++) {
            bytes memory descriptor = _node(hex"01000300", 0, hex"0001");
            uint256 last = descriptor.length - 4;
            descriptor[last] = 0x05;
            uint32[3] memory expected;
            for (uint256 j = 0; j < 3; j++) {
                descriptor[last + 1 + j] = bytes1(registers[i][j]);
                expected[j] = registers[i][j] == 0 ? two : uint32(FIRST_STEP);
            }
            Position memory p = _position(descriptor, 0, 0);
            p.agreed = bytes32(uint256(two));
            Outcome memory o = oneStep.execute(p, 0, descriptor, "", openings);
            vm.assertEq(uint256(o.a), expected[0]);
            vm.assertEq(uint256(o.b), expected[1]);
            vm.assertEq(uint256(o.c), expected[2]);
        }
    }

    /// @dev The state's root where the trace is meant, and everything else fits: the domain keeps the lists apart.
    function test_state_is_no_trace() public {
        bytes memory descriptor = _reader(3, 2, abi.encodePacked(hex"0100", int64(0), int64(41)));
        openings.push(_openState(FIRST_STEP, 2, 0));
        Position memory p = _position(descriptor, 0, 0);
        p.node = 5;
        p.trace = p.pre;
        vm.expectRevert(Openings.WrongInclusionProof.selector);
        oneStep.execute(p, 0, descriptor, "", openings);
    }
}
