// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ScalarMachine} from "../../../contracts/arithmetic/ScalarMachine.sol";
import {MerkleBranch} from "../../../contracts/commitments/MerkleBranch.sol";
import {Descriptor} from "../../../contracts/dispute/Descriptor.sol";
import {IOneStep, Outcome, Picked} from "../../../contracts/dispute/IOneStep.sol";
import {Openings} from "../../../contracts/dispute/Opening.sol";
import {Operands} from "../../../contracts/dispute/Operands.sol";
import {Reader} from "../../../contracts/dispute/Reader.sol";
import {NaiveTree} from "../commitments/NaiveTree.sol";
import {StepBase} from "./StepBase.sol";

/// @notice One instruction: how registers are resolved, which facts and openings are taken, and what of a program that nobody
/// should have accepted is refused.
contract OneStepTest is StepBase {
    /// @dev A node of shape [2, 3], folded over [4], without operands; inputs are `kinds`, the body is one MOV of `register`.
    function _mover(bytes memory kinds, uint8 register, bytes memory more) private pure returns (bytes memory) {
        bytes memory body = abi.encodePacked(more, hex"31", register, hex"0000");
        return _describe(hex"020000000200000003", hex"0100000004", 0, hex"00", kinds, body);
    }

    /// @dev One term of an element, of a fold over 4 whose body is one instruction.
    function _ofTerm(bytes memory descriptor, uint64 element, uint64 term, uint32 agreed)
        private
        view
        returns (Facts memory f, Picked memory p)
    {
        f = _facts(descriptor);
        f.element = element;
        p = Picked(TERMS, 0, term, term + 1, agreed, 0, _frame(f, TERMS, 4, 0, 1));
    }

    /// @dev The picked word of a map whose body is one instruction.
    function _ofWord(bytes memory descriptor, uint64 element) private view returns (Facts memory f, Picked memory p) {
        f = _withRoots(_facts(descriptor));
        p = Picked(LEAF, 0, element, 0, 0, 0, _frame(f, LEAF, 1, 0, 1));
    }

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

    /// @dev fma(a, b, c) of two inputs, the accumulator 2.0 and the step (as a word, a tiny number): which register goes where shows.
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

    /// @dev Three instructions of a fold over 4: acc + 7, that twice, and their exclusive or.
    function _ofBody(uint8 index, bytes memory values) private view returns (Facts memory f, Picked memory p) {
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

    function test_other_levels() public {
        (Facts memory f, Picked memory p) = _ofTerm(_mover(hex"0100", 0, hex"0001"), 0, 0, 0);
        for (uint8 level = 0; level < 12; level++) {
            if (level == LEAF || level == TERMS || level == BODY) continue;
            p.level = level;
            vm.expectPartialRevert(IOneStep.NotProvable.selector);
            oneStep.execute(p, "", _rest(f, TERMS, ""));
        }
    }

    // --- facts ---

    function test_each_fact_is_bound() public {
        bytes memory values = abi.encodePacked(uint32(107), uint32(215), uint32(0xff));
        (Facts memory f, Picked memory p) = _ofBody(0, values);
        f = _withRoots(f);
        p.frame = _frame(f, BODY, 4, 5, 3);
        bytes memory rest = _rest(f, BODY, "");
        oneStep.execute(p, values, rest);
        // From the program's hash to the node's index: any bit of any byte, but for the flag and the count of roots.
        uint256 count = 1 + 4 * 32 + 8;
        for (uint256 i = 1; i < count + 1 + 3 * 33 + 4; i++) {
            if (i == count) continue;
            rest[i] ^= 0x10;
            vm.expectPartialRevert(IOneStep.WrongFacts.selector);
            oneStep.execute(p, values, rest);
            rest[i] ^= 0x10;
        }
        // Element, term and accumulator.
        for (uint256 i = rest.length - 20; i < rest.length; i++) {
            rest[i] ^= 0x10;
            vm.expectPartialRevert(IOneStep.WrongFacts.selector);
            oneStep.execute(p, values, rest);
            rest[i] ^= 0x10;
        }
        // The last byte of the descriptor, which the machine looks at later.
        rest[rest.length - 21] ^= 0x10;
        vm.expectPartialRevert(IOneStep.WrongFacts.selector);
        oneStep.execute(p, values, rest);
    }

    function test_frame_of_another_level() public {
        (Facts memory f, Picked memory p) = _ofTerm(_mover(hex"0100", 0, hex"0001"), 0, 0, 0);
        p.frame = _frame(f, LEAF, 4, 0, 1);
        vm.expectPartialRevert(IOneStep.WrongFacts.selector);
        oneStep.execute(p, "", _rest(f, TERMS, ""));
    }

    /// @dev The frame is one of another length of fold, start or body: what a descriptor says is computed, not shown.
    function test_outline_is_computed() public {
        (Facts memory f, Picked memory p) = _ofTerm(_mover(hex"0100", 0, hex"0001"), 0, 0, 0);
        bytes32[3] memory frames = [_frame(f, TERMS, 5, 0, 1), _frame(f, TERMS, 4, 1, 1), _frame(f, TERMS, 4, 0, 2)];
        for (uint256 i = 0; i < 3; i++) {
            p.frame = frames[i];
            vm.expectPartialRevert(IOneStep.WrongFacts.selector);
            oneStep.execute(p, "", _rest(f, TERMS, ""));
        }
    }

    function test_one_root_more_or_less() public {
        (Facts memory f, Picked memory p) = _ofTerm(_mover(hex"0100", 0, hex"0001"), 0, 0, 0);
        f = _withRoots(f);
        p.frame = _frame(f, TERMS, 4, 0, 1);
        oneStep.execute(p, "", _rest(f, TERMS, ""));
        (bytes32[] memory roots, uint8[] memory lower) = (new bytes32[](2), new uint8[](2));
        (roots[0], roots[1], lower[0], lower[1]) = (f.roots[0], f.roots[1], f.heights[0], f.heights[1]);
        (f.roots, f.heights) = (roots, lower);
        vm.expectPartialRevert(IOneStep.WrongFacts.selector);
        oneStep.execute(p, "", _rest(f, TERMS, ""));
    }

    /// @dev Every shorter proof, and a longer one; the errors say by how many bytes.
    function test_length_is_exact() public {
        (Facts memory f, Picked memory p) = _ofWord(_reader(3, 28, hex"00"), 0);
        bytes memory rest = _rest(f, LEAF, _openNode(28, 2, 2));
        oneStep.execute(p, "", rest);
        uint256 length = rest.length;
        bytes memory longer = abi.encodePacked(rest, uint24(0));
        vm.expectRevert(abi.encodeWithSelector(Reader.LeftOver.selector, 3));
        oneStep.execute(p, "", longer);
        assembly ("memory-safe") {
            mstore(rest, sub(length, 2))
        }
        vm.expectRevert(abi.encodeWithSelector(Reader.MissingBytes.selector, 2));
        oneStep.execute(p, "", rest);
        for (uint256 i = 0; i < length; i += 1 + i / 64) {
            assembly ("memory-safe") {
                mstore(rest, i)
            }
            vm.expectPartialRevert(Reader.MissingBytes.selector);
            oneStep.execute(p, "", rest);
        }
    }

    function test_flag_is_zero_or_one() public {
        (Facts memory f, Picked memory p) = _ofTerm(_mover(hex"0100", 0, hex"0001"), 0, 0, 0);
        bytes memory rest = _rest(f, TERMS, "");
        rest[0] = 0x02;
        vm.expectPartialRevert(IOneStep.InvalidFlag.selector);
        oneStep.execute(p, "", rest);
    }

    // --- operands ---

    /// @dev A scalar map that reads word 1 of a tensor of two words (of slot 2 word 0), through what `gather` says.
    function _reader(uint8 source, uint32 index, bytes memory gather) private view returns (bytes memory) {
        uint256 size = source == 3 ? 2 : source == 1 ? state[index].length : constants[index].length;
        int64 base = size == 1 || gather.length > 1 ? int64(0) : int64(1);
        bytes memory plain = _operand(1, 2, 1, 0, new int64[](1), hex"00", hex"00");
        bytes memory through = _operand(source, index, size, base, new int64[](1), hex"00", gather);
        return _describe(hex"00", hex"00", 0, abi.encodePacked(uint8(2), plain, through), hex"0201", hex"000131000000");
    }

    function _read(bytes memory descriptor, bytes memory openings) private view returns (uint256) {
        (Facts memory f, Picked memory p) = _ofWord(descriptor, 0);
        return oneStep.execute(p, "", _rest(f, LEAF, openings)).computed;
    }

    function _refuseRead(bytes memory descriptor, bytes memory openings, bytes4 selector) private {
        (Facts memory f, Picked memory p) = _ofWord(descriptor, 0);
        bytes memory rest = _rest(f, LEAF, openings);
        vm.expectPartialRevert(selector);
        oneStep.execute(p, "", rest);
    }

    function test_state_and_constants() public view {
        vm.assertEq(_read(_reader(1, 0, hex"00"), _open(1, 0, 0)), _float(2));
        vm.assertEq(_read(_reader(1, 1, hex"00"), _open(1, 1, 0)), _float(1001));
        vm.assertEq(_read(_reader(2, 0, hex"00"), _open(2, 0, 0)), _float(501));
        vm.assertEq(_read(_reader(2, 1, hex"00"), _open(2, 1, 0)), 5);
    }

    /// @dev Constants that are not shown are not read; nothing else needs them.
    function test_constants_may_be_left_out() public {
        (Facts memory f, Picked memory p) = _ofWord(_reader(1, 0, hex"00"), 0);
        f.hasConstants = false;
        vm.assertEq(uint256(oneStep.execute(p, "", _rest(f, LEAF, _open(1, 0, 0))).computed), _float(2));
        (f, p) = _ofWord(_reader(2, 0, hex"00"), 0);
        f.hasConstants = false;
        bytes memory rest = _rest(f, LEAF, _open(2, 0, 0));
        vm.expectRevert(Openings.WrongInclusionProof.selector);
        oneStep.execute(p, "", rest);
    }

    function test_each_byte_of_an_opening_counts() public {
        bytes memory opening = _open(1, 0, 0);
        for (uint256 i = 4; i < opening.length; i += 13) {
            opening[i] ^= 0x01;
            _refuseRead(_reader(1, 0, hex"00"), opening, Openings.WrongInclusionProof.selector);
            opening[i] ^= 0x01;
        }
    }

    /// @dev A list of another size, as deep and deeper, and one too small for the slot.
    function test_list_of_another_size() public {
        bytes memory opening = _open(1, 2, 0);
        opening[3] = 0x04;
        _refuseRead(_reader(1, 2, hex"00"), opening, Openings.WrongInclusionProof.selector);
        opening[3] = 0x05;
        _refuseRead(_reader(1, 2, hex"00"), opening, Reader.MissingBytes.selector);
        opening[3] = 0x02;
        _refuseRead(_reader(1, 2, hex"00"), opening, MerkleBranch.IndexOutOfRange.selector);
        opening[0] = 0xff;
        _refuseRead(_reader(1, 2, hex"00"), opening, Reader.MissingBytes.selector);
    }

    /// @dev The constants' root where the state is meant, and everything else fits: the domain keeps the lists apart.
    function test_constants_are_no_state() public {
        (Facts memory f, Picked memory p) = _ofWord(_reader(1, 2, hex"00"), 0);
        f.pre = NaiveTree.listRoot(CONSTANTS_TAG, _tensorRoots(1));
        p.frame = _frame(f, LEAF, 1, 0, 1);
        bytes memory rest = _rest(f, LEAF, _open(1, 2, 0));
        vm.expectRevert(Openings.WrongInclusionProof.selector);
        oneStep.execute(p, "", rest);
    }

    /// @dev Each earlier node is read from the version that both sides agree on, and no other one leads to a root.
    function test_every_earlier_node() public {
        for (uint32 m = 0; m < NODE; m++) {
            // In which subtree, from the top, the two are not below the same child any more.
            uint256 agreed = 0;
            while (agreed < 2 && m >> heights[agreed + 1] == NODE >> heights[agreed + 1]) agreed++;
            for (uint256 version = 0; version < 3; version++) {
                bytes memory opening = _openNode(m, version, heights[agreed]);
                if (version == agreed) {
                    vm.assertEq(_read(_reader(3, m, hex"00"), opening), _float(10 * m + 1000 * (version + 1) + 1));
                } else {
                    _refuseRead(_reader(3, m, hex"00"), opening, Openings.WrongInclusionProof.selector);
                }
            }
        }
    }

    /// @dev Numbers of nodes are not negative from 2^31 on.
    function test_node_of_a_large_number() public view {
        (Facts memory f, Picked memory p) = _ofWord(_reader(3, 2 ** 31 + 28, hex"00"), 0);
        f.node += 2 ** 31;
        p.frame = _frame(f, LEAF, 1, 0, 1);
        bytes memory rest = _rest(f, LEAF, _openNode(28, 2, 2));
        vm.assertEq(uint256(oneStep.execute(p, "", rest).computed), _float(10 * 28 + 3000 + 1));
    }

    /// @dev Node 28 stands below the same child as the disputed one twice: a branch to a higher root is of a disputed version.
    function test_branch_to_a_disputed_root() public {
        _refuseRead(_reader(3, 28, hex"00"), _openNode(28, 0, 6), Openings.WrongInclusionProof.selector);
        _refuseRead(_reader(3, 28, hex"00"), _openNode(28, 1, 4), Openings.WrongInclusionProof.selector);
        _refuseRead(_reader(3, 28, hex"00"), _openNode(28, 2, 1), Reader.MissingBytes.selector);
        _refuseRead(_reader(3, 28, hex"00"), _openNode(28, 2, 3), Reader.LeftOver.selector);
    }

    function test_node_that_is_not_earlier() public {
        for (uint32 m = NODE; m < NODES; m++) {
            for (uint256 version = 0; version < 3; version++) {
                _refuseRead(
                    _reader(3, m, hex"00"), _openNode(m, version, heights[version]), Operands.InvalidOperand.selector
                );
            }
        }
    }

    /// @dev The highest root that is shown does not hold the node: only the frame of a walk says that one holds them all.
    function test_node_below_none_of_the_roots() public {
        (Facts memory f, Picked memory p) = _ofWord(_reader(3, 0, hex"00"), 0);
        f.roots[0] = f.roots[1];
        f.heights[0] = f.heights[1];
        p.frame = _frame(f, LEAF, 1, 0, 1);
        bytes memory rest = _rest(f, LEAF, _openNode(0, 0, 6));
        vm.expectRevert(abi.encodeWithSelector(Operands.InvalidOperand.selector, 0));
        oneStep.execute(p, "", rest);
    }

    /// @dev Nor is anything before the roots one: their count stands there, as a height from which both would be below.
    function test_node_below_none_of_low_roots() public {
        (Facts memory f, Picked memory p) = _ofWord(_reader(3, 27, hex"00"), 0);
        for (uint256 i = 0; i < 2; i++) {
            (f.roots[i], f.heights[i]) = (f.roots[2], f.heights[2]);
        }
        p.frame = _frame(f, LEAF, 1, 0, 1);
        bytes memory rest = _rest(f, LEAF, _openNode(27, 2, 3));
        vm.expectRevert(abi.encodeWithSelector(Operands.InvalidOperand.selector, 27));
        oneStep.execute(p, "", rest);
    }

    function test_gather_through_itself_or_a_later_operand() public {
        bytes memory limits = abi.encodePacked(int64(1), int64(1));
        _refuseRead(_reader(1, 2, abi.encodePacked(hex"0101", limits)), "", Operands.InvalidOperand.selector);
        _refuseRead(_reader(1, 2, abi.encodePacked(hex"0102", limits)), "", Operands.InvalidOperand.selector);
    }

    /// @dev Operand 2 gathers through operand 1, which gathers itself.
    function test_gather_through_one_that_gathers() public {
        bytes memory limits = abi.encodePacked(int64(1), int64(1));
        bytes memory plain = _operand(1, 2, 1, 0, new int64[](1), hex"00", hex"00");
        bytes memory first = _operand(1, 2, 1, 0, new int64[](1), hex"00", abi.encodePacked(hex"0100", limits));
        bytes memory second = _operand(1, 2, 1, 0, new int64[](1), hex"00", abi.encodePacked(hex"0101", limits));
        bytes memory operands = abi.encodePacked(uint8(3), plain, first, second);
        _refuseRead(
            _describe(hex"00", hex"00", 0, operands, hex"0202", hex"000131000000"), "", Operands.InvalidOperand.selector
        );
    }

    /// @dev The counter is 40, and word 40 of slot 0 is 41.0: at or past the limit the index has been opened, the word has not.
    function test_gather() public {
        bytes memory index = _open(1, 2, 0);
        bytes memory both = abi.encodePacked(index, _open(1, 0, 0));
        bytes memory reader = _reader(1, 0, abi.encodePacked(hex"0100", int64(1), int64(41)));
        vm.assertEq(_read(reader, both), _float(41));
        _refuseRead(reader, abi.encodePacked(_open(1, 0, 0), index), Openings.WrongInclusionProof.selector);
        _refuseRead(reader, index, Reader.MissingBytes.selector);
        reader = _reader(1, 0, abi.encodePacked(hex"0100", int64(1), int64(40)));
        vm.assertEq(_read(reader, index), 9);
        _refuseRead(reader, both, Reader.LeftOver.selector);
        // 3 * 40 stands in the second leaf; 5 * 40 past the end of the tensor.
        reader = _reader(1, 0, abi.encodePacked(hex"0100", int64(3), int64(41)));
        vm.assertEq(_read(reader, abi.encodePacked(index, _open(1, 0, 1))), _float(121));
        reader = _reader(1, 0, abi.encodePacked(hex"0100", int64(5), int64(41)));
        vm.assertEq(_read(reader, index), 9);
    }

    function test_gather_of_index_zero() public {
        state[2][0] = 0;
        _commit();
        bytes memory reader = _reader(1, 0, abi.encodePacked(hex"0100", int64(1), int64(41)));
        vm.assertEq(_read(reader, abi.encodePacked(_open(1, 2, 0), _open(1, 0, 0))), _float(1));
    }

    function test_gather_of_a_negative_index_is_filled() public {
        state[2][0] = 0xffffffff;
        _commit();
        bytes memory reader = _reader(1, 0, abi.encodePacked(hex"0100", int64(1), int64(41)));
        vm.assertEq(_read(reader, _open(1, 2, 0)), 9);
    }

    /// @dev A map over 300 elements that reads slot 0 (200 words) two places back, from element 3 up to below element 100.
    function test_bounds_and_ends_of_the_tensor() public {
        int64[] memory one = new int64[](2);
        one[1] = 1;
        bytes memory bounds = abi.encodePacked(uint8(1), _affine(-3, one), int64(97));
        bytes memory bounded = _map(_operand(1, 0, 200, -2, one, bounds, hex"00"));
        vm.assertEq(_element(bounded, 2, ""), 9);
        vm.assertEq(_element(bounded, 3, _open(1, 0, 0)), _float(2));
        vm.assertEq(_element(bounded, 99, _open(1, 0, 1)), _float(98));
        vm.assertEq(_element(bounded, 100, ""), 9);
        bytes memory free = _map(_operand(1, 0, 200, -2, one, hex"00", hex"00"));
        vm.assertEq(_element(free, 1, ""), 9);
        vm.assertEq(_element(free, 2, _open(1, 0, 0)), _float(1));
        vm.assertEq(_element(free, 201, _open(1, 0, 3)), _float(200));
        vm.assertEq(_element(free, 202, ""), 9);
        // The opening of a word that is not read is left over.
        (Facts memory f, Picked memory p) = _ofWord(free, 202);
        bytes memory rest = _rest(f, LEAF, _open(1, 0, 3));
        vm.expectPartialRevert(Reader.LeftOver.selector);
        oneStep.execute(p, "", rest);
    }

    /// @dev From element 20 on by the first bound, up to element 50 by the second one, which counts down.
    function test_two_bounds() public view {
        (int64[] memory one, int64[] memory down) = (new int64[](2), new int64[](2));
        (one[1], down[1]) = (1, -1);
        bytes memory bounds = abi.encodePacked(uint8(2), _affine(-20, one), int64(97), _affine(50, down), int64(45));
        bytes memory bounded = _map(_operand(1, 0, 200, 0, one, bounds, hex"00"));
        vm.assertEq(_element(bounded, 19, ""), 9);
        vm.assertEq(_element(bounded, 20, _open(1, 0, 0)), _float(21));
        vm.assertEq(_element(bounded, 50, _open(1, 0, 0)), _float(51));
        vm.assertEq(_element(bounded, 51, ""), 9);
    }

    function _map(bytes memory operand) private pure returns (bytes memory) {
        bytes memory operands = abi.encodePacked(uint8(1), operand);
        return _describe(hex"010000012c", hex"00", 0, operands, hex"0200", hex"000131000000");
    }

    function _element(bytes memory descriptor, uint64 element, bytes memory openings) private view returns (uint256) {
        (Facts memory f, Picked memory p) = _ofWord(descriptor, element);
        return oneStep.execute(p, "", _rest(f, LEAF, openings)).computed;
    }

    /// @dev `a + a`: one register, one opening; two registers of one operand are opened twice.
    function test_equal_registers_are_read_once() public {
        bytes memory plain = abi.encodePacked(uint8(1), _operand(1, 2, 1, 0, new int64[](1), hex"00", hex"00"));
        bytes memory twice = abi.encodePacked(_open(1, 2, 0), _open(1, 2, 0));
        bytes memory sameRegister = _describe(hex"00", hex"00", 0, plain, hex"0200", hex"000120000000");
        vm.assertEq(_read(sameRegister, _open(1, 2, 0)), 80);
        _refuseRead(sameRegister, twice, Reader.LeftOver.selector);
        bytes memory sameOperand = _describe(hex"00", hex"00", 0, plain, hex"02000200", hex"000120000100");
        vm.assertEq(_read(sameOperand, twice), 80);
        _refuseRead(sameOperand, _open(1, 2, 0), Reader.MissingBytes.selector);
    }

    /// @dev A descriptor that ends early, at every byte, is read inside of its bytes only.
    function test_descriptor_that_ends_early() public {
        bytes memory whole = _reader(1, 0, hex"00");
        bytes memory opening = _open(1, 0, 0);
        (Facts memory f, Picked memory p) = _ofWord(whole, 0);
        for (uint256 length = 0; length < whole.length; length++) {
            bytes memory cut = new bytes(length);
            for (uint256 i = 0; i < length; i++) {
                cut[i] = whole[i];
            }
            f.descriptor = cut;
            p.frame = _frame(f, LEAF, 1, 0, 1);
            bytes memory rest = _rest(f, LEAF, opening);
            vm.expectRevert();
            oneStep.execute(p, "", rest);
        }
    }

    /// @dev Any descriptor, whatever its bytes: a revert, or a result, in bounded gas.
    function testFuzz_hostile_descriptor(bytes calldata noise, uint256 place, uint8 value) public view {
        bytes memory descriptor = _reader(1, 0, abi.encodePacked(hex"0100", int64(1), int64(41)));
        if (noise.length > 0 && noise.length % 2 == 0) descriptor = noise;
        else descriptor[place % descriptor.length] = bytes1(value);
        (Facts memory f, Picked memory p) = _ofWord(descriptor, 0);
        bytes memory rest = _rest(f, LEAF, abi.encodePacked(_open(1, 2, 0), _open(1, 0, 0)));
        uint256 before = gasleft();
        try oneStep.execute{gas: 1_000_000}(p, "", rest) {} catch {}
        vm.assertLe(before - gasleft(), 500_000);
    }
}
