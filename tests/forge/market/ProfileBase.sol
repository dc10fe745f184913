// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Charge, MarketBase, NaiveLog, Portion, Reordered, StartParams, Status, Witness} from "./MarketBase.sol";

/// @notice An open task with a posted profile, and a helper for each charge.
abstract contract ProfileBase is MarketBase {
    function setUp() public virtual override {
        super.setUp();
        _submit();
        _seat(verifier);
        _profile();
    }

    function _reordered(uint256 rerun) internal pure returns (Reordered memory) {
        return Reordered(_programs()[rerun], NaiveLog.inclusionPath(_programs(), rerun, 0, RERUNS));
    }

    function _bond() internal view returns (uint128) {
        return profiles.bondOf(id);
    }

    function _chargePortion(address who) internal returns (uint256) {
        Portion[] memory portions = _portions();
        _announceProfileCharge(who, Charge.Portion, 1, 0);
        vm.prank(who);
        profiles.challengePortion(id, portions, 1, _opening());
        return profileGame.disputes();
    }

    function _chargeDistance(uint32 index, uint8 component) internal {
        Witness memory rerun = _witness(index);
        _announceProfileCharge(challenger, Charge.Distance, rerun.index, component);
        vm.prank(challenger);
        profiles.challengeDistance(id, _portions(), rerun, component, _opening());
    }

    function _chargeReference(uint32 segment, uint8 component) internal {
        _announceProfileCharge(challenger, Charge.Reference, segment, component);
        vm.prank(challenger);
        profiles.challengeReference(id, _portions(), segment, component, _opening());
    }

    /// @dev The profile with reruns that demand more than the witness: rerun 0 parts by one more in component 2.
    function _understate() internal returns (Witness memory hidden) {
        bytes32[] memory leaves = _leaves();
        hidden.rerun = _rerun(0);
        hidden.rerun.distances[1] = _rerun(WORST).distances[1] + 1;
        leaves[0] = keccak256(abi.encode(hidden.rerun));
        hidden.path = NaiveLog.inclusionPath(leaves, 0, 0, leaves.length);
        _postLeaves(leaves);
    }

    /// @dev A fresh task whose profile has these leaves; rerun `WORST` is the witness of all components.
    function _postLeaves(bytes32[] memory leaves) internal {
        id = registry.computeTaskId(submitter, registry.nonces(submitter), _terms());
        _submit();
        _seat(verifier);
        Witness memory worst = Witness(WORST, _rerun(WORST), NaiveLog.inclusionPath(leaves, WORST, 0, leaves.length));
        bytes32 root = NaiveLog.root(leaves, 0, leaves.length);
        vm.prank(verifier);
        profiles.post(id, _portions(), root, [worst, worst, worst], "profile");
    }

    /// @dev The profiler's stake is split, and nobody sits.
    function _expectVoid(address winner) internal view {
        vm.assertEq(registry.task(id).holder, address(0));
        vm.assertEq(profiles.profile(id).verifier, address(0));
        _expectStatus(Status.Profiling);
        vm.assertEq(_gain(winner), 2 ether);
        vm.assertEq(_gain(verifier), -4 ether);
        vm.assertEq(_rest(), 2 ether);
        vm.assertEq(vault.locked(address(profiles), id, winner), 0);
        vm.assertEq(seats.seating(id).number, 2);
    }

    function _started() internal view returns (StartParams memory) {
        return profileGame.started();
    }
}
