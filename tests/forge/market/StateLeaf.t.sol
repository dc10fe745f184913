// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {MerkleBranch} from "../../../contracts/commitments/MerkleBranch.sol";
import {Piece, StateLeaf} from "../../../contracts/commitments/StateLeaf.sol";
import {Descriptor} from "../../../contracts/dispute/Descriptor.sol";
import {NaiveTree} from "../commitments/NaiveTree.sol";
import {DataDemandsBase} from "./DataDemandsBase.sol";

/// @notice Only states of the program have answers for all of their places.
contract StateLeafTest is DataDemandsBase {
    function rootOf(Piece calldata piece, uint256 position, uint256 leaf) external pure returns (bytes32) {
        return StateLeaf.root(piece, _program(), position, leaf);
    }

    function test_all_places_lead_to_the_root() public view {
        for (uint256 position = 0; position < 4; ++position) {
            for (uint256 leaf = 0; leaf < 4; ++leaf) {
                vm.assertEq(this.rootOf(_piece(3, position, leaf), position, leaf), log[3]);
                vm.assertEq(this.rootOf(_piece(3, position, leaf), position + 8, leaf + 4), log[3]);
            }
        }
    }

    function test_no_other_program() public {
        Piece memory piece = _piece(1, 0, 0);
        piece.header[15] ^= 0x01;
        vm.expectRevert(StateLeaf.WrongProgram.selector);
        this.rootOf(piece, 0, 0);
        piece.header = "short";
        vm.expectRevert(Descriptor.WrongHeader.selector);
        this.rootOf(piece, 0, 0);
    }

    /// @dev A tensor of another type isn't a slot of the program, whatever the log says.
    function test_no_other_slot() public {
        Piece memory piece = _piece(1, 0, 0);
        piece.slot = abi.encodePacked(uint8(1), uint8(1), uint8(1), uint32(149), uint32(0), uint8(0));
        vm.expectRevert(abi.encodeWithSelector(StateLeaf.WrongSlot.selector, uint256(0)));
        this.rootOf(piece, 0, 0);
        piece = _piece(1, 2, 0);
        vm.expectRevert(abi.encodeWithSelector(StateLeaf.WrongSlot.selector, uint256(0)));
        this.rootOf(piece, 0, 0);
    }

    function test_a_leaf_has_all_its_bytes_and_padding_has_none() public {
        Piece memory piece = _piece(1, 0, 0);
        piece.leaf = new bytes(255);
        vm.expectRevert(abi.encodeWithSelector(StateLeaf.InvalidLeaf.selector, uint256(255), uint256(256)));
        this.rootOf(piece, 0, 0);
        piece = _piece(1, 0, 3);
        piece.leaf = new bytes(256);
        vm.expectRevert(abi.encodeWithSelector(StateLeaf.InvalidLeaf.selector, uint256(256), uint256(0)));
        this.rootOf(piece, 0, 3);
        piece = _piece(1, 3, 0);
        piece.leaf = new bytes(256);
        vm.expectRevert(abi.encodeWithSelector(StateLeaf.InvalidLeaf.selector, uint256(256), uint256(0)));
        this.rootOf(piece, 3, 0);
    }

    /// @dev A state that hides numbers behind the end of a tensor has a root of its own, which no verifier could replay
    /// from.
    function test_after_the_last_element_there_are_zeros() public {
        // 150 words: two leaves and 22 words.
        for (uint256 offset = 88; offset < 256; offset += 24) {
            Piece memory piece = _piece(1, 0, 2);
            piece.leaf[offset] = 0x01;
            vm.expectRevert(abi.encodeWithSelector(StateLeaf.NotZero.selector, offset / 4 * 4));
            this.rootOf(piece, 0, 2);
        }
        Piece memory inside = _piece(1, 0, 2);
        inside.leaf[87] ^= 0x01;
        vm.assertNotEq(this.rootOf(inside, 0, 2), log[1]);
        // A leaf that is full, and one word.
        inside = _piece(1, 2, 0);
        inside.leaf[255] = 0x01;
        vm.assertNotEq(this.rootOf(inside, 2, 0), log[1]);
        inside = _piece(1, 1, 0);
        inside.leaf[4] = 0x01;
        vm.expectRevert(abi.encodeWithSelector(StateLeaf.NotZero.selector, uint256(4)));
        this.rootOf(inside, 1, 0);
    }

    /// @dev What stands where there is nothing can't be shown, so a root over it has no answer there.
    function test_padding_is_padding() public view {
        bytes32[] memory four = new bytes32[](4);
        bytes32[] memory three = _tensors(1);
        (four[0], four[1], four[2], four[3]) = (three[0], three[1], three[2], "hidden");
        bytes32 hidden = keccak256(abi.encodePacked(uint8(3), uint32(3), NaiveTree.tree(four)));
        Piece memory piece = _piece(1, 0, 0);
        piece.tensorBranch = NaiveTree.branch(four, 0);
        vm.assertEq(this.rootOf(piece, 0, 0), hidden);
        piece = _piece(1, 3, 0);
        piece.tensorBranch = NaiveTree.branch(four, 3);
        vm.assertNotEq(this.rootOf(piece, 3, 0), hidden);
    }

    function test_branches_have_the_length_of_their_tree() public {
        Piece memory piece = _piece(1, 0, 0);
        piece.branch = new bytes32[](3);
        vm.expectRevert(abi.encodeWithSelector(MerkleBranch.WrongBranchLength.selector, uint256(3), uint256(2)));
        this.rootOf(piece, 0, 0);
        piece = _piece(1, 0, 0);
        piece.slotBranch = new bytes32[](1);
        vm.expectRevert(abi.encodeWithSelector(MerkleBranch.WrongBranchLength.selector, uint256(1), uint256(2)));
        this.rootOf(piece, 0, 0);
        piece = _piece(1, 3, 0);
        piece.tensorBranch = new bytes32[](1);
        vm.expectRevert(abi.encodeWithSelector(MerkleBranch.WrongBranchLength.selector, uint256(1), uint256(2)));
        this.rootOf(piece, 3, 0);
    }

    function test_any_other_branch_leads_elsewhere() public view {
        for (uint256 position = 0; position < 4; ++position) {
            for (uint256 leaf = 0; leaf < 4; ++leaf) {
                Piece memory piece = _piece(2, position, leaf);
                for (uint256 i = 0; i < piece.branch.length + 2; ++i) {
                    bytes32[] memory touched = i < 2 ? piece.tensorBranch : piece.branch;
                    touched[i < 2 ? i : i - 2] ^= bytes32(uint256(1));
                    vm.assertNotEq(this.rootOf(piece, position, leaf), log[2]);
                    touched[i < 2 ? i : i - 2] ^= bytes32(uint256(1));
                }
            }
        }
    }
}
