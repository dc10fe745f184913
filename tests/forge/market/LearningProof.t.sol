// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {PATIENCE} from "../../../contracts/market/IBeacon.sol";
import {IProofRegistry, ProofOfTask} from "../../../contracts/market/IProofRegistry.sol";
import {ITaskRegistry} from "../../../contracts/market/ITaskRegistry.sol";
import {NaiveLog} from "../commitments/NaiveLog.sol";
import {MarketBase} from "./MarketBase.sol";

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
