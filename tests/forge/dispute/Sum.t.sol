// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {MerkleBranch} from "../../../contracts/commitments/MerkleBranch.sol";
import {Distance} from "../../../contracts/dispute/Distance.sol";
import {IOneStep, NaiveTree, Openings, PackedReader, Picked, StepBase} from "./StepBase.sol";

/// @notice The distance of one leaf of a slot in two states.
contract SumTest is StepBase {
    uint8 private constant COMPONENT = 2;
    bytes32 private _x;
    bytes32 private _y;

    /// @dev Leaf `leaf` of slot 0 or 1, before and after `change` words of its second word on have become 2 greater.
    function _case(uint256 slot, uint64 leaf, uint256 change) private returns (Picked memory p, bytes memory rest) {
        uint32[] memory changed = state[slot];
        for (uint256 i = 0; i < change; i++) {
            changed[64 * leaf + 1 + i] = _float((slot == 0 ? 1 : 1000) + 64 * leaf + 1 + i + 2);
        }
        return _caseOf(slot, leaf, changed);
    }

    /// @dev Leaf `leaf` of a slot before and after it has become `changed`.
    function _caseOf(uint256 slot, uint64 leaf, uint32[] memory changed)
        private
        returns (Picked memory p, bytes memory rest)
    {
        _x = _stateRoot();
        bytes memory opening = _open(1, slot, leaf);
        state[slot] = changed;
        _commit();
        _y = _stateRoot();
        opening = abi.encodePacked(opening, _open(1, slot, leaf));
        bytes memory descriptor =
            abi.encodePacked(COMPONENT, _type(_dtype(1, slot), state[slot].length), uint32(3), uint8(0));
        bytes32 frame = keccak256(abi.encodePacked(PROGRAM, _x, _y, COMPONENT));
        frame = keccak256(abi.encodePacked(frame, uint32(slot), keccak256(descriptor)));
        p = Picked(SUM_LEAVES, 0, leaf, leaf + 1, 0, 0, frame);
        rest =
            abi.encodePacked(PROGRAM, _x, _y, COMPONENT, uint32(slot), uint16(descriptor.length), descriptor, opening);
    }

    /// @dev Words of which every bit is set somewhere at every place of a row: numbers from 1 to 2, of both signs.
    function test_every_bit_of_a_word_counts() public {
        uint32[] memory changed = state[0];
        uint256 expected;
        for (uint256 i = 64; i < 128; i++) {
            (uint256 x, uint256 y) = (uint256(keccak256(abi.encode(i))), uint256(keccak256(abi.encode(i, "y"))));
            state[0][i] = 0x3f800000 | uint32(x & 0x807fffff);
            changed[i] = 0x3f800000 | uint32(y & 0x807fffff);
            expected += Distance.ofWords(state[0][i], changed[i], 1, 0);
        }
        _commit();
        (Picked memory p, bytes memory rest) = _caseOf(0, 1, changed);
        vm.assertEq(oneStep.sum(p, rest), expected);
    }

    function test_whole_leaf() public {
        (Picked memory p, bytes memory rest) = _case(0, 1, 3);
        vm.assertEq(oneStep.sum(p, rest), 3 * 4 * 2 ** 80);
    }

    function test_last_leaf_ends_with_the_tensor() public {
        (Picked memory p, bytes memory rest) = _case(1, 2, 1);
        vm.assertEq(oneStep.sum(p, rest), 4 * 2 ** 80);
    }

    /// @dev Slot 1 with 130 words, in leaves of 192: the opening, and the state's root.
    function _withMore(uint32[] memory words) private view returns (bytes memory opening, bytes32 root) {
        bytes32[] memory roots = _tensorRoots(1);
        roots[1] = NaiveTree.tensorRoot(_type(1, 130), words);
        opening = abi.encodePacked(
            uint32(roots.length),
            NaiveTree.leaf(words, 2),
            _join(NaiveTree.branch(NaiveTree.leafHashes(words), 2)),
            _join(NaiveTree.branch(roots, 1))
        );
        root = NaiveTree.listRoot(STATE_TAG, roots);
    }

    function test_words_past_the_end_do_not_count() public view {
        uint32[] memory words = _floats(192, 1000);
        (bytes memory opening, bytes32 x) = _withMore(words);
        for (uint256 i = 129; i < 192; i++) {
            words[i] = _float(1000 + i + 2);
        }
        (bytes memory other, bytes32 y) = _withMore(words);
        bytes memory descriptor = abi.encodePacked(COMPONENT, _type(1, 130), uint32(3), uint8(0));
        bytes32 frame = keccak256(abi.encodePacked(PROGRAM, x, y, COMPONENT));
        frame = keccak256(abi.encodePacked(frame, uint32(1), keccak256(descriptor)));
        bytes memory rest = abi.encodePacked(
            PROGRAM, x, y, COMPONENT, uint32(1), uint16(descriptor.length), descriptor, opening, other
        );
        vm.assertEq(oneStep.sum(Picked(SUM_LEAVES, 0, 2, 3, 0, 0, frame), rest), 4 * 2 ** 80);
    }

    function test_integers() public {
        (Picked memory p, bytes memory rest) = _case(2, 0, 0);
        vm.assertEq(oneStep.sum(p, rest), 0);
    }

    function test_leaf_past_the_end() public {
        (Picked memory p, bytes memory rest) = _case(1, 2, 1);
        p.lo = 3;
        vm.expectPartialRevert(MerkleBranch.IndexOutOfRange.selector);
        oneStep.sum(p, rest);
    }

    function test_other_leaf() public {
        (Picked memory p, bytes memory rest) = _case(0, 1, 3);
        p.lo = 2;
        vm.expectRevert(Openings.WrongInclusionProof.selector);
        oneStep.sum(p, rest);
    }

    function test_each_fact_is_bound() public {
        (Picked memory p, bytes memory rest) = _case(0, 1, 3);
        for (uint256 i = 0; i < 3 * 32 + 1 + 4; i++) {
            rest[i] ^= 0x10;
            vm.expectPartialRevert(IOneStep.WrongFacts.selector);
            oneStep.sum(p, rest);
            rest[i] ^= 0x10;
        }
        rest[3 * 32 + 1 + 4 + 2] ^= 0x01;
        vm.expectPartialRevert(IOneStep.WrongFacts.selector);
        oneStep.sum(p, rest);
    }

    function test_each_byte_of_the_openings_counts() public {
        (Picked memory p, bytes memory rest) = _case(0, 1, 3);
        uint256 opening = 4 + 256 + 4 * 32;
        for (uint256 i = rest.length - 2 * opening; i < rest.length; i += 11) {
            // The counts of the lists say how long branches are: other errors.
            if (i < rest.length - 2 * opening + 4 || (i >= rest.length - opening && i < rest.length - opening + 4)) {
                continue;
            }
            rest[i] ^= 0x01;
            vm.expectRevert(Openings.WrongInclusionProof.selector);
            oneStep.sum(p, rest);
            rest[i] ^= 0x01;
        }
    }

    function test_length_is_exact() public {
        (Picked memory p, bytes memory rest) = _case(0, 1, 3);
        bytes memory longer = abi.encodePacked(rest, uint8(0));
        vm.expectPartialRevert(PackedReader.LeftOver.selector);
        oneStep.sum(p, longer);
        uint256 length = rest.length;
        for (uint256 i = 0; i < length; i += 1 + i / 32) {
            assembly ("memory-safe") {
                mstore(rest, i)
            }
            vm.expectPartialRevert(PackedReader.MissingBytes.selector);
            oneStep.sum(p, rest);
        }
    }

    function test_other_levels() public {
        (Picked memory p, bytes memory rest) = _case(0, 1, 3);
        p.level = LEAF;
        vm.expectPartialRevert(IOneStep.NotProvable.selector);
        oneStep.sum(p, rest);
    }
}
