// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {MerkleBranch, PAD} from "../../../contracts/commitments/MerkleBranch.sol";
import {Base} from "../Base.sol";
import {NaiveTree} from "./NaiveTree.sol";

contract MerkleBranchHarness {
    function climbIn(bytes32 leaf, uint256 index, bytes32[] calldata branch, uint256 count)
        external
        pure
        returns (bytes32)
    {
        return MerkleBranch.climbIn(leaf, index, branch, count);
    }

    function root(bytes calldata row, uint256 depth, uint256 height) external pure returns (bytes32) {
        return MerkleBranch.root(row, depth, height);
    }

    function tagged(uint8 tag, bytes calldata content) external pure returns (bytes32) {
        return MerkleBranch.tagged(tag, content);
    }

    function tensorRoot(bytes calldata tensorType, bytes32 tree) external pure returns (bytes32) {
        return MerkleBranch.tensorRoot(tensorType, tree);
    }
}

contract MerkleBranchTest is Base {
    MerkleBranchHarness private harness = new MerkleBranchHarness();

    function _leaves(uint256 count, uint256 seed) private pure returns (bytes32[] memory leaves) {
        leaves = new bytes32[](count);
        for (uint256 i = 0; i < count; i++) {
            leaves[i] = keccak256(abi.encode(seed, i));
        }
    }

    function test_depth() public pure {
        uint256[13] memory counts =
            [uint256(0), 1, 2, 3, 4, 5, 8, 9, 2 ** 31, 2 ** 32 - 1, 2 ** 32 + 1, 2 ** 50 + 1, 2 ** 64];
        uint256[13] memory depths = [uint256(0), 0, 1, 2, 2, 3, 3, 4, 31, 32, 33, 51, 64];
        for (uint256 i = 0; i < counts.length; i++) {
            vm.assertEq(MerkleBranch.depth(counts[i]), depths[i]);
        }
        for (uint256 d = 1; d < 64; d++) {
            vm.assertEq(MerkleBranch.depth(2 ** d), d);
            vm.assertEq(MerkleBranch.depth(2 ** d + 1), d + 1);
        }
    }

    function testFuzz_branch_leads_to_the_naive_root(uint256 count, uint256 index, uint256 seed) public view {
        count = bound(count, 1, 40);
        index = bound(index, 0, count - 1);
        bytes32[] memory leaves = _leaves(count, seed);
        bytes32[] memory branch = NaiveTree.branch(leaves, index);
        vm.assertEq(harness.climbIn(leaves[index], index, branch, count), NaiveTree.tree(leaves));
    }

    function testFuzz_branch_proves_no_other_place(uint256 count, uint256 index, uint256 other, uint256 seed)
        public
        view
    {
        count = bound(count, 2, 40);
        index = bound(index, 0, count - 1);
        other = bound(other, 0, count - 1);
        if (other == index) return;
        bytes32[] memory leaves = _leaves(count, seed);
        bytes32[] memory branch = NaiveTree.branch(leaves, index);
        vm.assertNotEq(harness.climbIn(leaves[index], other, branch, count), NaiveTree.tree(leaves));
    }

    function test_branch_of_another_length_is_refused() public {
        bytes32[] memory leaves = _leaves(5, 1);
        bytes32[] memory branch = new bytes32[](2);
        vm.expectRevert(abi.encodeWithSelector(MerkleBranch.WrongBranchLength.selector, 2, 3));
        harness.climbIn(leaves[0], 0, branch, 5);
        branch = new bytes32[](4);
        vm.expectRevert(abi.encodeWithSelector(MerkleBranch.WrongBranchLength.selector, 4, 3));
        harness.climbIn(leaves[0], 0, branch, 5);
    }

    function test_place_in_the_padding_is_refused() public {
        bytes32[] memory leaves = _leaves(5, 1);
        bytes32[] memory branch = NaiveTree.branch(leaves, 5);
        vm.expectRevert(abi.encodeWithSelector(MerkleBranch.IndexOutOfRange.selector, 5, 5));
        harness.climbIn(PAD, 5, branch, 5);
    }

    function test_empty_list_has_no_place() public {
        vm.expectRevert(abi.encodeWithSelector(MerkleBranch.IndexOutOfRange.selector, 0, 0));
        harness.climbIn(PAD, 0, new bytes32[](0), 0);
    }

    function testFuzz_row_hashes_to_the_naive_root(uint256 depth, uint256 seed) public view {
        depth = bound(depth, 0, 4);
        bytes32[] memory leaves = _leaves(2 ** depth, seed);
        vm.assertEq(harness.root(abi.encodePacked(leaves), depth, 0), NaiveTree.tree(leaves));
    }

    function testFuzz_padding_subtree(uint256 height) public pure {
        height = bound(height, 0, 6);
        bytes32[] memory leaves = new bytes32[](2 ** height);
        for (uint256 i = 0; i < leaves.length; i++) {
            leaves[i] = PAD;
        }
        vm.assertEq(MerkleBranch.padding(height), NaiveTree.tree(leaves));
    }

    /// @dev The naive row shows the padding, too; what the tree lacks is filled in.
    function testFuzz_row_is_filled_with_padding(uint256 count) public view {
        count = bound(count, 1, 64);
        bytes32[] memory leaves = _leaves(count, 3);
        uint256 depth = MerkleBranch.depth(count);
        uint256 opened = depth < 4 ? depth : 4;
        uint256 height = depth - opened;
        bytes memory row = NaiveTree.children(leaves, 0, depth);
        uint256 existing = (count + 2 ** height - 1) >> height;
        vm.assertEq(row.length / 32, existing);
        vm.assertEq(harness.root(row, opened, height), NaiveTree.tree(leaves));
    }

    function testFuzz_domains(uint8 tag, bytes calldata content, bytes32 tree, uint32 count) public view {
        vm.assertEq(harness.tagged(tag, content), keccak256(abi.encodePacked(tag, content)));
        vm.assertEq(harness.tensorRoot(content, tree), keccak256(abi.encodePacked(uint8(2), content, tree)));
        vm.assertEq(MerkleBranch.listRoot(tag, count, tree), keccak256(abi.encodePacked(tag, count, tree)));
    }
}
