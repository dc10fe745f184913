// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Jackpot} from "../../../contracts/incentives/Jackpot.sol";
import {Sortition} from "../../../contracts/incentives/Sortition.sol";
import {StakeVault} from "../../../contracts/incentives/StakeVault.sol";
import {Base} from "../Base.sol";
import {LotteryHandler} from "./LotteryHandler.sol";
import {LotteryReplay} from "./LotteryReplay.sol";

/// @notice What holds of tickets, bonds and the fund after every call, whoever calls, whenever.
/// forge-config: default.invariant.check-interval = 16
contract LotteryInvariantsTest is Base {
    struct FuzzSelector {
        address addr;
        bytes4[] selectors;
    }

    uint128 private constant UNIT = 1 ether;
    uint32 private constant SHARES = 6;
    LotteryHandler private handler;
    StakeVault private vault;
    Sortition private sortition;
    Jackpot private jackpot;

    function setUp() public {
        handler = new LotteryHandler();
        (vault, sortition, jackpot) = handler.contracts();
    }

    function targetContracts() external view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(handler);
    }

    function targetSelectors() external view returns (FuzzSelector[] memory targets) {
        bytes4[] memory selectors = new bytes4[](13);
        selectors[0] = LotteryHandler.enrol.selector;
        selectors[1] = LotteryHandler.enrol.selector;
        selectors[2] = LotteryHandler.resign.selector;
        selectors[3] = LotteryHandler.finish.selector;
        selectors[4] = LotteryHandler.donate.selector;
        selectors[5] = LotteryHandler.pass.selector;
        selectors[6] = LotteryHandler.intrude.selector;
        // Most calls take a task further, or hardly any would come to its catches.
        for (uint256 i = 7; i < selectors.length; ++i) {
            selectors[i] = LotteryHandler.advance.selector;
        }
        targets = new FuzzSelector[](1);
        targets[0] = FuzzSelector(address(handler), selectors);
    }

    /// @dev One campaign for all rules.
    function invariant_tickets_and_the_fund_hold() public {
        _all();
    }

    function rule_the_fund_is_solvent() public view {
        vm.assertGe(vault.pot(address(jackpot), "fund"), jackpot.reserved());
        vm.assertEq(jackpot.available(), vault.pot(address(jackpot), "fund") - jackpot.reserved());
    }

    function rule_the_fund_is_what_was_given_and_not_won() public view {
        vm.assertEq(vault.pot(address(jackpot), "fund"), handler.given() - handler.wonByAll());
    }

    function rule_reserves_sum_up() public view {
        uint256 sum = 0;
        for (uint256 i = 0; i < handler.idCount(); ++i) {
            (uint128 amount, uint32 catches) = jackpot.reserves(handler.ids(i));
            if (amount > 0) sum += amount - amount / SHARES * catches;
        }
        vm.assertEq(jackpot.reserved(), sum);
    }

    function rule_no_task_pays_more_than_all_shares() public view {
        for (uint256 i = 0; i < handler.idCount(); ++i) {
            (, uint32 catches) = jackpot.reserves(handler.ids(i));
            vm.assertLe(catches, SHARES);
        }
    }

    function rule_no_ticket_is_paid_twice_for_a_seating() public view {
        vm.assertLe(handler.mostForATicket(), 1);
    }

    function rule_weights_sum_up() public view {
        uint256 sum = 0;
        for (uint256 a = 0; a < handler.ACTORS(); ++a) {
            sum += sortition.ticketsNow(handler.actors(a));
        }
        vm.assertEq(sum, sortition.totalNow());
    }

    /// @dev At twelve times up to ten days ago, against a list of all changes.
    function rule_tickets_count_from_enrolment_to_resignation() public {
        uint64 now_ = handler.time();
        vm.warp(now_);
        for (uint64 k = 0; k < 12; ++k) {
            uint64 t = now_ - k * k * k * 700;
            uint256 sum = 0;
            for (uint256 a = 0; a < handler.ACTORS(); ++a) {
                address who = handler.actors(a);
                (uint256 then, uint256 still) = (handler.at(who, t - 1), handler.at(who, now_));
                vm.assertEq(sortition.tickets(who, t), then < still ? then : still);
                sum += then;
            }
            vm.assertEq(sortition.total(t), sum);
        }
    }

    function rule_every_ticket_has_its_bond() public view {
        for (uint256 a = 0; a < handler.ACTORS(); ++a) {
            address who = handler.actors(a);
            vm.assertEq(vault.locked(address(sortition), "bond", who), uint256(sortition.ticketsNow(who)) * UNIT);
        }
        vm.assertEq(vault.pot(address(sortition), "bond"), 0);
    }

    function rule_bonds_are_locked_or_leaving() public view {
        for (uint256 a = 0; a < handler.ACTORS(); ++a) {
            address who = handler.actors(a);
            (uint256 leaving,) = vault.leaving(address(sortition), "bond", who);
            vm.assertEq(vault.locked(address(sortition), "bond", who) + leaving, handler.bonds(who));
        }
    }

    function rule_parties_have_what_has_left_and_what_they_won() public view {
        for (uint256 a = 0; a < handler.ACTORS(); ++a) {
            address who = handler.actors(a);
            vm.assertEq(vault.free(who), handler.left(who) + handler.won(who));
        }
    }

    function rule_events_rebuild_the_state() public view {
        LotteryReplay replay = handler.replay();
        vm.assertEq(replay.total(), sortition.totalNow());
        vm.assertEq(replay.reserved(), jackpot.reserved());
        vm.assertEq(replay.fund(), vault.pot(address(jackpot), "fund"));
        for (uint256 a = 0; a < handler.ACTORS(); ++a) {
            vm.assertEq(replay.tickets(handler.actors(a)), sortition.ticketsNow(handler.actors(a)));
        }
        for (uint256 i = 0; i < handler.idCount(); ++i) {
            bytes32 id = handler.ids(i);
            (uint128 amount, uint32 catches) = jackpot.reserves(id);
            vm.assertEq(replay.catches(id), catches);
            vm.assertEq(replay.left(id), amount == 0 ? 0 : amount - amount / SHARES * catches);
            _compareCommitments(replay, id);
        }
    }

    /// @dev One long fixed run, to know that the invariants are tested where it matters.
    function test_a_long_run_reaches_everything() public {
        for (uint256 i = 0; i < 400; ++i) {
            _act(uint256(keccak256(abi.encode("dice", i))));
        }
        _all();
        for (uint256 i = 0; i < 7; ++i) {
            vm.assertGt(handler.seen(i), 0);
        }
    }

    function _act(uint256 dice) private {
        uint256 kind = dice % 15;
        if (kind < 2) handler.enrol(dice >> 8, dice >> 16);
        else if (kind == 2) handler.resign(dice >> 8, dice >> 16);
        else if (kind == 3) handler.intrude(dice >> 8, dice >> 16, dice >> 24);
        else if (kind == 4) handler.donate(dice >> 8);
        else if (kind == 5) handler.pass(dice >> 8);
        else if (kind == 6) handler.finish(dice >> 8);
        else handler.advance(dice >> 8, dice >> 16);
    }

    function _all() private {
        rule_the_fund_is_solvent();
        rule_the_fund_is_what_was_given_and_not_won();
        rule_reserves_sum_up();
        rule_no_task_pays_more_than_all_shares();
        rule_no_ticket_is_paid_twice_for_a_seating();
        rule_weights_sum_up();
        rule_tickets_count_from_enrolment_to_resignation();
        rule_every_ticket_has_its_bond();
        rule_bonds_are_locked_or_leaving();
        rule_parties_have_what_has_left_and_what_they_won();
        rule_events_rebuild_the_state();
    }

    function _compareCommitments(LotteryReplay replay, bytes32 id) private view {
        for (uint32 number = 1; number <= handler.seatingsOf(id); ++number) {
            for (uint256 a = 0; a < handler.ACTORS(); ++a) {
                for (uint32 ticket = 0; ticket < 4; ++ticket) {
                    address who = handler.actors(a);
                    vm.assertEq(
                        replay.commitments(id, number, who, ticket), jackpot.commitments(id, number, who, ticket)
                    );
                }
            }
        }
    }
}
