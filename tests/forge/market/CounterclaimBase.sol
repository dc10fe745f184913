// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {DataDemandsBase} from "./DataDemandsBase.sol";
import {Claim, ClaimCharge, LogProof, Reordered, Rerun} from "./MarketBase.sol";

/// @notice Counterclaims about segments of a task with thresholds, and disputes about them.
abstract contract CounterclaimBase is DataDemandsBase {
    /// @dev A claim that the rule rejects.
    function _bad(uint32 segment) internal view returns (Claim memory claim) {
        claim.segment = segment;
        (claim.start, claim.end) = (log[segment], log[segment + 1]);
        claim.replay = keccak256(abi.encode("replay", segment));
        claim.distances = [uint256(1), 1 << 23, 0];
        claim.references = [uint256(1 << 24), 1 << 24, 0];
    }

    function _hash(Claim memory claim) internal pure returns (bytes32) {
        return keccak256(abi.encode(keccak256(abi.encode(claim)), bytes32(0)));
    }

    /// @dev Against its replay.
    function _charge(uint32 segment) internal view returns (ClaimCharge memory charge) {
        (charge.claim, charge.kind) = (_bad(segment), 1);
    }

    /// @dev In the block before the next call.
    function _announceCounterclaim(address who, bytes32 entry) internal {
        counterclaims.announce(keccak256(abi.encode(who, id, keccak256(abi.encode(entry)))));
        vm.roll(vm.getBlockNumber() + 1);
    }

    /// @dev In the block before the next call, which opens with `PAYLOAD`.
    function _announceContest(address who, uint256 number, ClaimCharge memory charge) internal {
        bytes32 evidence =
            keccak256(abi.encode(number, charge.kind, charge.component, charge.rerun, keccak256(PAYLOAD)));
        counterclaims.announce(keccak256(abi.encode(who, id, evidence)));
        vm.roll(vm.getBlockNumber() + 1);
    }

    function _counterclaim(address who, uint32 segment) internal returns (uint256) {
        return _counterclaimOf(who, _bad(segment), new Rerun[](0));
    }

    function _counterclaimOf(address who, Claim memory claim, Rerun[] memory look) internal returns (uint256) {
        LogProof memory logProof = LogProof(_inclusion(claim.segment), _inclusion(claim.segment + 1));
        bytes32 hash = look.length == 0 ? bytes32(0) : keccak256(abi.encode(look));
        _announceCounterclaim(who, keccak256(abi.encode(keccak256(abi.encode(claim)), hash)));
        vm.prank(who);
        return counterclaims.counterclaim(id, claim, logProof, look, type(uint128).max);
    }

    function _contest(address who, uint256 number, ClaimCharge memory charge) internal returns (uint256) {
        Reordered memory none = Reordered(0, new bytes32[](0));
        _announceContest(who, number, charge);
        vm.prank(who);
        return counterclaims.contest(number, charge, new Rerun[](0), none, _opening());
    }
}
