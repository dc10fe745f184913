// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ScalarMachine} from "../../../contracts/arithmetic/ScalarMachine.sol";
import {IOneStep, Outcome, Picked} from "../../../contracts/dispute/IOneStep.sol";
import {Operands} from "../../../contracts/dispute/Operands.sol";
import {InstructionBase} from "./InstructionBase.sol";

/// @notice Folds: how the registers of an instruction are resolved, and what of a body that nobody should have accepted
/// is refused.
contract InstructionsTest is InstructionBase {
    function _run(bytes memory descriptor, uint64 element, uint64 term) private view returns (Outcome memory) {
        (Facts memory f, Picked memory p) = _ofTerm(descriptor, element, term, 0);
        return oneStep.execute(p, "", _rest(f, TERMS, ""));
    }

    function _refuse(bytes memory descriptor, bytes4 selector) private {
        (Facts memory f, Picked memory p) = _ofTerm(descriptor, 0, 0, 0);
        vm.expectPartialRevert(selector);
        oneStep.execute(p, "", _rest(f, TERMS, ""));
    }

    // --- registers ---

    function test_coordinates_are_row_major() public view {
        for (uint32 element = 0; element < 6; element++) {
            uint32[4] memory expected = [uint32(STEP), element / 3, element % 3, 3];
            for (uint8 i = 0; i < 4; i++) {
                Outcome memory o = _run(_mover(abi.encodePacked(uint8(3), i), 0, hex"0001"), element, 3);
                vm.assertEq(uint256(o.op), ScalarMachine.MOV);
                vm.assertEq(uint256(o.a), expected[i]);
                vm.assertEq(uint256(o.computed), expected[i]);
            }
        }
    }

    function testFuzz_coordinates(uint64 element, uint64 term, uint64 step) public view {
        element = uint64(bound(element, 0, 5));
        term = uint64(bound(term, 0, 3));
        bytes memory descriptor = _mover(hex"0300030103020303", 0, hex"0001");
        uint32[4] memory expected = [uint32(step), uint32(element / 3), uint32(element % 3), uint32(term)];
        for (uint8 i = 0; i < 4; i++) {
            descriptor[descriptor.length - 3] = bytes1(i);
            (Facts memory f, Picked memory p) = _ofTerm(descriptor, element, term, 0);
            f.step = step;
            p.frame = _frame(f, TERMS, 4, 0, 1);
            vm.assertEq(uint256(oneStep.execute(p, "", _rest(f, TERMS, "")).a), expected[i]);
        }
    }

    function test_accumulator_and_constant() public view {
        (Facts memory f, Picked memory p) = _ofTerm(_mover(hex"0100", 0, hex"0001"), 0, 0, 0xdeadbeef);
        p.claimed = 0x01020304;
        Outcome memory o = oneStep.execute(p, "", _rest(f, TERMS, ""));
        vm.assertEq(uint256(o.computed), 0xdeadbeef);
        vm.assertEq(uint256(o.claimed), 0x01020304);
        o = _run(_mover(hex"0100", 1, hex"010112345678"), 0, 0);
        vm.assertEq(uint256(o.computed), 0x12345678);
        for (uint8 i = 0; i < 3; i++) {
            o = _run(_mover(hex"0100", 1 + i, hex"0301123456788765432100000003"), 0, 0);
            vm.assertEq(uint256(o.computed), [uint256(0x12345678), 0x87654321, 3][i]);
        }
    }

    /// @dev Operands that an instruction does not have are zero; register 0, which stands in their place, is not read.
    function test_operands_that_an_instruction_does_not_have() public view {
        bytes memory descriptor = _mover(hex"030003010302", 2, hex"0001");
        Outcome memory o = _run(descriptor, 5, 0);
        vm.assertEq(uint256(o.a), 2);
        vm.assertEq(uint256(o.b) + o.c, 0);
        descriptor[descriptor.length - 4] = bytes1(ScalarMachine.ADD);
        descriptor[descriptor.length - 2] = 0x01;
        o = _run(descriptor, 5, 0);
        vm.assertEq(uint256(o.a), 2);
        vm.assertEq(uint256(o.b), 1);
        vm.assertEq(uint256(o.c), 0);
        vm.assertEq(uint256(o.computed), 3);
    }

    /// @dev A fold of one term is proved from the word: what it adds to is the descriptor's initial accumulator.
    function test_fold_of_one_term_starts_at_init() public view {
        Facts memory f = _facts(_describe(hex"00", hex"0100000001", 0xcafe, hex"00", hex"0100", hex"000131000000"));
        Picked memory p = Picked(LEAF, 0, 0, 0, 0x1234, 0, _frame(f, LEAF, 1, 0xcafe, 1));
        vm.assertEq(uint256(oneStep.execute(p, "", _rest(f, LEAF, "")).computed), 0xcafe);
    }

    function test_unknown_instruction() public {
        uint8[7] memory codes = [0x00, 0x0f, 0x19, 0x1f, 0x2d, 0x32, 0xff];
        for (uint256 i = 0; i < codes.length; i++) {
            bytes memory descriptor = _mover(hex"0100", 0, hex"0001");
            descriptor[descriptor.length - 4] = bytes1(codes[i]);
            _refuse(descriptor, ScalarMachine.InvalidInstruction.selector);
        }
    }

    function test_unused_operand_that_is_not_zero() public {
        bytes memory descriptor = _mover(hex"0100", 0, hex"0001");
        descriptor[descriptor.length - 1] = 0x01;
        _refuse(descriptor, ScalarMachine.InvalidProgram.selector);
    }

    function test_register_that_is_not_yet_defined() public {
        _refuse(_mover(hex"0100", 1, hex"0001"), ScalarMachine.InvalidProgram.selector);
    }

    function test_input_that_the_node_does_not_have() public {
        _refuse(_mover(hex"0000", 0, hex"0001"), IOneStep.InvalidInput.selector);
        _refuse(_mover(hex"0400", 0, hex"0001"), IOneStep.InvalidInput.selector);
        _refuse(_mover(hex"0101", 0, hex"0001"), IOneStep.InvalidInput.selector);
        _refuse(_mover(hex"0200", 0, hex"0001"), IOneStep.InvalidInput.selector);
        _refuse(_mover(hex"0304", 0, hex"0001"), IOneStep.InvalidInput.selector);
    }

    function test_map_has_no_accumulator() public {
        (Facts memory f, Picked memory p) =
            _ofWord(_describe(hex"00", hex"00", 0, hex"00", hex"0100", hex"000131000000"), 0);
        vm.expectPartialRevert(IOneStep.InvalidInput.selector);
        oneStep.execute(p, "", _rest(f, LEAF, ""));
    }

    /// @dev fma(a, b, c) of two inputs, the accumulator 2.0 and the step (as a word, a tiny number): which register
    /// goes where shows.
    function test_equal_registers_get_equal_words() public view {
        uint32 two = 0x40000000;
        uint8[3][5] memory registers = [[0, 0, 1], [0, 1, 0], [1, 0, 0], [0, 0, 0], [0, 1, 1]];
        for (uint256 i = 0; i < 5; i++) {
            bytes memory descriptor = _mover(hex"01000300", 0, hex"0001");
            uint256 last = descriptor.length - 4;
            descriptor[last] = 0x05;
            uint32[3] memory expected;
            for (uint256 j = 0; j < 3; j++) {
                descriptor[last + 1 + j] = bytes1(registers[i][j]);
                expected[j] = registers[i][j] == 0 ? two : uint32(STEP);
            }
            (Facts memory f, Picked memory p) = _ofTerm(descriptor, 0, 0, two);
            Outcome memory o = oneStep.execute(p, "", _rest(f, TERMS, ""));
            vm.assertEq(uint256(o.a), expected[0]);
            vm.assertEq(uint256(o.b), expected[1]);
            vm.assertEq(uint256(o.c), expected[2]);
        }
    }

    // --- bodies ---

    function test_body() public view {
        bytes memory values = abi.encodePacked(uint32(107), uint32(215), uint32(0xff));
        uint32[3] memory computed = [uint32(107), 214, 107 ^ 215];
        for (uint8 i = 0; i < 3; i++) {
            (Facts memory f, Picked memory p) = _ofBody(i, values);
            Outcome memory o = oneStep.execute(p, values, _rest(f, BODY, ""));
            vm.assertEq(uint256(o.computed), computed[i]);
            vm.assertEq(uint256(o.claimed), i == 0 ? 107 : i == 1 ? 215 : 0xff);
        }
    }

    function test_body_wants_as_many_values_as_instructions() public {
        bytes memory values = abi.encodePacked(uint32(107), uint32(215), uint32(0xff));
        (Facts memory f, Picked memory p) = _ofBody(0, values);
        vm.expectRevert(IOneStep.WrongValues.selector);
        oneStep.execute(p, "", _rest(f, BODY, ""));
        vm.expectRevert(IOneStep.WrongValues.selector);
        oneStep.execute(p, abi.encodePacked(values, uint8(0)), _rest(f, BODY, ""));
        p.index = 3;
        vm.expectRevert();
        oneStep.execute(p, values, _rest(f, BODY, ""));
    }

    /// @dev A longer body is opened before it is proved.
    function test_long_body_is_not_proved_from_a_term_or_a_word() public {
        (Facts memory f, Picked memory p) = _ofBody(0, new bytes(12));
        p.level = TERMS;
        (p.lo, p.hi, p.frame) = (2, 3, _frame(f, TERMS, 4, 5, 3));
        vm.expectPartialRevert(IOneStep.NotProvable.selector);
        oneStep.execute(p, "", _rest(f, TERMS, ""));
        p.level = LEAF;
        p.frame = _frame(f, LEAF, 4, 5, 3);
        vm.expectPartialRevert(IOneStep.NotProvable.selector);
        oneStep.execute(p, "", _rest(f, LEAF, ""));
    }

    function test_values_belong_to_bodies() public {
        (Facts memory f, Picked memory p) = _ofTerm(_mover(hex"0100", 0, hex"0001"), 0, 0, 0);
        vm.expectRevert(IOneStep.WrongValues.selector);
        oneStep.execute(p, hex"00000000", _rest(f, TERMS, ""));
    }
}
