// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Claim, ClaimCharge, Disclosure, ForcedErrors, IVerdicts, LogProof, Look, MarketBase} from "./MarketBase.sol";
import {Outcome, StartParams, Terms} from "./MarketBase.sol";

/// @notice A task whose training is canonical, bit for bit: no profile, and ends are equal and finite or rejected.
contract ExactModeTest is MarketBase {
    /// @dev The wrong one is a receipt, which nobody can tell from a true one without an execution.
    function test_a_planted_error_does_not_show_itself() public {
        _toExactlyVerifying(true);
        _verdict(verifier, true);
        vm.assertEq(verdicts.verdict(id).rejecting, 0);
        _openWatch();
        _disclose(verifier, true);
        vm.assertEq(verdicts.verdict(id).rejecting, 0);
        _settle();
        vm.assertEq(uint256(registry.task(id).outcome), uint256(Outcome.Accepted));
    }

    /// @dev Claims that reject by themselves go on rejecting; one of them may be the one with the error.
    function test_a_planted_error_excuses_nothing_else() public {
        for (uint256 i = 0; i < 2; ++i) {
            setUp();
            // Another task has another draw.
            secret = keccak256(abi.encode("secret", i));
            _toExactlyVerifying(true);
            _verdict(verifier, false);
            vm.assertEq(verdicts.verdict(id).rejecting, 1);
            _openWatch();
            _disclose(verifier, false);
            vm.assertEq(verdicts.verdict(id).rejecting, 1);
        }
    }

    /// @dev The wrong root differs; the true one doesn't, and the claim goes on rejecting.
    function test_a_planted_error_in_a_claim_that_is_not_finite() public {
        for (uint256 other = 0; other < 2; ++other) {
            setUp();
            _toExactlyVerifying(true);
            (Claim[] memory claims, LogProof[] memory logProofs) = _claims(true);
            (, uint32 index, bytes32 wrong) = _duty();
            claims[index].references[1] = type(uint256).max;
            if (other == 1) claims[(index + 1) % 4].replay = "another";
            Claim memory truth = abi.decode(abi.encode(claims[index]), (Claim));
            _plant(claims[index], wrong);
            bytes32 sealedClaim = ForcedErrors.sealedClaim(id, registry.task(id).seating, salt, truth);
            vm.prank(verifier);
            verdicts.post(id, claims, logProofs, new Look[](0), sealedClaim);
            _expectConclusion(false, other == 0);
            _openWatch();
            vm.warp(verdicts.verdict(id).watchUntil + 1);
            verdicts.disclose(id, Disclosure(secret, salt, truth, 0, _hashes(claims)));
            vm.assertEq(verdicts.verdict(id).rejecting, 1 + other);
            _expectConclusion(false, other == 0);
        }
    }

    function test_claims_have_receipts_where_roots_are_public_and_only_there() public {
        _toExactlyVerifying(false);
        for (uint256 missing = 0; missing < 2; ++missing) {
            (Claim[] memory claims, LogProof[] memory logProofs) = _claims(true);
            if (missing == 0) claims[2].before = 0;
            else claims[2].receipt = 0;
            _expectRefusal(verifier, abi.encodeWithSelector(IVerdicts.WrongReceipt.selector, uint256(2)));
            verdicts.post(id, claims, logProofs, new Look[](0), "nothing");
        }
    }

    /// @dev The state before the last step is a replay; the receipt is disputed as such.
    function test_both_parts_of_a_receipt_are_challenged() public {
        _toExactlyVerifying(false);
        _judge(verifier, true);
        (Claim[] memory claims,) = _claims(true);
        ClaimCharge memory charge;
        (charge.claim, charge.entries, charge.kind) = (claims[0], _entries(true, false), 8);
        _challenge(challenger, charge);
        StartParams memory started = game.started();
        uint64 first = 10 * uint64(claims[0].segment);
        vm.assertEq(uint256(started.kind), 1);
        vm.assertEq(started.start, claims[0].start);
        vm.assertEq(started.end, claims[0].before);
        vm.assertEq(uint256(started.firstStep), first);
        vm.assertEq(uint256(started.steps), 9);
        charge.kind = 7;
        _challenge(challenger, charge);
        started = game.started();
        vm.assertEq(uint256(started.kind), 7);
        vm.assertEq(started.start, claims[0].before);
        vm.assertEq(started.end, bytes32(0));
        vm.assertEq(started.x, claims[0].receipt);
        vm.assertEq(started.y, keccak256(abi.encodePacked(bytes32("draw"), claims[0].segment)));
        vm.assertEq(uint256(started.firstStep), first + 9);
        vm.assertEq(uint256(started.steps), 1);
    }

    function test_a_zero_state_is_equal_to_nothing() public {
        log[2] = 0;
        _toExactlyVerifying(false);
        (Claim[] memory claims, LogProof[] memory logProofs) = _claims(true);
        for (uint256 i = 0; i < claims.length; ++i) {
            if (claims[i].replay == 0) claims[i].replay = "replay";
        }
        vm.prank(verifier);
        verdicts.post(id, claims, logProofs, new Look[](0), "nothing");
        vm.assertEq(verdicts.verdict(id).rejecting, 2);
        _expectConclusion(false, false);
    }

    function _expectConclusion(bool accepted, bool repeated) private view {
        (bool accepts, bool repeats,) = verdicts.conclude(id);
        vm.assertEq(accepts, accepted);
        vm.assertEq(repeats, repeated);
    }

    function _terms() internal view override returns (Terms memory) {
        Terms memory s = _exact(super._terms());
        s.draws = 4;
        return s;
    }

    function _claims(bool accepts) internal view override returns (Claim[] memory claims, LogProof[] memory logProofs) {
        (claims, logProofs) = super._claims(true);
        for (uint256 i = 0; i < claims.length; ++i) {
            claims[i].replay = claims[i].end;
            claims[i].distances = [uint256(0), 0, 0];
        }
        if (!accepts) claims[3].replay = "another";
    }
}
