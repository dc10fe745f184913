// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ITaskMarket} from "../../../contracts/market/ITaskMarket.sol";
import {Claim, LogProof, Status, Terms} from "../../../contracts/market/TaskTypes.sol";
import {MarketBase} from "./MarketBase.sol";

contract VerdictTest is MarketBase {
    function test_stores_and_emits_every_claim() public {
        _toDrawn();
        (Claim[] memory claims, LogProof[] memory proofs) = _claims(true);
        for (uint32 i = 0; i < 2; ++i) {
            vm.expectEmit(address(market));
            emit ITaskMarket.ClaimPosted(id, 1, i, claims[i]);
        }
        vm.expectEmit(address(market));
        emit ITaskMarket.VerdictPosted(id, 1, verifier, true, uint64(block.timestamp) + 20 minutes);
        vm.prank(verifier);
        market.postVerdict(id, claims, proofs);
        vm.assertEq(market.claimHash(id, 1, 0), keccak256(abi.encode(claims[0])));
        vm.assertEq(market.claimHash(id, 1, 1), keccak256(abi.encode(claims[1])));
        vm.assertEq(market.claimHash(id, 1, 2), 0);
        vm.assertTrue(market.task(id).accepted);
    }

    function test_one_bad_claim_of_any_rejects() public {
        for (uint256 i = 0; i < 2; ++i) {
            for (uint256 c = 0; c < 3; ++c) {
                setUp();
                _toDrawn();
                (Claim[] memory claims, LogProof[] memory proofs) = _claims(true);
                claims[i].distances[c] = type(uint256).max;
                vm.prank(verifier);
                market.postVerdict(id, claims, proofs);
                vm.assertFalse(market.task(id).accepted);
            }
        }
    }

    function test_only_the_verifier_in_the_seat() public {
        _toDrawn();
        (Claim[] memory claims, LogProof[] memory proofs) = _claims(true);
        address[3] memory others = [submitter, solver, nextVerifier];
        for (uint256 i = 0; i < 3; ++i) {
            vm.prank(others[i]);
            vm.expectRevert(abi.encodeWithSelector(ITaskMarket.NotAllowed.selector, others[i]));
            market.postVerdict(id, claims, proofs);
        }
        vm.startPrank(verifier);
        market.postVerdict(id, claims, proofs);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.WrongStatus.selector, id, uint8(Status.Verdict)));
        market.postVerdict(id, claims, proofs);
    }

    function test_every_drawn_segment_in_order() public {
        _toDrawn();
        (Claim[] memory claims, LogProof[] memory proofs) = _claims(true);
        (claims[0], claims[1]) = (claims[1], claims[0]);
        (proofs[0], proofs[1]) = (proofs[1], proofs[0]);
        vm.prank(verifier);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.WrongSegment.selector, 0, claims[1].segment));
        market.postVerdict(id, claims, proofs);
        (claims[0], proofs[0]) = (claims[1], proofs[1]);
        (claims[1], proofs[1]) = (claims[0], proofs[0]);
        uint32 second = market.drawnSegments(id)[1];
        vm.prank(verifier);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.WrongSegment.selector, 1, second));
        market.postVerdict(id, claims, proofs);
    }

    function test_neither_fewer_nor_more() public {
        _toDrawn();
        (Claim[] memory claims, LogProof[] memory proofs) = _claims(true);
        vm.startPrank(verifier);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.WrongClaimCount.selector, 2));
        market.postVerdict(id, new Claim[](0), new LogProof[](0));
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.WrongClaimCount.selector, 2));
        market.postVerdict(id, new Claim[](3), proofs);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.WrongClaimCount.selector, 2));
        market.postVerdict(id, claims, new LogProof[](1));
    }

    function test_both_ends_stand_in_the_log() public {
        _toDrawn();
        (Claim[] memory claims, LogProof[] memory proofs) = _claims(true);
        uint64 segment = claims[0].segment;
        (bytes32 start, bytes32 end) = (claims[0].start, claims[0].end);
        vm.startPrank(verifier);
        claims[0].start = "invented";
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.NotInLog.selector, segment));
        market.postVerdict(id, claims, proofs);
        claims[0].start = start;
        claims[0].end = "invented";
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.NotInLog.selector, segment + 1));
        market.postVerdict(id, claims, proofs);
        // The start in the place of the end, with its own valid path.
        (claims[0].end, proofs[0].end) = (start, proofs[0].start);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.NotInLog.selector, segment + 1));
        market.postVerdict(id, claims, proofs);
        claims[0].end = end;
    }

    /// @dev The game refuses zero roots, so a claim about one would be beyond challenge: it must not be able to accept.
    function test_a_zero_state_in_the_log_is_a_rejection() public {
        for (uint256 entry = 1; entry <= 4; ++entry) {
            setUp();
            log[entry] = 0;
            _toDrawn();
            uint32[] memory drawn = market.drawnSegments(id);
            _verdict(verifier, true);
            bool touched = false;
            for (uint256 i = 0; i < drawn.length; ++i) {
                if (drawn[i] == entry || drawn[i] + 1 == entry) touched = true;
            }
            vm.assertEq(market.task(id).accepted, !touched);
        }
    }

    function test_a_replay_is_something() public {
        _toDrawn();
        (Claim[] memory claims, LogProof[] memory proofs) = _claims(true);
        claims[1].replay = 0;
        vm.prank(verifier);
        vm.expectRevert(ITaskMarket.ZeroHash.selector);
        market.postVerdict(id, claims, proofs);
    }

    function test_the_last_second_counts() public {
        _toDrawn();
        _pass(30 minutes);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.DeadlineNotPassed.selector, uint64(vm.getBlockTimestamp())));
        market.claimVerifierDefault(id);
        _verdict(verifier, true);
    }

    function test_a_second_late_is_late() public {
        _toDrawn();
        uint64 deadline = market.task(id).deadline;
        _pass(30 minutes + 1);
        (Claim[] memory claims, LogProof[] memory proofs) = _claims(true);
        vm.startPrank(verifier);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.DeadlinePassed.selector, deadline));
        market.postVerdict(id, claims, proofs);
        market.claimVerifierDefault(id);
        vm.expectRevert(ITaskMarket.NoVerifier.selector);
        market.claimVerifierDefault(id);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.NotAllowed.selector, verifier));
        market.postVerdict(id, claims, proofs);
    }

    function test_no_clock_runs_over_an_empty_seat() public {
        _toDrawn();
        _pass(30 minutes + 1);
        market.claimVerifierDefault(id);
        vm.assertEq(market.task(id).deadline, 0);
        _pass(1_000 days);
        vm.expectEmit(address(market));
        emit ITaskMarket.VerifierJoined(id, nextVerifier, uint64(vm.getBlockTimestamp()) + 30 minutes);
        _join(nextVerifier);
        vm.expectRevert(
            abi.encodeWithSelector(ITaskMarket.DeadlineNotPassed.selector, uint64(vm.getBlockTimestamp()) + 30 minutes)
        );
        market.claimVerifierDefault(id);
    }
}

/// @notice The most that one transaction may have to carry: 32 of 32 segments.
contract LargestVerdictTest is MarketBase {
    function _segments() internal pure override returns (uint32) {
        return 32;
    }

    function _terms() internal view override returns (Terms memory s) {
        s = super._terms();
        s.draws = 32;
    }

    function test_32_claims_fit_a_transaction() public {
        _toDrawn();
        (Claim[] memory claims, LogProof[] memory proofs) = _claims(true);
        vm.prank(verifier);
        market.postVerdict(id, claims, proofs);
        // EIP-7825 caps a transaction at 2^24 gas. A log of 2^32 entries has paths of 32 instead of 6 hashes, at about 1,000 gas and
        // 1,280 gas of calldata each: 2 * 32 * 26 * 2,280 < 4 million more.
        vm.assertLt(vm.lastCallGas().gasTotalUsed, (1 << 24) - 4_000_000);
    }
}
