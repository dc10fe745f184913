// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {CompleteStateLeaf} from "../../../contracts/commitments/CompleteStateLeaf.sol";
import {MerkleBranch} from "../../../contracts/commitments/MerkleBranch.sol";
import {Chunk, Demand, LearningLogBase} from "./LearningLogBase.sol";

/// @notice Puts chunks into calldata, where the library wants them.
contract ChunkHarness {
    function root(Chunk calldata chunk, uint256 position, uint256 leaf) external pure returns (bytes32) {
        return CompleteStateLeaf.root(chunk, position, leaf);
    }

    function leavesOf(bytes calldata form) external pure returns (uint256) {
        return CompleteStateLeaf.leavesOf(form);
    }
}

contract CompleteStateLeafTest is LearningLogBase {
    ChunkHarness private harness = new ChunkHarness();

    function _at(uint64 index, uint32 position, uint64 leaf) private view returns (Chunk memory) {
        return _chunk(Demand(0, 0, 3, index, position, leaf, address(0), 0, 0));
    }

    function testFuzz_any_two_numbers_name_a_leaf(uint64 index, uint32 position, uint64 leaf) public view {
        index = uint64(bound(index, 0, 2));
        Chunk memory chunk = _at(index, position, leaf);
        vm.assertEq(harness.root(chunk, position, leaf), _completeRoot(_entries(index)));
    }

    /// @dev One changed bit anywhere is another root or a refusal.
    function testFuzz_a_changed_chunk_has_another_root(uint32 position, uint64 leaf, uint256 what, uint256 bit)
        public
        view
    {
        Chunk memory chunk = _at(1, position, leaf);
        what = bound(what, 0, 5);
        bytes memory changed = what == 0 ? chunk.name : what == 1 ? chunk.form : chunk.leaf;
        if (what < 3 && changed.length > 0) {
            changed[bit % changed.length] ^= bytes1(uint8(1 << (bit >> 128) % 8));
        } else if (what == 3 && chunk.branch.length > 0) {
            chunk.branch[bit % chunk.branch.length] ^= bytes32(1 << (bit >> 128) % 256);
        } else if (what == 4) {
            chunk.entryBranch[bit % chunk.entryBranch.length] ^= bytes32(1 << (bit >> 128) % 256);
        } else {
            chunk.count ^= uint32(1 << bit % 32);
        }
        (bool fine, bytes memory result) =
            address(harness).staticcall(abi.encodeCall(harness.root, (chunk, position, leaf)));
        vm.assertTrue(!fine || abi.decode(result, (bytes32)) != _completeRoot(_entries(1)));
    }

    function testFuzz_a_leaf_stands_at_its_place_only(uint32 position, uint64 leaf, uint32 other) public view {
        position = uint32(position % 5);
        other = uint32(other % 5);
        if (other == position) return;
        bytes memory call = abi.encodeCall(harness.root, (_at(1, position, leaf), other, leaf));
        (bool fine, bytes memory result) = address(harness).staticcall(call);
        vm.assertTrue(!fine || abi.decode(result, (bytes32)) != _completeRoot(_entries(1)));
    }

    function test_leaves_of_every_element_type() public view {
        uint8[17] memory sizes = [4, 4, 8, 2, 2, 8, 2, 1, 1, 1, 2, 4, 8, 8, 1, 1, 1];
        for (uint256 i = 0; i < 17; ++i) {
            bytes memory form = abi.encodePacked(uint8(2), uint8(i + 1), uint8(2), uint32(3), uint32(1000));
            vm.assertEq(harness.leavesOf(form), (3000 * uint256(sizes[i]) + 255) / 256);
        }
        vm.assertEq(harness.leavesOf(hex"020100"), 1);
        vm.assertEq(harness.leavesOf(abi.encodePacked(hex"020920", new bytes(128))), 0);
        vm.assertEq(harness.leavesOf(_document(0)), 0);
        vm.assertEq(harness.leavesOf(_document(1)), 1);
        vm.assertEq(harness.leavesOf(_document(256)), 1);
        vm.assertEq(harness.leavesOf(_document(257)), 2);
        vm.assertEq(harness.leavesOf(_document(type(uint64).max)), 2 ** 56);
    }

    function test_forms_that_are_refused() public {
        bytes[10] memory wrong = [
            bytes(""),
            hex"0201",
            hex"020000",
            hex"021200",
            hex"020101",
            hex"02010000",
            abi.encodePacked(hex"020921", new bytes(132)),
            hex"030100",
            hex"0e00000000000000",
            abi.encodePacked(hex"020902", uint32(2 ** 31), uint32(2 ** 10))
        ];
        for (uint256 i = 0; i < wrong.length; ++i) {
            vm.expectRevert(abi.encodeWithSelector(CompleteStateLeaf.InvalidForm.selector, wrong[i]));
            harness.leavesOf(wrong[i]);
        }
        // A zero does not hide sizes that overflow; 2^40 bytes are allowed.
        bytes memory hidden = abi.encodePacked(hex"020903", uint32(0), uint32(2 ** 31), uint32(2 ** 31));
        vm.expectRevert(abi.encodeWithSelector(CompleteStateLeaf.InvalidForm.selector, hidden));
        harness.leavesOf(hidden);
        vm.assertEq(harness.leavesOf(abi.encodePacked(hex"020902", uint32(2 ** 31), uint32(2 ** 9))), 2 ** 32);
    }

    function test_malformed_chunks() public {
        Chunk memory chunk = _at(0, 2, 0);
        chunk.count = 0;
        vm.expectRevert(abi.encodeWithSelector(CompleteStateLeaf.InvalidCount.selector, 0));
        harness.root(chunk, 2, 0);
        chunk.count = 2 ** 24 + 1;
        vm.expectRevert(abi.encodeWithSelector(CompleteStateLeaf.InvalidCount.selector, 2 ** 24 + 1));
        harness.root(chunk, 2, 0);
        chunk.count = 2 ** 24;
        vm.expectRevert(abi.encodeWithSelector(MerkleBranch.WrongBranchLength.selector, 3, 24));
        harness.root(chunk, 2, 0);
        chunk = _at(0, 2, 0);
        chunk.name = "";
        vm.expectRevert(abi.encodeWithSelector(CompleteStateLeaf.InvalidName.selector, 0));
        harness.root(chunk, 2, 0);
        // The longest name.
        chunk.name = new bytes(1024);
        harness.root(chunk, 2, 0);
        chunk.name = new bytes(1025);
        vm.expectRevert(abi.encodeWithSelector(CompleteStateLeaf.InvalidName.selector, 1025));
        harness.root(chunk, 2, 0);
        chunk = _at(0, 2, 0);
        chunk.leaf = new bytes(255);
        vm.expectRevert(abi.encodeWithSelector(CompleteStateLeaf.InvalidLeaf.selector, 255, 256));
        harness.root(chunk, 2, 0);
        chunk = _at(0, 1, 0);
        chunk.leaf = new bytes(256);
        vm.expectRevert(abi.encodeWithSelector(CompleteStateLeaf.InvalidLeaf.selector, 256, 0));
        harness.root(chunk, 1, 0);
        chunk = _at(0, 1, 0);
        chunk.branch = new bytes32[](1);
        vm.expectRevert(abi.encodeWithSelector(MerkleBranch.WrongBranchLength.selector, 1, 0));
        harness.root(chunk, 1, 0);
    }
}
