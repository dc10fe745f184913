// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ScalarMachine} from "../../../contracts/arithmetic/ScalarMachine.sol";
import {Chunk} from "../../../contracts/dispute/Chunk.sol";
import {IOneStep, Outcome, Picked} from "../../../contracts/dispute/IOneStep.sol";
import {Openings, PackedReader, StepBase} from "./StepBase.sol";

/// @notice Several terms of a fold in one proof: which folds and which reads it is for, and that it is what the terms
/// yield one by one.
/// @dev The node has 3 elements and folds over [2, 100]: slot 0 from word `base` on, times slot 1, along the last
/// dimension.
contract ChunkTest is StepBase {
    uint32 private constant INIT = 0x3f800000;
    bytes private constant FMA = hex"000105000102";
    bytes private constant INPUTS = hex"020002010100";

    struct Read {
        int64 base;
        int64 row; // stride of the fold's first dimension
        int64 term; // stride of its last one
        bytes bounds;
        bytes gather;
    }

    function _plain(int64 base) private pure returns (Read memory) {
        return Read(base, 0, 1, hex"00", hex"00");
    }

    function _strides(int64 row, int64 term) private pure returns (int64[] memory strides) {
        strides = new int64[](4);
        (strides[2], strides[3]) = (row, term);
    }

    function _operandOf(uint256 slot, Read memory r) private view returns (bytes memory) {
        return _operand(1, slot, state[slot].length, r.base, _strides(r.row, r.term), r.bounds, r.gather);
    }

    function _folder(Read memory a, Read memory b, bytes memory inputs, bytes memory body)
        private
        view
        returns (bytes memory)
    {
        bytes memory operands = abi.encodePacked(uint8(2), _operandOf(0, a), _operandOf(1, b));
        return _describe(hex"0100000003", hex"020000000200000064", INIT, operands, inputs, body);
    }

    function _product(int64 a, int64 b) private view returns (bytes memory) {
        return _folder(_plain(a), _plain(b), INPUTS, FMA);
    }

    /// @dev The terms `[lo, hi)` of element 1.
    function _terms(bytes memory descriptor, uint64 lo, uint64 hi)
        private
        view
        returns (Facts memory f, Picked memory p)
    {
        f = _facts(descriptor);
        f.element = 1;
        p = Picked(TERMS, 0, lo, hi, INIT + 5, 0x1234, _frame(f, TERMS, 200, INIT, 1));
    }

    function _prove(bytes memory descriptor, uint64 lo, uint64 hi, bytes memory openings)
        private
        view
        returns (uint256)
    {
        (Facts memory f, Picked memory p) = _terms(descriptor, lo, hi);
        Outcome memory o = oneStep.execute(p, "", _rest(f, TERMS, openings));
        vm.assertEq(uint256(o.op) + o.a + o.b + o.c, 0);
        vm.assertEq(uint256(o.claimed), 0x1234);
        return o.computed;
    }

    function _refuse(bytes memory descriptor, uint64 lo, uint64 hi, bytes memory openings, bytes4 selector) private {
        (Facts memory f, Picked memory p) = _terms(descriptor, lo, hi);
        bytes memory rest = _rest(f, TERMS, openings);
        vm.expectPartialRevert(selector);
        oneStep.execute(p, "", rest);
    }

    /// @dev One term after the other.
    function _expected(uint256 a, uint256 b, uint256 terms, uint32 accumulator) private view returns (uint256) {
        for (uint256 i = 0; i < terms; i++) {
            accumulator = ScalarMachine.execute(ScalarMachine.FFMA, state[0][a + i], state[1][b + i], accumulator);
        }
        return accumulator;
    }

    /// @dev The leaves of a slot that hold `[first, first + terms)`.
    function _leaves(uint256 slot, uint256 first, uint256 terms) private view returns (bytes memory) {
        uint256 leaf = first / 64;
        return (first + terms - 1) / 64 == leaf ? _open(1, slot, leaf) : _openTwo(slot, leaf);
    }

    function test_aligned() public view {
        bytes memory openings = abi.encodePacked(_open(1, 0, 1), _open(1, 1, 0));
        vm.assertEq(_prove(_product(64, 0), 0, 64, openings), _expected(64, 0, 64, INIT + 5));
    }

    /// @dev Any length, wherever in the fold and in the two tensors.
    function testFuzz_any_run(uint256 terms, uint256 lo, uint256 a, uint256 b) public view {
        terms = bound(terms, 2, 64);
        lo = bound(lo, 0, 100 - terms);
        a = bound(a, 0, 200 - terms);
        b = bound(b, 0, 130 - terms);
        bytes memory descriptor = _product(int64(uint64(a)) - int64(uint64(lo)), int64(uint64(b)) - int64(uint64(lo)));
        bytes memory openings = abi.encodePacked(_leaves(0, a, terms), _leaves(1, b, terms));
        uint256 computed = _prove(descriptor, uint64(lo), uint64(lo + terms), openings);
        vm.assertEq(computed, _expected(a, b, terms, INIT + 5));
    }

    /// @dev Pairs of leaves that have the same parent, and pairs that do not meet before the root.
    function test_two_leaves() public view {
        for (uint256 leaf = 0; leaf < 3; leaf++) {
            uint256 first = 64 * leaf + (leaf == 2 ? 8 : 40);
            bytes memory openings = abi.encodePacked(_openTwo(0, leaf), _openTwo(1, 0));
            uint256 computed = _prove(_product(int64(uint64(first)), 30), 0, 64, openings);
            vm.assertEq(computed, _expected(first, 30, 64, INIT + 5));
        }
    }

    /// @dev Paths that meet at every height below the root of ten leaves.
    function test_two_leaves_of_a_deep_tree() public {
        state[0] = _floats(640, 1);
        _commit();
        for (uint256 leaf = 0; leaf < 9; leaf++) {
            uint256 first = 64 * leaf + 40;
            bytes memory openings = abi.encodePacked(_openTwo(0, leaf), _openTwo(1, 0));
            uint256 computed = _prove(_product(int64(uint64(first)), 30), 0, 64, openings);
            vm.assertEq(computed, _expected(first, 30, 64, INIT + 5));
        }
    }

    function test_each_byte_of_two_leaves_counts() public {
        bytes memory opening = _openTwo(0, 1);
        bytes memory other = _open(1, 1, 0);
        bytes memory descriptor = _product(100, 0);
        for (uint256 i = 4; i < opening.length; i += 17) {
            opening[i] ^= 0x01;
            _refuse(descriptor, 0, 64, abi.encodePacked(opening, other), Openings.WrongInclusionProof.selector);
            opening[i] ^= 0x01;
        }
        vm.assertEq(_prove(descriptor, 0, 64, abi.encodePacked(opening, other)), _expected(100, 0, 64, INIT + 5));
    }

    /// @dev Another pair than the one that holds the terms, one leaf instead of two, two instead of one, and the
    /// operands exchanged.
    function test_other_leaves() public {
        bytes memory other = _open(1, 1, 0);
        bytes memory pair = abi.encodePacked(_openTwo(0, 0), other);
        _refuse(_product(100, 0), 0, 64, pair, Openings.WrongInclusionProof.selector);
        _refuse(_product(60, 0), 0, 4, pair, Openings.WrongInclusionProof.selector);
        _refuse(_product(60, 0), 0, 64, abi.encodePacked(_open(1, 0, 0), other), Openings.WrongInclusionProof.selector);
        pair = abi.encodePacked(other, _open(1, 0, 0));
        _refuse(_product(0, 0), 0, 64, pair, Openings.WrongInclusionProof.selector);
        pair = abi.encodePacked(_open(1, 0, 0), other, uint8(0));
        _refuse(_product(0, 0), 0, 64, pair, PackedReader.LeftOver.selector);
    }

    function test_second_row() public view {
        bytes memory openings = abi.encodePacked(_open(1, 0, 0), _open(1, 1, 0));
        vm.assertEq(_prove(_product(0, 0), 100, 132, openings), _expected(0, 0, 32, INIT + 5));
    }

    function test_fold_of_one_dimension() public view {
        int64[] memory strides = new int64[](3);
        strides[2] = 1;
        bytes memory operands = abi.encodePacked(
            uint8(2),
            _operand(1, 0, 200, 3, strides, hex"00", hex"00"),
            _operand(1, 1, 130, 5, strides, hex"00", hex"00")
        );
        bytes memory openings = abi.encodePacked(_open(1, 0, 0), _open(1, 1, 0));
        Facts memory f = _facts(_describe(hex"0100000003", hex"0100000029", INIT, operands, INPUTS, FMA));
        Picked memory p = Picked(LEAF, 0, 1, 0, 0, 0, _frame(f, LEAF, 41, INIT, 1));
        vm.assertEq(uint256(oneStep.execute(p, "", _rest(f, LEAF, openings)).computed), _expected(3, 5, 41, INIT));
    }

    function test_rows_are_not_crossed() public {
        bytes memory openings = abi.encodePacked(_open(1, 0, 1), _open(1, 1, 1));
        _refuse(_product(0, 0), 98, 101, openings, Chunk.CrossesRow.selector);
        _refuse(_product(0, 0), 99, 101, openings, Chunk.CrossesRow.selector);
        // Not even where the addresses go on.
        Read memory on = Read(-50, 100, 1, hex"00", hex"00");
        _refuse(_folder(on, on, INPUTS, FMA), 90, 110, openings, Chunk.CrossesRow.selector);
    }

    /// @dev Addresses that grow by one along the fold's first dimension are no row, even where the last one has one
    /// place only.
    function test_row_is_along_the_last_dimension() public {
        bytes memory operands = abi.encodePacked(
            uint8(2),
            _operand(1, 0, 200, 0, _strides(1, 0), hex"00", hex"00"),
            _operand(1, 1, 130, 0, _strides(1, 0), hex"00", hex"00")
        );
        bytes memory openings = abi.encodePacked(_open(1, 0, 0), _open(1, 1, 0));
        for (uint32 size = 1; size < 3; size++) {
            bytes memory fold = abi.encodePacked(hex"0200000032", size);
            Facts memory f = _facts(_describe(hex"0100000003", fold, INIT, operands, INPUTS, FMA));
            Picked memory p = Picked(TERMS, 0, 10, 13, 0, 0, _frame(f, TERMS, 50 * size, INIT, 1));
            bytes memory rest = _rest(f, TERMS, openings);
            vm.expectRevert(Chunk.CrossesRow.selector);
            oneStep.execute(p, "", rest);
        }
    }

    function test_strides_other_than_one() public {
        bytes memory openings = abi.encodePacked(_open(1, 0, 0), _open(1, 1, 0));
        int64[4] memory strides = [int64(0), 2, -1, 3];
        for (uint256 i = 0; i < 4; i++) {
            Read memory other = Read(60, 0, strides[i], hex"00", hex"00");
            bytes memory descriptor = _folder(_plain(0), other, INPUTS, FMA);
            _refuse(descriptor, 0, 8, openings, Chunk.NotAdjacent.selector);
            descriptor = _folder(other, _plain(0), INPUTS, FMA);
            _refuse(descriptor, 0, 8, openings, Chunk.NotAdjacent.selector);
        }
    }

    function test_gathering_operands() public {
        bytes memory openings = abi.encodePacked(_open(1, 0, 0), _open(1, 1, 0));
        Read memory gathers = Read(0, 0, 1, hex"00", abi.encodePacked(hex"0100", int64(0), int64(0)));
        _refuse(_folder(_plain(0), gathers, INPUTS, FMA), 0, 8, openings, Chunk.NotAdjacent.selector);
    }

    /// @dev Bounds that let terms 10 to 19 pass.
    function test_fills_are_not_proved_at_once() public {
        bytes memory openings = abi.encodePacked(_open(1, 0, 0), _open(1, 1, 0));
        bytes memory bounds = abi.encodePacked(uint8(1), _affine(-10, _strides(0, 1)), int64(10));
        bytes memory descriptor = _folder(_plain(0), Read(0, 0, 1, bounds, hex"00"), INPUTS, FMA);
        vm.assertEq(_prove(descriptor, 10, 20, openings), _expected(10, 10, 10, INIT + 5));
        _refuse(descriptor, 9, 20, openings, Chunk.NotAdjacent.selector);
        _refuse(descriptor, 10, 21, openings, Chunk.NotAdjacent.selector);
        _refuse(descriptor, 30, 32, openings, Chunk.NotAdjacent.selector);
        _refuse(descriptor, 5, 25, openings, Chunk.NotAdjacent.selector);
        // A stride below zero: terms 10 to 19 again.
        bounds = abi.encodePacked(uint8(1), _affine(19, _strides(0, -1)), int64(10));
        descriptor = _folder(Read(0, 0, 1, bounds, hex"00"), _plain(0), INPUTS, FMA);
        vm.assertEq(_prove(descriptor, 10, 20, openings), _expected(10, 10, 10, INIT + 5));
        _refuse(descriptor, 9, 20, openings, Chunk.NotAdjacent.selector);
        _refuse(descriptor, 10, 21, openings, Chunk.NotAdjacent.selector);
    }

    /// @dev The first bound lets all terms pass, the second one terms 10 to 19.
    function test_each_bound_counts() public {
        bytes memory openings = abi.encodePacked(_open(1, 0, 0), _open(1, 1, 0));
        bytes memory bounds =
            abi.encodePacked(uint8(2), _affine(0, _strides(0, 1)), int64(100), _affine(-10, _strides(0, 1)), int64(10));
        bytes memory descriptor = _folder(Read(0, 0, 1, bounds, hex"00"), _plain(0), INPUTS, FMA);
        vm.assertEq(_prove(descriptor, 10, 20, openings), _expected(10, 10, 10, INIT + 5));
        _refuse(descriptor, 9, 20, openings, Chunk.NotAdjacent.selector);
        _refuse(descriptor, 10, 21, openings, Chunk.NotAdjacent.selector);
    }

    /// @dev Of the second bound, too, all bytes are read where they stand: its numbers need the highest ones.
    function test_bounds_of_large_numbers() public {
        bytes memory openings = abi.encodePacked(_open(1, 0, 0), _open(1, 1, 0));
        int64 large = 2 ** 50;
        bytes memory bounds = abi.encodePacked(
            uint8(2), _affine(0, _strides(0, 1)), int64(100), _affine(0, _strides(0, large)), 70 * large
        );
        bytes memory descriptor = _folder(Read(-50, 0, 1, bounds, hex"00"), _plain(-50), INPUTS, FMA);
        vm.assertEq(_prove(descriptor, 60, 70, openings), _expected(10, 10, 10, INIT + 5));
        _refuse(descriptor, 60, 71, openings, Chunk.NotAdjacent.selector);
    }

    function test_ends_of_the_tensor() public {
        bytes memory openings = abi.encodePacked(_open(1, 0, 0), _open(1, 1, 2));
        vm.assertEq(_prove(_product(0, 128), 0, 2, openings), _expected(0, 128, 2, INIT + 5));
        _refuse(_product(0, 128), 0, 3, openings, Chunk.NotAdjacent.selector);
        _refuse(_product(-1, 0), 0, 3, openings, Chunk.NotAdjacent.selector);
        _refuse(_product(0, -40), 30, 60, openings, Chunk.NotAdjacent.selector);
    }

    /// @dev Every order of the two operands and the accumulator; two registers of one operand are opened twice, one
    /// register once.
    function test_registers() public {
        bytes memory a = _open(1, 0, 0);
        bytes memory b = _open(1, 1, 0);
        uint256 expected = _expected(0, 0, 8, INIT + 5);
        bytes memory descriptor = _folder(_plain(0), _plain(0), hex"010002000201", hex"000105010200");
        vm.assertEq(_prove(descriptor, 0, 8, abi.encodePacked(a, b)), expected);
        descriptor = _folder(_plain(0), _plain(0), INPUTS, hex"000105010002");
        vm.assertEq(_prove(descriptor, 0, 8, abi.encodePacked(b, a)), expected);
        _refuse(descriptor, 0, 8, abi.encodePacked(a, b), Openings.WrongInclusionProof.selector);
        state[1] = state[0];
        _commit();
        expected = _expected(0, 0, 8, INIT + 5);
        a = _open(1, 0, 0);
        descriptor = _folder(_plain(0), _plain(0), hex"02000100", hex"000105000001");
        vm.assertEq(_prove(descriptor, 0, 8, a), expected);
        _refuse(descriptor, 0, 8, abi.encodePacked(a, a), PackedReader.LeftOver.selector);
        descriptor = _folder(_plain(0), _plain(0), hex"020002000100", FMA);
        vm.assertEq(_prove(descriptor, 0, 8, abi.encodePacked(a, a)), expected);
    }

    function test_other_bodies() public {
        bytes memory openings = abi.encodePacked(_open(1, 0, 0), _open(1, 1, 0));
        // A sum, the accumulator as a factor, an operand as the summand, a coordinate, a constant.
        bytes[5] memory bodies =
            [bytes(hex"000101000100"), hex"000105000201", hex"000105000001", hex"000105000102", hex"010140000000"];
        bodies[4] = abi.encodePacked(bodies[4], hex"05000302");
        for (uint256 i = 0; i < 5; i++) {
            bytes memory inputs = i == 3 ? bytes(hex"020003000100") : INPUTS;
            bytes memory descriptor = _folder(_plain(0), _plain(0), inputs, bodies[i]);
            _refuse(descriptor, 0, 8, openings, IOneStep.NotAProduct.selector);
        }
    }

    function test_lengths() public {
        bytes memory openings = abi.encodePacked(_openTwo(0, 0), _openTwo(1, 0));
        _refuse(_product(0, 0), 0, 65, openings, IOneStep.NotProvable.selector);
        _refuse(_product(0, 0), 8, 8, openings, IOneStep.NotProvable.selector);
        vm.assertEq(_prove(_product(60, 60), 0, 64, openings), _expected(60, 60, 64, INIT + 5));
    }

    /// @dev From the word: the whole fold, from the descriptor's initial accumulator on.
    function test_whole_fold() public {
        bytes memory operands = abi.encodePacked(
            uint8(2),
            _operand(1, 0, 200, 3, _strides(0, 1), hex"00", hex"00"),
            _operand(1, 1, 130, 5, _strides(0, 1), hex"00", hex"00")
        );
        bytes memory openings = abi.encodePacked(_open(1, 0, 0), _open(1, 1, 0));
        Facts memory f = _facts(_describe(hex"0100000003", hex"020000000100000029", INIT, operands, INPUTS, FMA));
        Picked memory p = Picked(LEAF, 0, 1, 0, 0xbad, 0, _frame(f, LEAF, 41, INIT, 1));
        vm.assertEq(uint256(oneStep.execute(p, "", _rest(f, LEAF, openings)).computed), _expected(3, 5, 41, INIT));
        f.descriptor = _describe(hex"0100000003", hex"020000000100000041", INIT, operands, INPUTS, FMA);
        p.frame = _frame(f, LEAF, 65, INIT, 1);
        bytes memory rest = _rest(f, LEAF, openings);
        vm.expectPartialRevert(IOneStep.NotProvable.selector);
        oneStep.execute(p, "", rest);
    }
}
