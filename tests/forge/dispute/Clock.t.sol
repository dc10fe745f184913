// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {DisputeStorage, Reason} from "../../../contracts/dispute/DisputeStorage.sol";
import {Clock, ClockExpiry, GameTest, Level, Result} from "./GameTest.sol";

/// @notice Only the side on turn loses time, exactly the time that it takes, and never has less than the grace of what
/// it has to answer.
contract ClockTest is GameTest {
    function setUp() public override {
        super.setUp();
        outputs[_key(1, STEP)][5][0] ^= 1;
        states[_key(1, STEP + 1)][0][0] ^= 1;
        _start(_replay(2));
    }

    function _clock() private view returns (Clock memory clock) {
        (, clock) = game.dispute(number);
    }

    function test_what_the_views_say() public {
        vm.assertEq(game.deadline(number), block.timestamp + CLOCK);
        vm.assertEq(game.timeLeft(number), CLOCK);
        (bytes32 head, Clock memory clock) = game.dispute(number);
        vm.assertEq(head, game.head(number));
        vm.assertEq(clock.waiting, challenger);
        vm.assertTrue(clock.level == Level.STEPS && clock.result == Result.NONE && clock.isAsserterOnTurn);
        vm.assertTrue(clock.height == 0 && clock.spare == CLOCK);
        vm.warp(block.timestamp + CLOCK + 5);
        vm.assertEq(game.timeLeft(number), 0);
        vm.assertEq(game.deadline(number), block.timestamp - 5);
    }

    /// @dev What lies in storage behind the disputes is none.
    function test_numbers_have_32_bits() public {
        bytes32 clock = vm.load(address(game), bytes32(2 + 2 * number));
        vm.store(address(game), bytes32(uint256(2 + 2 * (2 ** 32 - 1))), clock);
        vm.assertEq(game.deadline(2 ** 32 - 1), game.deadline(number));
        bytes32 head = vm.load(address(game), bytes32(1 + 2 * number));
        vm.store(address(game), bytes32(uint256(1 + 2 * (2 ** 32 - 1))), head);
        (bytes memory call,) = _prepare();
        (call[4], call[5], call[6], call[7]) = (0xff, 0xff, 0xff, 0xff);
        _send(_onTurn(), call);
        vm.assertNotEq(game.head(2 ** 32 - 1), head);
        vm.store(address(game), bytes32(uint256(2 + 2 * 2 ** 32)), clock);
        vm.expectRevert(abi.encodeWithSelector(DisputeStorage.UnknownDispute.selector, 2 ** 32));
        game.deadline(2 ** 32);
    }

    function testFuzz_each_side_pays_for_its_own_time(uint256 a, uint256 b, uint256 c) public {
        a = bound(a, 0, CLOCK - MOVE_GRACE - 1);
        b = bound(b, 0, CLOCK - 1);
        c = bound(c, 0, CLOCK - a - 1);
        vm.warp(block.timestamp + a);
        _move();
        vm.assertEq(uint256(_clock().spare), CLOCK - a);
        vm.assertEq(_clock().waiting, asserter);
        vm.assertEq(game.timeLeft(number), CLOCK);
        vm.warp(block.timestamp + b);
        _move();
        vm.assertEq(uint256(_clock().spare), CLOCK - b);
        vm.assertEq(game.timeLeft(number), CLOCK - a);
        vm.warp(block.timestamp + c);
        _move();
        vm.assertEq(uint256(_clock().spare), CLOCK - a - c);
    }

    /// @dev A trace has to be executed, what lies below it not any more.
    function test_whoever_comes_on_turn_has_the_grace_of_the_level() public {
        vm.warp(block.timestamp + CLOCK - 1);
        _move();
        vm.assertTrue(_clock().level == Level.NODES);
        vm.warp(block.timestamp + CLOCK - 1);
        _move();
        vm.assertTrue(_clock().level == Level.LEAF);
        // The asserter had one second left.
        vm.assertEq(game.timeLeft(number), MOVE_GRACE);
        vm.warp(block.timestamp + MOVE_GRACE - 1);
        _move();
        vm.assertEq(game.timeLeft(number), MOVE_GRACE);
        vm.warp(block.timestamp + 10);
        _move();
        vm.assertEq(game.timeLeft(number), MOVE_GRACE);
        vm.assertEq(uint256(_clock().spare), MOVE_GRACE - 10);
    }

    function test_a_short_clock_starts_with_the_grace_of_a_replay() public {
        params.clock = 1;
        _start(params);
        vm.assertEq(game.timeLeft(number), REPLAY_GRACE);
        vm.assertEq(uint256(_clock().spare), 1);
        _move();
        vm.assertEq(game.timeLeft(number), REPLAY_GRACE);
        // No side pays for the time that it has not used.
        vm.assertEq(uint256(_clock().spare), REPLAY_GRACE);
    }

    function test_the_last_second() public {
        vm.warp(block.timestamp + CLOCK - 1);
        vm.expectRevert(abi.encodeWithSelector(ClockExpiry.NotExpired.selector, block.timestamp + 1));
        game.timeout(number);
        _move();
        vm.warp(block.timestamp + CLOCK - 1);
        vm.expectRevert(abi.encodeWithSelector(ClockExpiry.NotExpired.selector, block.timestamp + 1));
        game.timeout(number);
        _move();
    }

    function _late(bool asserterWins) private {
        uint256 deadline = game.deadline(number);
        vm.warp(deadline);
        (bytes memory call,) = _prepare();
        _refuse(_onTurn(), call, abi.encodeWithSelector(ClockExpiry.OutOfTime.selector, deadline));
        vm.expectEmit(address(game));
        emit DisputeStorage.Resolved(number, asserterWins, Reason.TIMEOUT);
        vm.prank(account("anybody"));
        game.timeout(number);
        _expectResult(asserterWins);
        vm.assertTrue(_clock().result == (asserterWins ? Result.ASSERTER_WON : Result.CHALLENGER_WON));
    }

    function test_the_asserter_is_late() public {
        _late(false);
    }

    function test_the_challenger_is_late() public {
        _move();
        _late(true);
    }

    /// @dev Even the proof that would win is a move and has to be in time.
    function test_the_last_move_is_late() public {
        for (uint256 i = 0; i < 4; i++) {
            _move();
        }
        vm.assertTrue(p.level == Level.BODY && isAsserterOnTurn);
        _late(false);
    }

    /// @dev 16 and 2 positions that have to be replayed, 7 + 7 + 1 + 6 + 1 others.
    function test_longest() public view {
        vm.assertEq(game.longest(CLOCK), 2 * uint256(CLOCK) + 17 * uint256(REPLAY_GRACE) + 22 * uint256(MOVE_GRACE));
        vm.assertEq(game.longest(0), 17 * uint256(REPLAY_GRACE) + 22 * uint256(MOVE_GRACE));
    }
}
