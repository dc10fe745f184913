// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {PATIENCE} from "../../../contracts/market/IBeacon.sol";
import {Status} from "../../../contracts/market/TaskTypes.sol";
import {ExitHandler} from "./ExitHandler.sol";
import {MarketBase} from "./MarketBase.sol";

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
