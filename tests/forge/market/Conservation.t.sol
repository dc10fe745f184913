// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IStakeVault} from "../../../contracts/incentives/IStakeVault.sol";
import {Base} from "../Base.sol";
import {MarketHandler, Outcome, Seating, Status, Task} from "./MarketHandler.sol";
import {ObjectionHandler} from "./ObjectionHandler.sol";

/// @notice After every action, whoever acts.
contract ConservationTest is Base {
    struct FuzzSelector {
        address addr;
        bytes4[] selectors;
    }

    ObjectionHandler private handler;
    uint256[9] private reached;
    uint256 private outcomes;

    function setUp() public {
        handler = new ObjectionHandler();
    }

    function targetContracts() external view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(handler);
    }

    function targetSelectors() external view returns (FuzzSelector[] memory targets) {
        bytes4[] memory selectors = new bytes4[](27);
        selectors[0] = MarketHandler.submit.selector;
        selectors[1] = MarketHandler.intrude.selector;
        selectors[2] = MarketHandler.withdraw.selector;
        selectors[3] = MarketHandler.pass.selector;
        selectors[4] = MarketHandler.resolve.selector;
        selectors[5] = MarketHandler.settle.selector;
        selectors[6] = MarketHandler.hear.selector;
        selectors[7] = MarketHandler.ask.selector;
        selectors[8] = MarketHandler.show.selector;
        selectors[9] = ObjectionHandler.object.selector;
        selectors[10] = ObjectionHandler.contest.selector;
        selectors[11] = ObjectionHandler.decide.selector;
        selectors[12] = ObjectionHandler.rule.selector;
        selectors[13] = ObjectionHandler.conclude.selector;
        // Most moves take a task further, or the long way to settlement would hardly ever be walked.
        for (uint256 i = 14; i < selectors.length; ++i) {
            selectors[i] = MarketHandler.advance.selector;
        }
        targets = new FuzzSelector[](1);
        targets[0] = FuzzSelector(address(handler), selectors);
    }

    /// @dev One campaign for all of them.
    function invariant_the_market_holds() public view {
        _expectOwed();
        _expectMoves();
        _expectClocks();
        vm.assertGe(handler.fund(), handler.reserved());
        vm.assertEq(handler.reserved(), handler.reserves());
    }

    /// @dev What came in is what is owed: nothing else is in the vault, and no desk holds what no rule says.
    function _expectOwed() private view {
        (address vault, address settlement, address seats, address challenges, address demands) = handler.houses();
        vm.assertEq(vault.balance, handler.owed());
        vm.assertEq(vault.balance, 7_000 ether);
        bytes32[] memory ids = handler.ids();
        for (uint256 i = 0; i < ids.length; ++i) {
            (uint256 atSettlement, uint256 atSeats, uint256 bonds, uint32 open) = handler.expected(ids[i]);
            vm.assertEq(handler.locked(settlement, ids[i]), atSettlement);
            vm.assertEq(handler.locked(seats, ids[i]), atSeats);
            vm.assertEq(handler.locked(challenges, ids[i]), bonds);
            vm.assertEq(handler.openOf(ids[i]), open);
            vm.assertEq(IStakeVault(vault).pot(settlement, ids[i]), 0);
            _expectDemands(demands, ids[i]);
            _expectObjections(ids[i]);
        }
    }

    function _expectObjections(bytes32 taskId) private view {
        (address objections, address counterclaims) = handler.desksOfObjections();
        (uint256 atObjections, uint256 atCounterclaims, uint32 open, uint32 counted) =
            handler.expectedObjections(taskId);
        vm.assertEq(handler.locked(objections, taskId), atObjections);
        vm.assertEq(handler.locked(counterclaims, taskId), atCounterclaims);
        vm.assertEq(counted, open);
    }

    function _expectDemands(address demands, bytes32 taskId) private view {
        (uint256 bonds, uint32 open, uint32 counted) = handler.expectedDemands(taskId);
        vm.assertEq(handler.locked(demands, taskId), bonds);
        vm.assertEq(counted, open);
    }

    /// @dev Statuses follow each other as docs/spec/market.md says.
    function _expectMoves() private view {
        for (uint8 from = 0; from <= 8; ++from) {
            for (uint8 to = 0; to <= 8; ++to) {
                if (!_leads(from, to)) vm.assertEq(handler.moves(Status(from), Status(to)), 0);
            }
        }
    }

    /// @dev A clock runs where somebody has to move, and nowhere else; who sits is who the seat says.
    function _expectClocks() private view {
        bytes32[] memory ids = handler.ids();
        for (uint256 i = 0; i < ids.length; ++i) {
            (Task memory t, Seating memory s, bool posted) = handler.stateOf(ids[i]);
            bool runs = t.status == Status.Training || t.status == Status.Verifying || t.status == Status.Contested
                || (t.status == Status.Profiling && t.holder != address(0) && !posted);
            bool none = t.status == Status.Bidding || t.status == Status.Committed || t.status == Status.Closed;
            if (runs) vm.assertGt(t.deadline, 0);
            if (none) vm.assertEq(t.deadline, 0);
            if (none) vm.assertEq(t.holder, address(0));
            vm.assertEq(t.holder, s.left ? address(0) : s.holder);
            if (t.status == Status.Verifying || t.status == Status.Contested) vm.assertTrue(t.holder != address(0));
            vm.assertTrue(t.status > Status.Bidding || t.solver == address(0));
            vm.assertTrue((t.outcome != Outcome.None) == (t.status == Status.Closed));
            vm.assertTrue((t.closed != 0) == (t.status == Status.Closed));
        }
    }

    /// @dev Long fixed runs, to know that the invariants are tested where it matters.
    function test_long_runs_reach_every_stage_and_every_outcome() public {
        vm.pauseGasMetering();
        uint256[16] memory seen;
        for (uint256 run = 0; run < 8; ++run) {
            setUp();
            for (uint256 i = 0; i < 300; ++i) {
                _act(uint256(keccak256(abi.encode("dice", run, i))));
                if (i % 5 == 0) invariant_the_market_holds();
            }
            invariant_the_market_holds();
            _note(seen);
        }
        for (uint256 status = 1; status <= 8; ++status) {
            if (status != uint256(Status.Profiling)) vm.assertTrue(reached[status] > 0, vm.toString(status));
        }
        vm.assertEq(outcomes, 0xe);
        for (uint256 i = 0; i < seen.length; ++i) {
            vm.assertTrue(seen[i] > (i == 5 ? 2 : 0), vm.toString(i));
        }
    }

    function _act(uint256 dice) private {
        if (dice % 20 == 17) handler.ask(dice >> 8, dice >> 16, dice >> 24);
        else if (dice % 20 == 16) handler.show(dice >> 8, dice >> 16);
        else if (dice % 20 == 18) handler.hear(dice >> 8, dice >> 16);
        else if (dice % 20 == 19) handler.withdraw(dice >> 8, dice >> 16);
        else if (dice % 40 == 15) handler.object(dice >> 8, dice >> 16, dice >> 24);
        else if (dice % 60 == 14) handler.contest(dice >> 8, dice >> 16);
        else if (dice % 60 == 34) handler.decide(dice >> 8, dice >> 16);
        else if (dice % 60 == 54) handler.rule(dice >> 8, dice >> 16);
        else if (dice % 60 == 13) handler.conclude(dice >> 8);
        else if (dice % 10 == 8) handler.resolve(dice >> 8, dice >> 16);
        else if (dice % 10 == 9) handler.settle(dice >> 8);
        else if (dice % 10 == 0) handler.submit(dice >> 8);
        else if (dice % 10 == 1) handler.intrude(dice >> 8, dice >> 16, dice >> 24);
        else handler.advance(dice >> 8, dice >> 16);
    }

    function _note(uint256[16] memory seen) private {
        for (uint8 from = 0; from <= 8; ++from) {
            for (uint8 to = 0; to <= 8; ++to) {
                reached[to] += handler.moves(Status(from), Status(to));
            }
        }
        for (uint8 i = 1; i <= 3; ++i) {
            if (handler.ended(Outcome(i)) > 0) outcomes |= 1 << i;
        }
        seen[0] += handler.intrusions();
        seen[1] += handler.moot() + handler.released();
        seen[2] += handler.leaks();
        seen[3] += handler.undisclosed();
        seen[4] += handler.forcedErrors();
        seen[6] += handler.answered();
        seen[7] += handler.withheld();
        seen[8] += handler.mootDemands();
        seen[9] += handler.objected();
        seen[10] += handler.counterclaimed();
        seen[11] += handler.contested();
        seen[12] += handler.fallen();
        seen[13] += handler.mootObjections();
        seen[14] += handler.unserved();
        seen[15] += handler.notServed();
        if (handler.mostOpen() > seen[5]) seen[5] = handler.mostOpen();
    }

    function _leads(uint8 from, uint8 to) private pure returns (bool) {
        if (from == 1) return to == 2 || to == 8;
        if (from == 2) return to == 3 || to == 8;
        if (from == 3) return to == 4 || to == 2;
        if (from == 4) return to == 5 || to == 2;
        if (from == 5) return to == 6 || to == 4 || to == 2;
        if (from == 6) return to == 7 || to == 4;
        return from == 7 && (to == 4 || to == 8 || to == 2);
    }
}
