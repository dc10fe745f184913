// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Claim, ClaimCharge, Desk, IChallenges, ITaskRegistry, MarketBase} from "./MarketBase.sol";
import {StartParams, Status} from "./MarketBase.sol";

/// @notice What goes to court, from whom and when.
contract ChallengeTest is MarketBase {
    function test_a_replay_goes_to_court_with_the_whole_segment() public {
        _toContested(true);
        ClaimCharge memory charge = _chargeOf(1, true);
        Claim memory claim = charge.claim;
        _challenge(challenger, charge);
        StartParams memory p = game.started();
        vm.assertEq(p.asserter, verifier);
        vm.assertEq(p.challenger, challenger);
        vm.assertEq(p.program, bytes32("program"));
        vm.assertEq(p.constants, bytes32("constants"));
        vm.assertTrue(p.kind == 1 && p.component == 0 && p.clock == 10 minutes);
        vm.assertEq(p.firstStep, uint256(claim.segment) * 10);
        vm.assertEq(p.steps, 10);
        vm.assertEq(p.start, claim.start);
        vm.assertEq(p.end, claim.replay);
        vm.assertTrue(p.x == 0 && p.y == 0 && p.sum == 0);
        vm.assertEq(keccak256(game.header()), keccak256(HEADER));
        vm.assertEq(keccak256(game.payload()), keccak256(PAYLOAD));
    }

    function test_sums_go_to_court_between_replay_and_end_or_start() public {
        _toContested(true);
        for (uint8 i = 0; i < 6; ++i) {
            ClaimCharge memory charge = _chargeOf(0, true);
            (charge.kind, charge.component) = (2 + i % 2, 1 + i / 2);
            _challenge(challenger, charge);
            (StartParams memory p, Claim memory claim) = (game.started(), charge.claim);
            bool isDistance = i % 2 == 0;
            vm.assertTrue(p.x == claim.replay && p.y == (isDistance ? claim.end : claim.start));
            vm.assertTrue(p.component == charge.component && p.kind == charge.kind);
            vm.assertEq(p.sum, (isDistance ? claim.distances : claim.references)[i / 2]);
            vm.assertTrue(p.start == 0 && p.end == 0 && p.steps == 0);
        }
    }

    function test_kinds_and_components_that_do_not_exist() public {
        _toContested(true);
        uint8[2][10] memory wrong = [[0, 0], [1, 1], [1, 3], [2, 0], [2, 4], [3, 0], [3, 4], [4, 0], [4, 1], [5, 1]];
        for (uint256 i = 0; i < wrong.length; ++i) {
            ClaimCharge memory charge = _chargeOf(0, true);
            (charge.kind, charge.component) = (wrong[i][0], wrong[i][1]);
            _expectRefused(
                charge, abi.encodeWithSelector(IChallenges.InvalidChallenge.selector, wrong[i][0], wrong[i][1])
            );
        }
    }

    function test_the_claim_is_the_one_that_was_posted() public {
        _toContested(true);
        ClaimCharge memory charge = _chargeOf(0, true);
        charge.index = 1;
        _expectRefused(charge, abi.encodeWithSelector(IChallenges.UnknownClaim.selector, uint32(1)));
        charge.index = 2;
        _expectRefused(charge, abi.encodeWithSelector(IChallenges.UnknownClaim.selector, uint32(2)));
        charge = _chargeOf(0, true);
        charge.claim.references[2] += 1;
        _expectRefused(charge, abi.encodeWithSelector(IChallenges.UnknownClaim.selector, uint32(0)));
        charge = _chargeOf(0, true);
        charge.entries[1] = 0;
        _expectRefused(charge, abi.encodeWithSelector(IChallenges.UnknownClaim.selector, uint32(0)));
        charge = _chargeOf(0, true);
        charge.look = "look";
        _expectRefused(charge, abi.encodeWithSelector(IChallenges.UnknownClaim.selector, uint32(0)));
    }

    /// @dev The planted error is gone: nobody wins a dispute about it.
    function test_a_disclosed_error_can_not_be_charged() public {
        _toWatched(true, true);
        (, uint32 index, bytes32 wrong) = _duty();
        _disclose(verifier, true);
        ClaimCharge memory charge = _chargeOf(index, true);
        charge.claim.replay = wrong;
        charge.entries = _entries(true, true);
        _expectRefused(charge, abi.encodeWithSelector(IChallenges.UnknownClaim.selector, index));
        _challenge(challenger, _chargeOf(index, true));
    }

    function test_a_claim_of_a_void_verdict_is_unknown() public {
        _toContested(true);
        ClaimCharge memory old = _chargeOf(0, true);
        _challenge();
        _finish(false);
        _expectRefused(old, abi.encodeWithSelector(ITaskRegistry.WrongStatus.selector, id, Status.Committed));
        _judgeNext(false);
        _expectRefused(old, abi.encodeWithSelector(IChallenges.UnknownClaim.selector, uint32(0)));
    }

    /// @dev The chain rejects a segment with a zero state whatever the verifier says about it: there is nothing to
    /// disagree with.
    function test_a_claim_about_a_zero_state_is_beyond_challenge() public {
        uint256 refused = 0;
        for (uint256 entry = 1; entry <= 4; ++entry) {
            setUp();
            log[entry] = 0;
            _toContested(true);
            (Claim[] memory claims,) = _claims(true);
            for (uint32 i = 0; i < 2; ++i) {
                if (claims[i].start != 0 && claims[i].end != 0) continue;
                for (uint8 kind = 1; kind <= 3; ++kind) {
                    ClaimCharge memory charge;
                    (charge.index, charge.claim, charge.entries) = (i, claims[i], _entries(true, false));
                    (charge.kind, charge.component) = (kind, kind == 1 ? 0 : 1);
                    _expectRefused(
                        charge, abi.encodeWithSelector(IChallenges.InvalidChallenge.selector, kind, charge.component)
                    );
                    ++refused;
                }
            }
        }
        vm.assertGt(refused, 0);
    }

    function test_only_the_game_reports_and_only_what_it_plays() public {
        _toContested(true);
        _challenge();
        vm.expectRevert(abi.encodeWithSelector(Desk.NotAllowed.selector, address(this)));
        challenges.onResolved(1, false);
        _expectRefusal(address(profileGame), abi.encodeWithSelector(Desk.NotAllowed.selector, address(profileGame)));
        challenges.onResolved(1, false);
        for (uint256 number = 0; number <= 2; number += 2) {
            vm.expectRevert(abi.encodeWithSelector(IChallenges.UnknownDispute.selector, number));
            game.report(number, false);
        }
    }

    function _expectRefused(ClaimCharge memory charge, bytes memory reason) private {
        _expectRefusal(challenger, reason);
        challenges.challenge(id, charge, _opening());
    }
}
