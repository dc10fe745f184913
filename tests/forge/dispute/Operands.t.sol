// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {MerkleBranch} from "../../../contracts/commitments/MerkleBranch.sol";
import {Operands} from "../../../contracts/dispute/Operands.sol";
import {InstructionBase} from "./InstructionBase.sol";
import {NaiveTree, Openings, PackedReader, Picked} from "./StepBase.sol";

/// @notice Maps: from where the words that an instruction reads are taken, and which openings prove them.
contract OperandsTest is InstructionBase {
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

    // --- tensors ---

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
        _refuseRead(_reader(1, 2, hex"00"), opening, PackedReader.MissingBytes.selector);
        opening[3] = 0x02;
        _refuseRead(_reader(1, 2, hex"00"), opening, MerkleBranch.IndexOutOfRange.selector);
        opening[0] = 0xff;
        _refuseRead(_reader(1, 2, hex"00"), opening, PackedReader.MissingBytes.selector);
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

    /// @dev `a + a`: one register, one opening; two registers of one operand are opened twice.
    function test_equal_registers_are_read_once() public {
        bytes memory plain = abi.encodePacked(uint8(1), _operand(1, 2, 1, 0, new int64[](1), hex"00", hex"00"));
        bytes memory twice = abi.encodePacked(_open(1, 2, 0), _open(1, 2, 0));
        bytes memory sameRegister = _describe(hex"00", hex"00", 0, plain, hex"0200", hex"000120000000");
        vm.assertEq(_read(sameRegister, _open(1, 2, 0)), 80);
        _refuseRead(sameRegister, twice, PackedReader.LeftOver.selector);
        bytes memory sameOperand = _describe(hex"00", hex"00", 0, plain, hex"02000200", hex"000120000100");
        vm.assertEq(_read(sameOperand, twice), 80);
        _refuseRead(sameOperand, _open(1, 2, 0), PackedReader.MissingBytes.selector);
    }

    // --- earlier nodes ---

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

    /// @dev Node 28 stands below the same child as the disputed one twice: a branch to a higher root is of a disputed
    /// version.
    function test_branch_to_a_disputed_root() public {
        _refuseRead(_reader(3, 28, hex"00"), _openNode(28, 0, 6), Openings.WrongInclusionProof.selector);
        _refuseRead(_reader(3, 28, hex"00"), _openNode(28, 1, 4), Openings.WrongInclusionProof.selector);
        _refuseRead(_reader(3, 28, hex"00"), _openNode(28, 2, 1), PackedReader.MissingBytes.selector);
        _refuseRead(_reader(3, 28, hex"00"), _openNode(28, 2, 3), PackedReader.LeftOver.selector);
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

    /// @dev The highest root that is shown does not hold the node: only the frame of a walk says that one holds them
    /// all.
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

    // --- gathers ---

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

    /// @dev The counter is 40, and word 40 of slot 0 is 41.0: at or past the limit the index has been opened, the word
    /// has not.
    function test_gather() public {
        bytes memory index = _open(1, 2, 0);
        bytes memory both = abi.encodePacked(index, _open(1, 0, 0));
        bytes memory reader = _reader(1, 0, abi.encodePacked(hex"0100", int64(1), int64(41)));
        vm.assertEq(_read(reader, both), _float(41));
        _refuseRead(reader, abi.encodePacked(_open(1, 0, 0), index), Openings.WrongInclusionProof.selector);
        _refuseRead(reader, index, PackedReader.MissingBytes.selector);
        reader = _reader(1, 0, abi.encodePacked(hex"0100", int64(1), int64(40)));
        vm.assertEq(_read(reader, index), 9);
        _refuseRead(reader, both, PackedReader.LeftOver.selector);
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

    // --- bounds ---

    function _map(bytes memory operand) private pure returns (bytes memory) {
        bytes memory operands = abi.encodePacked(uint8(1), operand);
        return _describe(hex"010000012c", hex"00", 0, operands, hex"0200", hex"000131000000");
    }

    function _element(bytes memory descriptor, uint64 element, bytes memory openings) private view returns (uint256) {
        (Facts memory f, Picked memory p) = _ofWord(descriptor, element);
        return oneStep.execute(p, "", _rest(f, LEAF, openings)).computed;
    }

    /// @dev A map over 300 elements that reads slot 0 (200 words) two places back, from element 3 up to below element
    /// 100.
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
        vm.expectPartialRevert(PackedReader.LeftOver.selector);
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
}
