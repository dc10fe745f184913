// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Status} from "../../../contracts/market/TaskTypes.sol";
import {ObjectionHandler} from "./ObjectionHandler.sol";

/// @notice Ends every task with the verbs of anybody, the verb of its submitter, and time: the beacon is dead, nobody
/// does any duty.
contract ExitHandler is ObjectionHandler {
    /// @notice Tries all verbs once, after a time that is longer than any window.
    function leave() external timed {
        vm.warp(vm.getBlockTimestamp() + 8 days);
        _endDisputes();
        for (uint256 i = 0; i < _ids.length; ++i) {
            _push(_ids[i]);
        }
        for (uint256 i = 0; i < _asked.length; ++i) {
            _try(address(demands), abi.encodeCall(demands.expire, (_asked[i])));
        }
    }

    /// @notice What is left of a task: in stakes, escrow, bonds and bids.
    function held(bytes32 taskId) external view returns (uint256 sum) {
        address[7] memory desks = _lockingDesks();
        for (uint256 i = 0; i < desks.length; ++i) {
            sum += locked(desks[i], taskId) + vault.pot(desks[i], taskId);
        }
        bytes32 roundId = auction.lastRound(address(registry), taskId);
        return sum + locked(address(auction), roundId) + vault.pot(address(auction), roundId);
    }

    function statusOf(bytes32 taskId) external view returns (Status) {
        return registry.task(taskId).status;
    }

    /// @dev The game ends by its clocks.
    function _endDisputes() private {
        for (uint256 number = 1; number <= game.disputes(); ++number) {
            if (!_reported[number]) game.report(number, number % 2 == 0);
            _reported[number] = true;
            _try(address(challenges), abi.encodeCall(challenges.settleDispute, (number)));
        }
        for (uint256 number = 1; number <= profileGame.disputes(); ++number) {
            if (!_heard[number]) profileGame.report(number, number % 2 == 0);
            _heard[number] = true;
            _try(address(profiles), abi.encodeCall(profiles.settleDispute, (number)));
        }
        for (uint256 number = 1; number <= objectionGame.disputes(); ++number) {
            if (!_decided[number]) objectionGame.report(number, number % 2 == 0);
            _decided[number] = true;
            _try(address(objections), abi.encodeCall(objections.settleDispute, (number)));
        }
        for (uint256 number = 1; number <= counterclaimGame.disputes(); ++number) {
            if (!_ruled[number]) counterclaimGame.report(number, number % 2 == 0);
            _ruled[number] = true;
            _try(address(counterclaims), abi.encodeCall(counterclaims.settleDispute, (number)));
        }
        for (uint256 number = 1; number <= counterclaims.last(); ++number) {
            _try(address(counterclaims), abi.encodeCall(counterclaims.conclude, (number)));
        }
    }

    function _push(bytes32 taskId) private {
        _try(address(seats), abi.encodeCall(seats.openClaims, (taskId)));
        _try(address(seats), abi.encodeCall(seats.decide, (taskId)));
        _try(address(profiles), abi.encodeCall(profiles.conclude, (taskId)));
        _try(address(settlement), abi.encodeCall(settlement.claimSeatDefault, (taskId)));
        _try(address(settlement), abi.encodeCall(settlement.claimSolverDefault, (taskId)));
        _try(address(verdicts), abi.encodeCall(verdicts.openWatch, (taskId)));
        _try(address(verdicts), abi.encodeCall(verdicts.claimUndisclosed, (taskId)));
        _try(address(settlement), abi.encodeCall(settlement.settle, (taskId)));
        _try(address(settlement), abi.encodeCall(settlement.claimUnserved, (taskId)));
        _try(address(settlement), abi.encodeCall(settlement.abandon, (taskId)));
        _try(address(auction), abi.encodeCall(auction.expire, (auction.lastRound(address(registry), taskId))));
        vm.prank(submitter);
        _try(address(registry), abi.encodeCall(registry.cancel, (taskId)));
    }

    /// @dev Whether it works depends on the state.
    function _try(address desk, bytes memory call) private {
        // slither-disable-next-line unchecked-lowlevel
        (bool worked,) = desk.call(call);
        if (worked) ++released;
    }
}
