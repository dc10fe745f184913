// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ITaskMarket} from "../../../contracts/market/ITaskMarket.sol";
import {Status} from "../../../contracts/market/TaskTypes.sol";
import {NaiveLog} from "../commitments/NaiveLog.sol";
import {MarketBase} from "./MarketBase.sol";

/// @notice The checkpoint log on chain only grows, and ends complete.
contract LearningProofTest is MarketBase {
    function test_progress_grows_the_log() public {
        _toTraining();
        for (uint64 size = 1; size <= 5; ++size) {
            _progress(size);
            vm.assertEq(market.task(id).logRoot, _root(size));
            vm.assertEq(market.task(id).logSize, size);
        }
        _commit();
        _expectStatus(Status.Committed);
    }

    function test_a_solver_may_commit_without_progress() public {
        _toTraining();
        vm.expectEmit(address(market));
        emit ITaskMarket.ProofCommitted(id, 5, _root(5), "proof", uint64(block.number) + 2);
        _commit();
        vm.assertEq(market.task(id).deadline, 0);
    }

    function test_only_the_solver_writes_the_log() public {
        _toTraining();
        (bytes32 root, bytes32[] memory none, bytes32[] memory first) = (_root(5), new bytes32[](0), _inclusion(0));
        vm.startPrank(verifier);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.NotAllowed.selector, verifier));
        market.postProgress(id, 5, root, none);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.NotAllowed.selector, verifier));
        market.commitProof(id, 5, root, none, "proof", first);
    }

    function test_progress_is_strictly_longer_and_not_too_long() public {
        _toTraining();
        _progress(3);
        (bytes32 root, bytes32[] memory none) = (_root(3), new bytes32[](0));
        vm.startPrank(solver);
        uint64[4] memory sizes = [uint64(0), 2, 3, 6];
        for (uint256 i = 0; i < sizes.length; ++i) {
            vm.expectRevert(abi.encodeWithSelector(ITaskMarket.WrongLogSize.selector, sizes[i]));
            market.postProgress(id, sizes[i], root, none);
        }
    }

    function test_history_is_not_rewritten() public {
        _toTraining();
        _progress(3);
        log[1] = "another state";
        (bytes32 root, bytes32[] memory path, bytes32[] memory first) = (_root(5), _consistency(5), _inclusion(0));
        vm.startPrank(solver);
        vm.expectRevert(ITaskMarket.InconsistentLog.selector);
        market.postProgress(id, 5, root, path);
        vm.expectRevert(ITaskMarket.InconsistentLog.selector);
        market.commitProof(id, 5, root, path, "proof", first);
    }

    function test_the_same_complete_log_is_committed_without_a_path() public {
        _toTraining();
        _progress(5);
        (bytes32 root, bytes32[] memory none, bytes32[] memory first) = (_root(5), new bytes32[](0), _inclusion(0));
        vm.startPrank(solver);
        vm.expectRevert(ITaskMarket.InconsistentLog.selector);
        market.commitProof(id, 5, ~root, none, "proof", first);
        market.commitProof(id, 5, root, none, "proof", first);
    }

    function test_the_proof_is_complete() public {
        _toTraining();
        (bytes32 root, bytes32[] memory none, bytes32[] memory first) = (_root(4), new bytes32[](0), _inclusion(0));
        vm.startPrank(solver);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.WrongLogSize.selector, uint64(4)));
        market.commitProof(id, 4, root, none, "proof", first);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.WrongLogSize.selector, uint64(6)));
        market.commitProof(id, 6, root, none, "proof", first);
    }

    function test_the_proof_begins_at_the_initial_state() public {
        _toTraining();
        bytes32 initial = log[0];
        log[0] = "another beginning";
        (bytes32 root, bytes32[] memory none, bytes32[] memory first) = (_root(5), new bytes32[](0), _inclusion(0));
        vm.prank(solver);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.NotInLog.selector, uint64(0)));
        market.commitProof(id, 5, root, none, "proof", first);
        // The initial state somewhere else in the log is no beginning either.
        log[1] = initial;
        (root, first) = (_root(5), NaiveLog.inclusionPath(log, 1, 0, 5));
        vm.prank(solver);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.NotInLog.selector, uint64(0)));
        market.commitProof(id, 5, root, none, "proof", first);
    }

    function test_zero_hashes_mean_nothing() public {
        _toTraining();
        (bytes32 root, bytes32[] memory none, bytes32[] memory first) = (_root(5), new bytes32[](0), _inclusion(0));
        vm.startPrank(solver);
        vm.expectRevert(ITaskMarket.ZeroHash.selector);
        market.postProgress(id, 3, 0, none);
        vm.expectRevert(ITaskMarket.ZeroHash.selector);
        market.commitProof(id, 5, root, none, 0, first);
    }

    function test_a_proof_is_committed_once() public {
        _toTraining();
        _commit();
        (bytes32 root, bytes32[] memory none, bytes32[] memory first) = (_root(5), new bytes32[](0), _inclusion(0));
        vm.startPrank(solver);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.WrongStatus.selector, id, uint8(Status.Committed)));
        market.commitProof(id, 5, root, none, "proof", first);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.WrongStatus.selector, id, uint8(Status.Committed)));
        market.postProgress(id, 5, root, none);
    }

    function test_the_last_second_counts() public {
        _toTraining();
        _pass(1 hours);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.DeadlineNotPassed.selector, uint64(vm.getBlockTimestamp())));
        market.claimSolverDefault(id);
        _progress(2);
        _commit();
    }

    function test_a_second_late_is_late() public {
        _toTraining();
        uint64 deadline = market.task(id).deadline;
        _pass(1 hours + 1);
        (bytes32 root, bytes32[] memory none, bytes32[] memory first) = (_root(5), new bytes32[](0), _inclusion(0));
        vm.startPrank(solver);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.DeadlinePassed.selector, deadline));
        market.postProgress(id, 5, root, none);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.DeadlinePassed.selector, deadline));
        market.commitProof(id, 5, root, none, "proof", first);
        market.claimSolverDefault(id);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.WrongStatus.selector, id, uint8(Status.Closed)));
        market.claimSolverDefault(id);
    }
}
