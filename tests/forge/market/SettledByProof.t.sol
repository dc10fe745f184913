// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ClaimCharge, Dispute, IChallenges} from "../../../contracts/market/IChallenges.sol";
import {Ending, EventReplay, ITaskRegistry, Status, Vm} from "./EventReplay.sol";
import {IProvenSteps, ProvenBase} from "./ProvenBase.sol";

/// @notice A proof ends a dispute about a replay as the game would, and no other dispute.
contract SettledByProofTest is ProvenBase {
    function test_a_proof_lets_the_truth_stand() public {
        uint256 number = _disputed(0, true);
        ClaimCharge memory charge = _chargeOf(0, true);
        bytes32 shown = charge.claim.replay;
        vm.expectEmit(address(challenges));
        emit IChallenges.SettledByProof(id, registry.task(id).seating, number, true);
        challenges.settleByProof(number, charge, shown);
        _expectEnding(number, Ending.Stood);
        // Whatever the game says later.
        game.report(number, false);
        _expectEnding(number, Ending.Stood);
        challenges.settleDispute(number);
        vm.assertEq(_gain(challenger), -int256(uint256(_terms().bond)));
        _settle();
        _expectStatus(Status.Closed);
    }

    function test_a_proof_lets_a_lie_fall() public {
        uint256 number = _disputed(1, true);
        uint256 other = _challenge(solver);
        bytes32 shown = _state(INTERVAL * (_chargeOf(0, true).claim.segment + 1));
        challenges.settleByProof(number, _chargeOf(0, true), shown);
        _expectEnding(number, Ending.Fell);
        vm.assertTrue(challenges.contested(id).fell);
        game.report(number, true);
        _expectEnding(number, Ending.Fell);
        challenges.settleDispute(number);
        vm.assertGt(uint256(_gain(challenger)), 0);
        challenges.settleDispute(other);
        vm.assertEq(_gain(solver), -int256(uint256(_terms().solverStake)));
        _expectStatus(Status.Committed);
    }

    /// @dev As the game would have: the same payouts to the last wei.
    function test_the_payouts_are_those_of_the_game() public {
        for (uint256 wrong = 0; wrong < 2; ++wrong) {
            int256[4][2] memory gains;
            for (uint256 way = 0; way < 2; ++way) {
                setUp();
                uint256 number = _disputed(wrong, true);
                bytes32 shown = _state(INTERVAL * (_chargeOf(0, true).claim.segment + 1));
                if (way == 0) challenges.settleByProof(number, _chargeOf(0, true), shown);
                else game.report(number, wrong == 0);
                challenges.settleDispute(number);
                gains[way] = [_gain(challenger), _gain(verifier), _gain(solver), int256(_rest())];
            }
            vm.assertEq(abi.encode(gains[0]), abi.encode(gains[1]));
        }
    }

    function test_without_a_proof_the_game_goes_on() public {
        uint256 number = _disputed(0, false);
        ClaimCharge memory charge = _chargeOf(0, true);
        bytes memory notProven = abi.encodeWithSelector(IProvenSteps.NotProven.selector, id, charge.claim.segment);
        vm.expectRevert(notProven);
        challenges.settleByProof(number, charge, charge.claim.replay);
        uint32 segment = charge.claim.segment;
        _prove(segment);
        _tie(INTERVAL * segment);
        vm.expectRevert(notProven);
        challenges.settleByProof(number, charge, charge.claim.replay);
        _end(number, true);
    }

    function test_the_first_of_game_and_proof_decides() public {
        uint256 number = _disputed(0, true);
        ClaimCharge memory charge = _chargeOf(0, true);
        game.report(number, true);
        vm.expectRevert(abi.encodeWithSelector(IChallenges.NothingToSettle.selector, number));
        challenges.settleByProof(number, charge, charge.claim.replay);
        challenges.settleDispute(number);
        vm.expectRevert(abi.encodeWithSelector(IChallenges.NothingToSettle.selector, number));
        challenges.settleByProof(number, charge, charge.claim.replay);
    }

    function test_only_disputes_about_replays() public {
        _disputed(0, true);
        ClaimCharge memory charge = _chargeOf(0, true);
        (charge.kind, charge.component) = (2, 1);
        uint256 number = _challenge(challenger, charge);
        vm.expectRevert(abi.encodeWithSelector(IChallenges.InvalidChallenge.selector, uint8(2), uint8(1)));
        challenges.settleByProof(number, charge, charge.claim.replay);
        // Nor is it one if somebody calls it one.
        (charge.kind, charge.component) = (1, 0);
        vm.expectRevert(abi.encodeWithSelector(IChallenges.InvalidChallenge.selector, uint8(1), uint8(0)));
        challenges.settleByProof(number, charge, charge.claim.replay);
    }

    function test_only_the_claim_that_was_charged() public {
        uint256 number = _disputed(0, true);
        ClaimCharge memory charge = _chargeOf(1, true);
        vm.expectRevert(abi.encodeWithSelector(IChallenges.InvalidChallenge.selector, uint8(1), uint8(0)));
        challenges.settleByProof(number, charge, charge.claim.replay);
        charge = _chargeOf(0, true);
        charge.claim.replay = "another";
        vm.expectRevert(abi.encodeWithSelector(IChallenges.UnknownClaim.selector, uint32(0)));
        challenges.settleByProof(number, charge, log[charge.claim.segment + 1]);
        charge = _chargeOf(0, true);
        vm.expectRevert(abi.encodeWithSelector(IChallenges.UnknownDispute.selector, number + 1));
        challenges.settleByProof(number + 1, charge, charge.claim.replay);
    }

    function test_a_dispute_about_a_verdict_that_is_gone_is_moot() public {
        uint256 number = _disputed(1, true);
        uint256 other = _challenge(solver);
        bytes32 shown = _state(INTERVAL * (_chargeOf(0, true).claim.segment + 1));
        ClaimCharge memory charge = _chargeOf(0, true);
        challenges.settleByProof(number, charge, shown);
        // The verdict has fallen, once: the other dispute has no end of its own.
        challenges.settleByProof(other, charge, shown);
        _expectEnding(other, Ending.None);
        challenges.settleDispute(number);
        vm.expectRevert(abi.encodeWithSelector(ITaskRegistry.WrongStatus.selector, id, Status.Committed));
        challenges.settleByProof(other, charge, shown);
        challenges.settleDispute(other);
    }

    /// @dev The chain is the database: what a proof ends, a bot that reads events knows.
    function test_events_rebuild_what_proofs_end() public {
        for (uint256 wrong = 0; wrong < 2; ++wrong) {
            vm.recordLogs();
            setUp();
            EventReplay bot = new EventReplay();
            uint256 number = _disputed(wrong, true);
            challenges.settleByProof(
                number, _chargeOf(0, true), _state(INTERVAL * (_chargeOf(0, true).claim.segment + 1))
            );
            _replay(bot);
            vm.assertEq(abi.encode(bot.dispute(number)), abi.encode(challenges.dispute(number)));
            challenges.settleDispute(number);
            _replay(bot);
            vm.assertEq(abi.encode(bot.dispute(number)), abi.encode(challenges.dispute(number)));
            vm.assertEq(bot.free(challenger), vault.free(challenger));
        }
    }

    function _replay(EventReplay bot) private {
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i = 0; i < logs.length; ++i) {
            if (vault.isDesk(logs[i].emitter) || logs[i].emitter == address(vault)) bot.replay(logs[i]);
        }
    }

    /// @dev A dispute about the first claim, which is a lie if `wrong` isn't zero.
    function _disputed(uint256 wrong, bool proven) private returns (uint256 number) {
        lie = wrong;
        _pinned(true);
        _toContested(true);
        number = _challenge();
        if (!proven) return number;
        uint32 segment = _chargeOf(0, true).claim.segment;
        _prove(segment);
        _tie(INTERVAL * segment);
        _tie(INTERVAL * (segment + 1));
    }

    function _expectEnding(uint256 number, Ending ending) private view {
        Dispute memory d = challenges.dispute(number);
        vm.assertTrue(d.ending == ending && d.ofReplay);
    }
}
