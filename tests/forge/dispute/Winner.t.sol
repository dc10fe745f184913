// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Base} from "../Base.sol";
import {Clock, GameHandler, Result} from "./GameHandler.sol";
import {PublishedHandler, ReplayHandler} from "./PublishedGame.sol";
import {SumHandler} from "./SumHandler.sol";

/// @notice After every action: each dispute has one winner for good, or none yet, and ends before the bound on its
/// duration.
abstract contract Winner is Base {
    struct FuzzSelector {
        address addr;
        bytes4[] selectors;
    }

    GameHandler private handler;

    function setUp() public {
        handler = _newHandler();
    }

    function _newHandler() internal virtual returns (GameHandler);

    /// @dev Moves of the longest game that long runs should see.
    function _longest() internal pure virtual returns (uint256);

    function targetContracts() external view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(handler);
    }

    function targetSelectors() external view returns (FuzzSelector[] memory targets) {
        bytes4[] memory selectors = new bytes4[](8);
        selectors[0] = GameHandler.wait.selector;
        selectors[1] = GameHandler.late.selector;
        selectors[2] = GameHandler.resign.selector;
        selectors[3] = GameHandler.intrude.selector;
        // Most actions are moves, or no dispute would come far.
        for (uint256 i = 4; i < selectors.length; ++i) {
            selectors[i] = GameHandler.play.selector;
        }
        targets = new FuzzSelector[](1);
        targets[0] = FuzzSelector(address(handler), selectors);
    }

    /// @dev One campaign for all rules.
    function invariant_one_winner_in_time() public view {
        _oneWinnerForGood();
        _theEndIsBounded();
    }

    /// @dev A result never changes, and the market is told once for each.
    function _oneWinnerForGood() private view {
        uint256 disputes = handler.currentGame().disputes();
        uint256 ended = 0;
        for (uint256 i = 1; i <= disputes; i++) {
            (, Clock memory clock) = handler.currentGame().dispute(i);
            vm.assertTrue(clock.result == handler.ended(i));
            if (clock.result == Result.NONE) continue;
            vm.assertTrue(clock.deadline == 0 && clock.spare == 0);
            ended++;
        }
        vm.assertEq(ended, handler.finished());
        // The one that runs is the last one.
        vm.assertLe(disputes, ended + 1);
    }

    /// @dev Even if both sides take all that they have: budgets and one grace a position, which `longest` is not below.
    /// No side ever has more left than its budget or the greatest grace.
    function _theEndIsBounded() private view {
        uint256 number = handler.currentGame().disputes();
        (, Clock memory clock) = handler.currentGame().dispute(number);
        if (clock.result != Result.NONE) return;
        uint256 latest = uint256(clock.deadline) + clock.spare;
        vm.assertLe(latest, handler.began() + handler.granted());
        vm.assertLe(handler.granted(), handler.currentGame().longest(handler.budgetOfEach()));
        vm.assertLe(uint256(clock.spare), handler.mostOnClock());
        vm.assertLe(uint256(clock.deadline), handler.time() + handler.mostOnClock());
    }

    /// @dev Long fixed runs, to know that the invariants are tested where it matters.
    function test_long_runs_reach_every_end() public {
        for (uint256 i = 0; i < 400; ++i) {
            uint256 dice = uint256(keccak256(abi.encode("dice", i)));
            if (dice % 8 < 4) handler.play(dice >> 8);
            else if (dice % 8 == 4) handler.wait(dice >> 8);
            else if (dice % 8 == 5) handler.late();
            else if (dice % 8 == 6) handler.resign(dice >> 8);
            else handler.intrude(dice >> 8);
            if (i % 20 == 0) _oneWinnerForGood();
            _theEndIsBounded();
        }
        vm.assertGt(handler.proofs(), 0);
        vm.assertGt(handler.resignations(), 0);
        vm.assertGt(handler.timeouts(), 0);
        vm.assertGt(handler.intrusions(), 20);
        vm.assertGe(handler.longestGame(), _longest());
    }
}

/// @notice Of what two steps yield.
/// forge-config: long.invariant.runs = 64
/// forge-config: long.invariant.depth = 128
contract WinnerTest is Winner {
    function _newHandler() internal override returns (GameHandler) {
        return new ReplayHandler();
    }

    function _longest() internal pure override returns (uint256) {
        return 5;
    }
}

/// @notice Of distances and references.
/// forge-config: long.invariant.runs = 64
/// forge-config: long.invariant.depth = 128
contract SumWinnerTest is Winner {
    function _newHandler() internal override returns (GameHandler) {
        return new SumHandler();
    }

    function _longest() internal pure override returns (uint256) {
        return 3;
    }
}

/// @notice Of what two steps yield whose traces were published.
/// forge-config: long.invariant.runs = 64
/// forge-config: long.invariant.depth = 128
contract PublishedWinnerTest is Winner {
    function _newHandler() internal override returns (GameHandler) {
        return new PublishedHandler();
    }

    function _longest() internal pure override returns (uint256) {
        return 3;
    }
}
