// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Status} from "../../../contracts/market/TaskTypes.sol";
import {Vm} from "../Base.sol";
import {EventReplay} from "./EventReplay.sol";
import {MarketBase} from "./MarketBase.sol";

/// @notice The chain is the database: after every stage, events alone give the state that the views give.
contract EventsTest is MarketBase {
    EventReplay private bot;

    function setUp() public override {
        vm.recordLogs();
        super.setUp();
        bot = new EventReplay();
        _expectRebuilt();
        vm.assertEq(bot.game(), address(game));
        vm.assertEq(bot.profiles(), address(profiles));
    }

    function test_to_an_accepted_task_with_failed_challenges() public {
        _submit();
        _expectRebuilt();
        _join(verifier);
        _expectRebuilt();
        _profile();
        _expectRebuilt();
        _accept();
        _expectRebuilt();
        _progress(2);
        _expectRebuilt();
        _commit();
        _expectRebuilt();
        _draw();
        _expectRebuilt();
        _verdict(verifier, true);
        _expectRebuilt();
        for (uint256 i = 0; i < 3; ++i) {
            _challenge();
            _expectRebuilt();
            game.finish(true);
            _expectRebuilt();
        }
        _pass(20 minutes + 1);
        market.settle(id);
        _expectRebuilt();
        vm.prank(solver);
        market.withdraw();
        _expectRebuilt();
    }

    function test_to_a_rejected_task_with_a_void_verdict_and_a_default() public {
        _toDisputed(true);
        game.finish(true);
        _challenge();
        _challenge(solver);
        _challenge(nextVerifier);
        _expectRebuilt();
        game.report(3, false);
        _expectRebuilt();
        market.releaseBond(2);
        game.report(4, true);
        _expectRebuilt();
        _join(verifier);
        _expectRebuilt();
        _pass(30 minutes + 1);
        market.claimVerifierDefault(id);
        _expectRebuilt();
        _join(nextVerifier);
        _verdict(nextVerifier, false);
        _expectRebuilt();
        _pass(20 minutes + 1);
        market.settle(id);
        _expectRebuilt();
    }

    function test_to_a_cancelled_task() public {
        _submit();
        _join(verifier);
        _profile();
        _pass(10 minutes + 1);
        vm.prank(verifier);
        market.leaveAsVerifier(id);
        _expectRebuilt();
        vm.prank(submitter);
        market.cancelTask(id);
        _expectRebuilt();
    }

    function test_to_a_solver_default() public {
        _toTraining();
        _pass(1 hours + 1);
        market.claimSolverDefault(id);
        _expectRebuilt();
    }

    function _expectRebuilt() private {
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i = 0; i < logs.length; ++i) {
            if (logs[i].emitter == address(market)) bot.replay(logs[i]);
        }
        vm.assertEq(keccak256(abi.encode(bot.task(id))), keccak256(abi.encode(market.task(id))));
        if (market.task(id).status != Status.None) {
            vm.assertEq(keccak256(abi.encode(bot.terms(id))), keccak256(abi.encode(_terms())));
            vm.assertEq(keccak256(abi.encode(bot.terms(id))), keccak256(abi.encode(market.terms(id))));
        }
        for (uint256 number = 0; number <= game.disputes(); ++number) {
            vm.assertEq(keccak256(abi.encode(bot.dispute(number))), keccak256(abi.encode(market.dispute(number))));
        }
        address[6] memory parties = [submitter, solver, verifier, nextVerifier, challenger, treasury];
        for (uint256 i = 0; i < parties.length; ++i) {
            vm.assertEq(bot.credits(parties[i]), market.credits(parties[i]));
        }
    }
}
