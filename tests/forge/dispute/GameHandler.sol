// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Clock, DisputeGame, GameTest, Level, Result} from "./GameTest.sol";

/// @notice Disputes over the toy program, one after the other, in which both sides move, wait, give up and are late as
/// it comes, and in between send what is not allowed. One side speaks the truth. What the disputes are about is left
/// open.
abstract contract GameHandler is GameTest {
    /// @dev By number of the dispute: as it ended. NONE while it runs.
    mapping(uint256 number => Result) public ended;
    uint256 public finished;
    uint256 public proofs;
    uint256 public resignations;
    uint256 public timeouts;
    uint256 public intrusions;
    uint256 public longestGame; // moves
    /// @dev Of the dispute that runs: when it began, and what it may take.
    uint256 public began;
    uint256 public granted;

    uint256 private _now;
    uint256 private _moves;
    bytes private _last;

    constructor() {
        setUp();
        _now = block.timestamp;
        _another(6);
    }

    /// @dev Time that a call sets is forgotten after it, so every call begins by setting it again.
    modifier timed() {
        vm.warp(_now);
        _;
        vm.assertEq(resolver.calls(), finished);
    }

    function currentGame() external view returns (DisputeGame) {
        return game;
    }

    function budgetOfEach() external view returns (uint32) {
        return budget;
    }

    /// @dev The most that a side has left on its clock.
    function mostOnClock() external view returns (uint256) {
        return budget > REPLAY_GRACE ? budget : REPLAY_GRACE;
    }

    function time() external view returns (uint256) {
        return _now;
    }

    /// @notice The side on turn makes the move that an honest player would make for its version; another dispute begins
    /// after the end.
    function play(uint256 dice) external timed {
        if (ended[number] != Result.NONE) return _another(dice);
        (bytes memory call, At memory next) = _prepare();
        bool isLiar = _mine() == 1;
        // A lie cannot be proved, and it can be too late: nothing is left but to wait.
        if ((next.level == Level.NONE && isLiar) || game.timeLeft(number) == 0) return _intrude(_onTurn(), call);
        bool isAsserter = isAsserterOnTurn;
        _send(_onTurn(), call);
        _last = call;
        ++_moves;
        if (next.level == Level.NONE) {
            ++proofs;
            return _over(isAsserter);
        }
        _grant(next);
        _advanceTo(next);
    }

    /// @notice Time passes: mostly less than the side on turn has left.
    function wait(uint256 dice) external timed {
        if (ended[number] != Result.NONE) return;
        uint256 left = game.timeLeft(number);
        _now += dice % 8 == 0 ? left + (dice >> 8) % 1000 : (dice >> 8) % (left + 1);
    }

    /// @notice Somebody calls `timeout`; it succeeds exactly if the time of the side on turn is over.
    function late() external timed {
        bool isOver = ended[number] == Result.NONE && game.timeLeft(number) == 0;
        vm.prank(account("anybody"));
        (bool success,) = address(game).call(abi.encodeCall(game.timeout, (number)));
        vm.assertEq(success, isOver);
        if (!isOver) return;
        ++timeouts;
        _over(!isAsserterOnTurn);
    }

    /// @notice The side on turn gives up, now and then.
    function resign(uint256 dice) external timed {
        if (dice % 8 != 0 || ended[number] != Result.NONE || game.timeLeft(number) == 0) return;
        _send(_onTurn(), _call(game.resign.selector, 0, abi.encodePacked(_openingRoot())));
        ++resignations;
        _over(!isAsserterOnTurn);
    }

    /// @notice Moves that nobody may make: the other side's, a move once more, one with a changed bit, any after the
    /// end.
    function intrude(uint256 dice) external timed {
        if (ended[number] != Result.NONE) return _intrudeAfterTheEnd(dice);
        (bytes memory call,) = _prepare();
        if (dice % 4 == 0) return _intrude(isAsserterOnTurn ? challenger : asserter, call);
        if (dice % 4 == 1) return _intrude(account("anybody"), call);
        if (dice % 4 == 2) return _intrude(_onTurn(), _last);
        // Of everything but the selector up to the index, which lead to the head.
        uint256 bit = (dice >> 8) % (8 * 56);
        call[4 + bit / 8] ^= bytes1(uint8(1 << (bit % 8)));
        _intrude(_onTurn(), call);
    }

    function _intrudeAfterTheEnd(uint256 dice) private {
        bytes memory call = dice % 2 == 0 ? _last : _call(game.resign.selector, 0, abi.encodePacked(_openingRoot()));
        if (dice % 8 == 7) call = abi.encodeCall(game.timeout, (number));
        _intrude(dice & 16 == 0 ? asserter : challenger, call);
    }

    /// @dev It reverts and changes nothing.
    function _intrude(address sender, bytes memory call) private {
        (bytes32 head, Clock memory before) = game.dispute(number);
        vm.prank(sender);
        (bool success,) = address(game).call(call);
        vm.assertFalse(success);
        (bytes32 now_, Clock memory clock) = game.dispute(number);
        vm.assertEq(keccak256(abi.encode(now_, clock)), keccak256(abi.encode(head, before)));
        ++intrusions;
    }

    /// @dev What the specification allows a position's answer at least.
    function _grant(At memory next) private {
        bool isReplay = next.level == Level.STEPS || (next.level == Level.NODES && next.height == 3);
        granted += isReplay ? REPLAY_GRACE : MOVE_GRACE;
    }

    function _over(bool asserterWon) private {
        ended[number] = asserterWon ? Result.ASSERTER_WON : Result.CHALLENGER_WON;
        ++finished;
        vm.assertEq(resolver.number(), number);
        vm.assertEq(resolver.asserterWon(), asserterWon);
        if (_moves > longestGame) longestGame = _moves;
    }

    /// @dev The versions change sides as it comes, version 1 lies, and a dispute begins.
    function _another(uint256 dice) private {
        (asserterVersion, challengerVersion) = dice & 1 == 0 ? (0, 1) : (1, 0);
        budget = uint32(bound(dice >> 16, 1, 3 * uint256(CLOCK)));
        _open(uint256(keccak256(abi.encode(dice))));
        (began, granted, _moves) = (_now, 2 * uint256(budget), 0);
        delete _last;
        _grant(p);
    }

    /// @dev Undoes the lie that there was, tells another one and starts a dispute about it.
    function _open(uint256 dice) internal virtual;
}

/// @notice Disputes about two steps, down through all levels.
contract ReplayHandler is GameHandler {
    uint256 private _lie;

    function _open(uint256 dice) internal virtual override {
        if (number > 0) _change(_lie);
        _lie = dice;
        uint256 node = _change(dice);
        // What follows from these nodes is no part of the state.
        if (node == 0 || node == 1 || node > 4) states[_key(1, STEP + 1)][0][0] ^= 1;
        _start(_replay(2));
    }

    /// @dev Version 1 changes one word of an output, or back; or of none, so that only the state after it will be
    /// false.
    function _change(uint256 dice) private returns (uint256 node) {
        uint8[8] memory nodes_ = [0, 1, 2, 5, 3, 3, 4, 6];
        uint8[8] memory elements = [1, 0, 1, 0, 64, 65, 0, 0];
        uint256 which = dice % 8;
        node = nodes_[which];
        if (node < 6) outputs[_key(1, STEP)][node][elements[which]] ^= 1;
        _advance(_key(1, STEP));
    }
}
