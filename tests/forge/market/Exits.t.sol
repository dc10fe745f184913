// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {MarketBase, PATIENCE, Status} from "./MarketBase.sol";
import {ObjectionHandler, Status} from "./ObjectionHandler.sol";

/// @notice The beacon dies, and all value comes out (docs/spec/market.md, "Exits").
contract ExitsTest is MarketBase {
    /// @dev A wait of two weeks, a seat that nobody takes and a window or two: then a task is over, from wherever it
    /// is.
    uint256 private constant ROUNDS = 12;

    uint256[9] private begun;

    /// @dev Fixed lives that end in every status, or the test would say little.
    function test_from_lives_that_end_in_every_status_all_value_comes_out() public {
        vm.pauseGasMetering();
        for (uint256 run = 0; run < 10; ++run) {
            testFuzz_from_any_life_all_value_comes_out(run);
        }
        for (uint256 status = 1; status <= 8; ++status) {
            vm.assertTrue(begun[status] > 0, vm.toString(status));
        }
    }

    /// forge-config: default.fuzz.runs = 2
    /// forge-config: ci.fuzz.runs = 32
    function testFuzz_from_any_life_all_value_comes_out(uint256 seed) public {
        vm.pauseGasMetering();
        ExitHandler handler = new ExitHandler();
        for (uint256 i = 0; i < 40 + 16 * (seed % 10); ++i) {
            _act(handler, uint256(keccak256(abi.encode("exit", seed, i))));
        }
        bytes32[] memory ids = handler.ids();
        for (uint256 i = 0; i < ids.length; ++i) {
            ++begun[uint256(handler.statusOf(ids[i]))];
        }
        for (uint256 i = 0; i < ROUNDS; ++i) {
            handler.leave();
        }
        for (uint256 i = 0; i < ids.length; ++i) {
            vm.assertEq(uint256(handler.statusOf(ids[i])), uint256(Status.Closed));
            vm.assertEq(handler.held(ids[i]), 0);
        }
    }

    function _act(ExitHandler handler, uint256 dice) private {
        if (dice % 20 == 17) handler.ask(dice >> 8, dice >> 16, dice >> 24);
        else if (dice % 20 == 18) handler.hear(dice >> 8, dice >> 16);
        else if (dice % 20 == 11) handler.object(dice >> 8, dice >> 16, dice >> 24);
        else if (dice % 20 == 12) handler.contest(dice >> 8, dice >> 16);
        else if (dice % 10 == 8) handler.resolve(dice >> 8, dice >> 16);
        else if (dice % 5 == 0) handler.submit(dice >> 8);
        else handler.advance(dice >> 8, dice >> 16);
    }

    /// @dev Whose secret leaked has paid already, and has no seat to leave.
    function test_a_beacon_that_dies_after_a_leak() public {
        _toVerifying(false);
        _verdict(verifier, true);
        _reportLeak(challenger);
        _pass(2 * PATIENCE + 1);
        settlement.abandon(id);
        vm.assertEq(_gain(submitter), -1 ether);
        vm.assertEq(_gain(solver), 0);
    }
}

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
