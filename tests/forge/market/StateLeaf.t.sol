// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {MerkleBranch} from "../../../contracts/commitments/MerkleBranch.sol";
import {Piece, StateLeaf} from "../../../contracts/commitments/StateLeaf.sol";
import {Descriptor} from "../../../contracts/dispute/Descriptor.sol";
import {IProofRegistry, ProofOfTask} from "../../../contracts/market/IProofRegistry.sol";
import {DataDemandsBase, NaiveTree} from "./DataDemandsBase.sol";
import {ITaskRegistry, MarketBase, NaiveLog, PATIENCE} from "./MarketBase.sol";

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

/// @notice The checkpoint log on chain only grows, and ends complete.
contract LearningProofTest is MarketBase {
    function test_a_solver_may_commit_without_progress() public {
        _toTraining();
        uint64 round = toyBeacon.nextRound();
        vm.expectEmit(address(proofs));
        emit IProofRegistry.ProofCommitted(id, 5, _root(5), "proof", round);
        _commit();
        vm.assertEq(registry.task(id).deadline, 0);
        ProofOfTask memory p = proofs.proof(id);
        vm.assertTrue(p.size == 5 && p.round == round && p.committed == block.timestamp && p.root == _root(5));
    }

    function test_progress_is_strictly_longer_and_not_too_long() public {
        _toTraining();
        _progress(3);
        (bytes32 root, bytes32[] memory none) = (_root(3), new bytes32[](0));
        vm.startPrank(solver);
        uint64[4] memory sizes = [uint64(0), 2, 3, 6];
        for (uint256 i = 0; i < sizes.length; ++i) {
            vm.expectRevert(abi.encodeWithSelector(IProofRegistry.WrongLogSize.selector, sizes[i]));
            proofs.post(id, sizes[i], root, none);
        }
    }

    function test_history_is_not_rewritten() public {
        _toTraining();
        _progress(3);
        log[1] = "another state";
        (bytes32 root, bytes32[] memory path, bytes32[] memory first) = (_root(5), _consistency(5), _inclusion(0));
        vm.startPrank(solver);
        vm.expectRevert(IProofRegistry.InconsistentLog.selector);
        proofs.post(id, 5, root, path);
        vm.expectRevert(IProofRegistry.InconsistentLog.selector);
        proofs.commit(id, 5, root, path, "proof", first);
    }

    function test_the_same_complete_log_is_committed_without_a_path() public {
        _toTraining();
        _progress(5);
        (bytes32 root, bytes32[] memory none, bytes32[] memory first) = (_root(5), new bytes32[](0), _inclusion(0));
        vm.startPrank(solver);
        vm.expectRevert(IProofRegistry.InconsistentLog.selector);
        proofs.commit(id, 5, ~root, none, "proof", first);
        proofs.commit(id, 5, root, none, "proof", first);
    }

    function test_the_proof_is_complete() public {
        _toTraining();
        (bytes32 root, bytes32[] memory none, bytes32[] memory first) = (_root(4), new bytes32[](0), _inclusion(0));
        vm.startPrank(solver);
        vm.expectRevert(abi.encodeWithSelector(IProofRegistry.WrongLogSize.selector, uint64(4)));
        proofs.commit(id, 4, root, none, "proof", first);
        vm.expectRevert(abi.encodeWithSelector(IProofRegistry.WrongLogSize.selector, uint64(6)));
        proofs.commit(id, 6, root, none, "proof", first);
    }

    function test_the_proof_begins_at_the_initial_state() public {
        _toTraining();
        bytes32 initial = log[0];
        log[0] = "another beginning";
        (bytes32 root, bytes32[] memory none, bytes32[] memory first) = (_root(5), new bytes32[](0), _inclusion(0));
        _expectRefusal(solver, abi.encodeWithSelector(IProofRegistry.NotInLog.selector, uint64(0)));
        proofs.commit(id, 5, root, none, "proof", first);
        // The initial state somewhere else in the log is no beginning either.
        log[1] = initial;
        (root, first) = (_root(5), NaiveLog.inclusionPath(log, 1, 0, 5));
        _expectRefusal(solver, abi.encodeWithSelector(IProofRegistry.NotInLog.selector, uint64(0)));
        proofs.commit(id, 5, root, none, "proof", first);
    }

    function test_zero_hashes_mean_nothing() public {
        _toTraining();
        (bytes32 root, bytes32[] memory none, bytes32[] memory first) = (_root(5), new bytes32[](0), _inclusion(0));
        vm.startPrank(solver);
        vm.expectRevert(ITaskRegistry.ZeroHash.selector);
        proofs.post(id, 3, 0, none);
        vm.expectRevert(ITaskRegistry.ZeroHash.selector);
        proofs.commit(id, 5, 0, none, "proof", first);
        vm.expectRevert(ITaskRegistry.ZeroHash.selector);
        proofs.commit(id, 5, root, none, 0, first);
    }

    /// @dev The next one does not have to extend what somebody else has trained.
    function test_the_log_of_a_solver_that_is_gone_is_forgotten() public {
        _toTraining();
        _progress(3);
        _pass(_promise + 1);
        settlement.claimSolverDefault(id);
        _award();
        log[2] = "another state";
        (bytes32 root, bytes32[] memory none) = (_root(2), new bytes32[](0));
        vm.prank(solver);
        proofs.post(id, 2, root, none);
        vm.assertEq(proofs.proof(id).size, 2);
        _commit();
        vm.assertEq(proofs.proof(id).root, _root(5));
    }

    function test_a_round_is_replaced_only_if_the_beacon_is_silent_for_long() public {
        _toTraining();
        vm.expectRevert(abi.encodeWithSelector(IProofRegistry.RoundStands.selector, uint64(0)));
        proofs.replaceRound(id);
        _commit();
        uint64 round = proofs.proof(id).round;
        _pass(PATIENCE);
        vm.expectRevert(abi.encodeWithSelector(ITaskRegistry.DeadlineNotPassed.selector, vm.getBlockTimestamp()));
        proofs.replaceRound(id);
        _pass(1);
        toyBeacon.give(round + 10, "later");
        vm.expectEmit(address(proofs));
        emit IProofRegistry.RoundReplaced(id, round + 11);
        proofs.replaceRound(id);
        vm.assertEq(proofs.proof(id).round, round + 11);
        vm.assertEq(proofs.proof(id).committed, vm.getBlockTimestamp());
        // There is one: a wait ends.
        vm.expectRevert(abi.encodeWithSelector(IProofRegistry.AlreadyReplaced.selector, id));
        proofs.replaceRound(id);
    }
}
