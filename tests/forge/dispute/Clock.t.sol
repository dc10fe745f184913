// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Clock, Clocks, Side} from "../../../contracts/dispute/Clock.sol";
import {Dispute, DisputeGame, Reason} from "../../../contracts/dispute/DisputeGame.sol";
import {GameTest} from "./GameTest.sol";

/// @notice Only the side on turn loses time, and exactly the time that it took.
contract ClockTest is GameTest {
    function _clock() private view returns (Clock memory clock) {
        (, clock) = game.dispute(id);
    }

    function testFuzz_packing(uint8 turn, uint8 winner, uint32 a, uint32 c, uint64 last) public pure {
        Clock memory clock = Clock(Side(turn % 3), Side(winner % 3), a, c, last);
        Clock memory copy = Clocks.unpack(Clocks.pack(clock));
        vm.assertEq(keccak256(abi.encode(clock)), keccak256(abi.encode(copy)));
    }

    function test_what_the_views_say() public {
        _start(_replay(2));
        vm.assertEq(game.deadline(id), block.timestamp + CLOCK);
        vm.assertEq(game.timeLeft(id), CLOCK);
        (Dispute memory d, Clock memory clock) = game.dispute(id);
        vm.assertEq(d.asserter, asserter);
        vm.assertEq(d.challenger, challenger);
        vm.assertEq(d.program, _program());
        vm.assertEq(d.constants, _constantsRoot());
        vm.assertEq(d.context, CONTEXT);
        vm.assertTrue(clock.turn == Side.ASSERTER && clock.winner == Side.NONE);
        vm.warp(block.timestamp + CLOCK + 5);
        vm.assertEq(game.timeLeft(id), 0);
        vm.assertEq(game.deadline(id), block.timestamp - 5);
    }

    function testFuzz_each_side_pays_for_its_own_time(uint256 a, uint256 b, uint256 c) public {
        _start(_replay(2));
        a = bound(a, 0, CLOCK - 1);
        b = bound(b, 0, CLOCK - 1);
        c = bound(c, 0, CLOCK - a - 1);
        vm.warp(block.timestamp + a);
        _open();
        vm.warp(block.timestamp + b);
        _pick(1);
        vm.warp(block.timestamp + c);
        _open();
        vm.assertEq(uint256(_clock().asserter), CLOCK - a - c);
        vm.assertEq(uint256(_clock().challenger), CLOCK - b);
        vm.assertEq(uint256(_clock().last), block.timestamp);
    }

    function test_asserter_moves_in_its_last_second() public {
        _start(_replay(2));
        vm.warp(block.timestamp + CLOCK - 1);
        vm.expectRevert(abi.encodeWithSelector(DisputeGame.NotExpired.selector, block.timestamp + 1));
        game.timeout(id);
        _open();
        vm.assertEq(uint256(_clock().asserter), 1);
        // The other side does not inherit the exhausted clock.
        vm.assertEq(game.timeLeft(id), CLOCK);
    }

    function test_asserter_is_late() public {
        _start(_replay(2));
        uint256 deadline = game.deadline(id);
        vm.warp(deadline);
        bytes memory payload = _payload(p);
        vm.prank(asserter);
        vm.expectRevert(abi.encodeWithSelector(Clocks.OutOfTime.selector, deadline));
        game.open(id, p, payload);
        vm.prank(account("anybody"));
        game.timeout(id);
        _expectAnswer(false);
        vm.assertTrue(_clock().winner == Side.CHALLENGER && _clock().turn == Side.NONE);
    }

    function test_challenger_moves_in_its_last_second() public {
        _start(_replay(2));
        _open();
        vm.warp(block.timestamp + CLOCK - 1);
        vm.expectRevert(abi.encodeWithSelector(DisputeGame.NotExpired.selector, block.timestamp + 1));
        game.timeout(id);
        _pick(1);
        vm.assertEq(game.timeLeft(id), CLOCK);
    }

    function test_challenger_is_late() public {
        _start(_replay(2));
        _open();
        uint256 deadline = game.deadline(id);
        vm.warp(deadline);
        vm.prank(challenger);
        vm.expectRevert(abi.encodeWithSelector(Clocks.OutOfTime.selector, deadline));
        game.pick(id, p, 1, opened);
        game.timeout(id);
        _expectAnswer(true);
        vm.assertTrue(_clock().winner == Side.ASSERTER);
    }

    /// @dev Even the proof that would win is a move and has to be in time.
    function test_last_move_is_late() public {
        _start(_replay(2));
        _toSlot(0);
        uint256 deadline = game.deadline(id);
        vm.warp(deadline);
        vm.prank(asserter);
        vm.expectRevert(abi.encodeWithSelector(Clocks.OutOfTime.selector, deadline));
        game.proveSlot(id, p, _slotProof(0));
        game.timeout(id);
        _expectAnswer(false);
    }

    function test_asserter_pays_for_describing_and_stays_on_turn() public {
        _start(_replay(2));
        _toNode(1);
        vm.warp(block.timestamp + 10);
        _describe();
        vm.assertTrue(_clock().turn == Side.ASSERTER);
        vm.assertEq(uint256(_clock().asserter), CLOCK - 10);
        vm.assertEq(game.timeLeft(id), CLOCK - 10);
    }

    function test_end_by_timeout_is_announced() public {
        _start(_replay(2));
        vm.warp(block.timestamp + CLOCK);
        vm.expectEmit(address(game));
        emit DisputeGame.Resolved(id, Side.CHALLENGER, Reason.TIMEOUT);
        game.timeout(id);
    }
}
