// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Claim, ITaskRegistry, IVerdicts, LogProof, Look, MarketBase, Status, Terms, Verdict} from "./MarketBase.sol";

/// @notice What a verifier posts, and what the chain makes of it.
contract VerdictTest is MarketBase {
    function test_emits_every_claim_and_keeps_their_hash() public {
        _toVerifying(false);
        (Claim[] memory claims, LogProof[] memory logProofs) = _claims(true);
        for (uint32 i = 0; i < 2; ++i) {
            vm.expectEmit(address(verdicts));
            emit IVerdicts.ClaimPosted(id, 2, i, claims[i]);
        }
        vm.expectEmit(address(verdicts));
        emit IVerdicts.VerdictPosted(id, 2, verifier, 0, 0, "nothing");
        uint64 round = toyBeacon.nextRound();
        vm.expectEmit(address(verdicts));
        emit IVerdicts.WatchFixed(id, 2, round, uint64(block.timestamp));
        _post(claims, logProofs);
        Verdict memory v = verdicts.verdict(id);
        vm.assertTrue(v.seating == 2 && v.verifier == verifier && v.rejecting == 0 && !v.disclosed && !v.leaked);
        vm.assertTrue(v.watchRound == round && v.watchFixedAt == block.timestamp && v.watchUntil == 0);
        vm.assertEq(v.sealedClaim, bytes32("nothing"));
        bytes32[] memory entries = _entries(true, true);
        vm.assertEq(v.claims, keccak256(abi.encodePacked(entries)));
        vm.assertTrue(verdicts.holds(id, 0, claims[0], 0, entries) && verdicts.holds(id, 1, claims[1], 0, entries));
        vm.assertFalse(verdicts.holds(id, 1, claims[0], 0, entries));
        vm.assertFalse(verdicts.holds(id, 2, claims[0], 0, entries));
        vm.assertFalse(verdicts.holds(id, 0, claims[0], "look", entries));
        vm.assertFalse(verdicts.holds(id, 0, claims[0], 0, new bytes32[](0)));
        (bool accepted, bool repeated,) = verdicts.conclude(id);
        vm.assertTrue(accepted && repeated);
        _expectStatus(Status.Watched);
        vm.assertEq(registry.task(id).deadline, 0);
    }

    function test_no_verdict_holds_nothing() public {
        _toVerifying(false);
        (Claim[] memory claims,) = _claims(true);
        vm.assertFalse(verdicts.holds(id, 0, claims[0], 0, _entries(true, true)));
        vm.assertFalse(verdicts.holds(id, 0, claims[0], 0, new bytes32[](0)));
        vm.assertEq(verdicts.verdict(id).seating, 0);
    }

    function test_one_bad_claim_of_any_rejects() public {
        for (uint256 i = 0; i < 2; ++i) {
            for (uint256 c = 0; c < 3; ++c) {
                setUp();
                _toVerifying(false);
                (Claim[] memory claims, LogProof[] memory logProofs) = _claims(true);
                claims[i].distances[c] = type(uint256).max;
                _post(claims, logProofs);
                vm.assertEq(verdicts.verdict(id).rejecting, 1);
                vm.assertEq(uint256(verdicts.verdict(id).differing), 1);
            }
        }
    }

    function test_all_bad_claims_are_counted() public {
        _toVerifying(false);
        (Claim[] memory claims, LogProof[] memory logProofs) = _claims(false);
        claims[0].references[2] = type(uint256).max;
        _post(claims, logProofs);
        vm.assertEq(verdicts.verdict(id).rejecting, 2);
    }

    function test_something_is_sealed_always() public {
        _toVerifying(false);
        (Claim[] memory claims, LogProof[] memory logProofs) = _claims(true);
        _expectRefusal(verifier, ITaskRegistry.ZeroHash.selector);
        verdicts.post(id, claims, logProofs, new Look[](0), 0);
    }

    function test_every_drawn_segment_in_order() public {
        _toVerifying(false);
        (Claim[] memory claims, LogProof[] memory logProofs) = _claims(true);
        (claims[0], claims[1]) = (claims[1], claims[0]);
        (logProofs[0], logProofs[1]) = (logProofs[1], logProofs[0]);
        bytes memory reason = abi.encodeWithSelector(IVerdicts.WrongSegment.selector, 0, claims[1].segment);
        _expectRefused(claims, logProofs, reason);
        (claims[0], logProofs[0]) = (claims[1], logProofs[1]);
        uint32 second = proofs.drawnSegments(id)[1];
        _expectRefused(claims, logProofs, abi.encodeWithSelector(IVerdicts.WrongSegment.selector, 1, second));
    }

    function test_neither_fewer_nor_more() public {
        _toVerifying(false);
        (Claim[] memory claims, LogProof[] memory logProofs) = _claims(true);
        bytes memory reason = abi.encodeWithSelector(IVerdicts.WrongClaimCount.selector, 2);
        _expectRefused(new Claim[](0), new LogProof[](0), reason);
        _expectRefused(new Claim[](3), logProofs, reason);
        _expectRefused(claims, new LogProof[](1), reason);
    }

    function test_both_ends_stand_in_the_log() public {
        _toVerifying(false);
        (Claim[] memory claims, LogProof[] memory logProofs) = _claims(true);
        uint64 segment = claims[0].segment;
        (bytes32 start, bytes32 end) = (claims[0].start, claims[0].end);
        claims[0].start = "invented";
        _expectRefused(claims, logProofs, abi.encodeWithSelector(IVerdicts.NotInLog.selector, segment));
        (claims[0].start, claims[0].end) = (start, "invented");
        _expectRefused(claims, logProofs, abi.encodeWithSelector(IVerdicts.NotInLog.selector, segment + 1));
        // The start in the place of the end, with its own valid path.
        bytes32[] memory path = logProofs[0].end;
        (claims[0].end, logProofs[0].end) = (start, logProofs[0].start);
        _expectRefused(claims, logProofs, abi.encodeWithSelector(IVerdicts.NotInLog.selector, segment + 1));
        (claims[0].end, logProofs[0].end) = (end, path);
        _post(claims, logProofs);
    }

    /// @dev The game refuses zero roots, so a claim about one would be beyond challenge: it must not be able to accept.
    function test_a_zero_state_in_the_log_is_a_rejection() public {
        for (uint256 entry = 1; entry <= 4; ++entry) {
            setUp();
            log[entry] = 0;
            _toVerifying(false);
            uint32[] memory drawn = proofs.drawnSegments(id);
            _verdict(verifier, true);
            uint256 touched = 0;
            for (uint256 i = 0; i < drawn.length; ++i) {
                if (drawn[i] == entry || drawn[i] + 1 == entry) ++touched;
            }
            vm.assertEq(verdicts.verdict(id).rejecting, touched);
        }
    }

    function test_a_replay_is_something() public {
        _toVerifying(false);
        (Claim[] memory claims, LogProof[] memory logProofs) = _claims(true);
        claims[1].replay = 0;
        _expectRefused(claims, logProofs, abi.encodeWithSelector(ITaskRegistry.ZeroHash.selector));
    }

    function test_the_watch_begins_with_the_seed_of_its_round_and_once() public {
        _toVerifying(false);
        _verdict(verifier, true);
        uint64 round = verdicts.verdict(id).watchRound;
        _pass(3 days);
        _give(round, "watch");
        uint64 until = uint64(vm.getBlockTimestamp()) + 15 minutes;
        vm.expectEmit(address(verdicts));
        emit IVerdicts.WatchOpened(id, 2, "watch", until);
        vm.prank(challenger);
        verdicts.openWatch(id);
        vm.assertEq(registry.task(id).deadline, until);
    }

    function _post(Claim[] memory claims, LogProof[] memory logProofs) private {
        vm.prank(verifier);
        verdicts.post(id, claims, logProofs, new Look[](0), "nothing");
    }

    function _expectRefused(Claim[] memory claims, LogProof[] memory logProofs, bytes memory reason) private {
        _expectRefusal(verifier, reason);
        verdicts.post(id, claims, logProofs, new Look[](0), "nothing");
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
        _toVerifying(false);
        (Claim[] memory claims, LogProof[] memory logProofs) = _claims(true);
        vm.prank(verifier);
        verdicts.post(id, claims, logProofs, new Look[](0), "nothing");
        // EIP-7825 caps a transaction at 2^24 gas. A log of 2^32 entries has paths of 32 instead of 6 hashes, at about
        // 1,000 gas and 1,280 gas of calldata each: 2 * 32 * 26 * 2,280 < 4 million more.
        vm.assertLt(vm.lastCallGas().gasTotalUsed, (1 << 24) - 4_000_000);
    }
}
