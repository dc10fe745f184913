// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Base} from "../Base.sol";
import {LearningLogHandler} from "./LearningLogHandler.sol";

/// @notice After every action, whoever acts: wei held = credits + stakes + bonds of open demands = wei that came in -
/// wei that went out.
/// forge-config: default.invariant.runs = 8
/// forge-config: default.invariant.depth = 32
/// forge-config: ci.invariant.runs = 64
/// forge-config: ci.invariant.depth = 32
contract LearningLogConservationTest is Base {
    struct FuzzSelector {
        address addr;
        bytes4[] selectors;
    }

    LearningLogHandler private handler;

    function setUp() public {
        handler = new LearningLogHandler();
    }

    function targetContracts() external view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(handler);
    }

    function targetSelectors() external view returns (FuzzSelector[] memory targets) {
        bytes4[] memory selectors = new bytes4[](12);
        selectors[0] = LearningLogHandler.start.selector;
        selectors[1] = LearningLogHandler.extend.selector;
        selectors[2] = LearningLogHandler.reply.selector;
        selectors[3] = LearningLogHandler.lapse.selector;
        selectors[4] = LearningLogHandler.leave.selector;
        selectors[5] = LearningLogHandler.withdraw.selector;
        selectors[6] = LearningLogHandler.pass.selector;
        selectors[7] = LearningLogHandler.intrude.selector;
        // Most moves ask, or little would ever be answered or lapse.
        for (uint256 i = 8; i < selectors.length; ++i) {
            selectors[i] = LearningLogHandler.ask.selector;
        }
        targets = new FuzzSelector[](1);
        targets[0] = FuzzSelector(address(handler), selectors);
    }

    function invariant_every_wei_is_owed_to_somebody() public view {
        vm.assertEq(handler.held(), handler.owed());
        vm.assertEq(handler.held(), handler.deposited() - handler.gone());
        handler.requireCounts();
    }

    /// @dev Long fixed runs, to know that the invariant is tested where it matters.
    function test_long_runs_reach_every_end() public {
        uint256[4] memory reached;
        for (uint256 run = 0; run < 2; ++run) {
            setUp();
            for (uint256 i = 0; i < 300; ++i) {
                _act(uint256(keccak256(abi.encode("dice", run, i))));
                invariant_every_wei_is_owed_to_somebody();
            }
            reached[0] += handler.answered();
            reached[1] += handler.slashed();
            reached[2] += handler.closed();
            reached[3] += handler.intrusions();
        }
        for (uint256 i = 0; i < 4; ++i) {
            vm.assertTrue(reached[i] > 0, vm.toString(i));
        }
    }

    function _act(uint256 dice) private {
        uint256 what = dice % 16;
        if (what < 2) handler.start(dice >> 8);
        else if (what < 4) handler.extend(dice >> 8);
        else if (what < 6) handler.ask(dice >> 8, uint32(dice >> 64), uint64(dice >> 96), dice >> 160);
        else if (what < 8) handler.reply(dice >> 8, dice & 256 == 0);
        else if (what == 8) handler.lapse(dice >> 8);
        else if (what == 9) handler.leave(dice >> 8);
        else if (what == 10) handler.withdraw(dice >> 8);
        else if (what == 11) handler.pass(dice >> 8);
        else if (what == 12) handler.intrude(dice >> 8, dice >> 16, dice >> 24);
        else if (what == 13) handler.lapse(dice >> 8);
        else if (what == 14) handler.leave(dice >> 8);
        else handler.pass(dice >> 8);
    }
}
