// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Outcome, Status} from "../../../contracts/market/TaskTypes.sol";
import {Base} from "../Base.sol";
import {MarketHandler} from "./MarketHandler.sol";

/// @notice After every action, whoever acts: wei held = wei credited + wei locked = wei that came in - wei that went out.
contract ConservationTest is Base {
    struct FuzzSelector {
        address addr;
        bytes4[] selectors;
    }

    MarketHandler private handler;
    uint256 private statuses;
    uint256 private outcomes;
    uint256 private intrusions;
    uint256 private moot;
    uint256 private mootProfiles;
    uint256 private voidProfiles;
    uint256 private mostOpen;

    function setUp() public {
        handler = new MarketHandler();
    }

    function targetContracts() external view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(handler);
    }

    function targetSelectors() external view returns (FuzzSelector[] memory targets) {
        bytes4[] memory selectors = new bytes4[](12);
        selectors[0] = MarketHandler.submit.selector;
        selectors[1] = MarketHandler.intrude.selector;
        selectors[2] = MarketHandler.withdraw.selector;
        selectors[3] = MarketHandler.pass.selector;
        selectors[4] = MarketHandler.resolve.selector;
        selectors[5] = MarketHandler.release.selector;
        // Most moves take a task further, or the long way to settlement would hardly ever be walked.
        selectors[6] = MarketHandler.hear.selector;
        for (uint256 i = 7; i < selectors.length; ++i) {
            selectors[i] = MarketHandler.advance.selector;
        }
        targets = new FuzzSelector[](1);
        targets[0] = FuzzSelector(address(handler), selectors);
    }

    function invariant_every_wei_is_owed_to_somebody() public view {
        vm.assertEq(handler.held(), handler.owed());
        vm.assertEq(handler.held(), handler.deposited() - handler.withdrawn());
    }

    /// @dev Five long fixed runs, to know that the invariant is tested where it matters.
    function test_long_runs_reach_every_stage_and_every_outcome() public {
        for (uint256 run = 0; run < 5; ++run) {
            setUp();
            for (uint256 i = 0; i < 400; ++i) {
                _act(uint256(keccak256(abi.encode("dice", run, i))));
                invariant_every_wei_is_owed_to_somebody();
            }
            _note();
        }
        vm.assertEq(statuses, 0x7e);
        vm.assertEq(outcomes, 0x1e);
        vm.assertGt(intrusions, 0);
        vm.assertGt(moot, 0);
        vm.assertGt(mootProfiles, 0);
        vm.assertGt(voidProfiles, 0);
        vm.assertGt(mostOpen, 2);
    }

    function _act(uint256 dice) private {
        if (dice % 20 == 18) handler.hear(dice >> 8, dice >> 16);
        else if (dice % 10 == 8) handler.resolve(dice >> 8, dice >> 16);
        else if (dice % 10 == 9) handler.release(dice >> 8);
        else if (dice % 10 == 0) handler.submit(dice >> 8);
        else if (dice % 10 < 3) handler.intrude(dice >> 8, dice >> 16, dice >> 24, uint128((dice >> 32) % 2 ether));
        else if (dice % 10 == 3) handler.withdraw(dice >> 8);
        else handler.advance(dice >> 8, dice >> 16);
    }

    function _note() private {
        for (uint8 i = 1; i <= uint8(type(Status).max); ++i) {
            if (handler.reached(Status(i)) > 0) statuses |= 1 << i;
        }
        for (uint8 i = 1; i <= uint8(type(Outcome).max); ++i) {
            if (handler.ended(Outcome(i)) > 0) outcomes |= 1 << i;
        }
        intrusions += handler.intrusions();
        moot += handler.moot();
        mootProfiles += handler.mootProfiles();
        voidProfiles += handler.voidProfiles();
        if (handler.mostOpen() > mostOpen) mostOpen = handler.mostOpen();
    }
}
