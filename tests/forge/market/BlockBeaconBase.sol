// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ForcedErrors} from "../../../contracts/incentives/ForcedErrors.sol";
import {Outcome} from "../../../contracts/market/TaskTypes.sol";
import {MarketBase} from "./MarketBase.sol";

/// @notice A market of a beacon of blocks: rounds come with blocks, and nobody names a seed.
abstract contract BlockBeaconBase is MarketBase {
    /// @dev One task to its end, whatever is drawn.
    function _live() internal {
        _toCommitted();
        _give(proofs.proof(id).round, 0);
        _seat(verifier, ForcedErrors.commitment(verifier, id, secret));
        _give(seats.seating(id).dutyRound, 0);
        _verdict(verifier, true);
        _give(verdicts.verdict(id).watchRound, 0);
        verdicts.openWatch(id);
        _disclose(verifier, true);
        _settle();
        vm.assertEq(uint256(registry.task(id).outcome), uint256(Outcome.Accepted));
        vm.assertEq(_gain(verifier), 2 ether);
    }

    function _give(uint64 round, bytes32) internal override {
        vm.roll(round + 1);
        beacon.record(round);
    }
}
