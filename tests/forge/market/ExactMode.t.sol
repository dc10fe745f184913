// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IProfiles} from "../../../contracts/market/IProfiles.sol";
import {ITaskMarket} from "../../../contracts/market/ITaskMarket.sol";
import {Portion, Witness} from "../../../contracts/market/ProfileTypes.sol";
import {Claim, LogProof, Terms} from "../../../contracts/market/TaskTypes.sol";
import {MarketBase} from "./MarketBase.sol";

/// @notice A task whose training is canonical, bit for bit: no profile, and roots decide.
contract ExactModeTest is MarketBase {
    function test_nobody_profiles_and_the_solver_agrees_to_zeros() public {
        _submit();
        vm.prank(solver);
        vm.expectRevert(ITaskMarket.NoVerifier.selector);
        market.acceptTask{value: 5 ether}(id, _price, [uint64(0), 0, 0]);
        _join(verifier);
        (Portion[] memory portions, bytes32 root, Witness[3] memory witnesses) = _measured();
        vm.prank(verifier);
        vm.expectRevert(abi.encodeWithSelector(IProfiles.ExactMode.selector, id));
        profiles.post(id, portions, root, witnesses, "profile");
        vm.prank(solver);
        vm.expectRevert(ITaskMarket.ProfileMismatch.selector);
        market.acceptTask{value: 5 ether}(id, _price, [uint64(1), 0, 0]);
        _acceptExactly();
        vm.assertEq(market.task(id).thresholds[0], 0);
    }

    function test_equal_roots_accept_whatever_the_sums_say() public {
        _toExactlyDrawn();
        (Claim[] memory claims, LogProof[] memory proofs) = _exactClaims();
        claims[1].distances[1] = type(uint256).max;
        claims[1].references[0] = type(uint256).max;
        _post(claims, proofs);
        vm.assertTrue(market.task(id).accepted);
    }

    function test_other_roots_reject_whatever_the_sums_say() public {
        _toExactlyDrawn();
        (Claim[] memory claims, LogProof[] memory proofs) = _exactClaims();
        claims[1].replay = "another";
        (claims[1].distances, claims[1].references) = ([uint256(0), 0, 0], [uint256(1), 1, 1]);
        _post(claims, proofs);
        vm.assertFalse(market.task(id).accepted);
    }

    function test_a_zero_state_is_equal_to_nothing() public {
        log[2] = 0;
        _toExactlyDrawn();
        (Claim[] memory claims, LogProof[] memory proofs) = _exactClaims();
        for (uint256 i = 0; i < 2; ++i) {
            if (claims[i].replay == 0) claims[i].replay = "replay";
        }
        _post(claims, proofs);
        vm.assertFalse(market.task(id).accepted);
    }

    function test_the_verifier_leaves_and_the_submitter_cancels_at_any_time() public {
        _submit();
        _join(verifier);
        vm.prank(verifier);
        market.leaveAsVerifier(id);
        _join(nextVerifier);
        vm.prank(submitter);
        market.cancelTask(id);
        vm.assertEq(market.credits(nextVerifier), 3 ether);
        _expectConserved();
    }

    function _terms() internal view override returns (Terms memory) {
        Terms memory s = _exact(super._terms());
        s.draws = 4;
        return s;
    }

    function _acceptExactly() private {
        vm.prank(solver);
        market.acceptTask{value: 5 ether}(id, _price, [uint64(0), 0, 0]);
    }

    function _toExactlyDrawn() private {
        _submit();
        _join(verifier);
        _acceptExactly();
        _commit();
        _draw();
    }

    function _exactClaims() private view returns (Claim[] memory claims, LogProof[] memory proofs) {
        (claims, proofs) = _claims(true);
        for (uint256 i = 0; i < claims.length; ++i) {
            claims[i].replay = claims[i].end;
        }
    }

    function _post(Claim[] memory claims, LogProof[] memory proofs) private {
        vm.prank(verifier);
        market.postVerdict(id, claims, proofs);
    }
}
