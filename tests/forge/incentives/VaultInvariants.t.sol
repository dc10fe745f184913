// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {StakeVault} from "../../../contracts/incentives/StakeVault.sol";
import {Base} from "../Base.sol";
import {VaultHandler} from "./VaultHandler.sol";
import {VaultReplay} from "./VaultReplay.sol";

/// @notice What holds after every call, whoever calls, whenever.
abstract contract VaultInvariants is Base {
    struct FuzzSelector {
        address addr;
        bytes4[] selectors;
    }

    VaultHandler private handler;
    StakeVault private vault;

    function setUp() public {
        handler = new VaultHandler(_isToken());
        vault = handler.vault();
    }

    function _isToken() internal pure virtual returns (bool);

    function targetContracts() external view returns (address[] memory targets) {
        targets = new address[](1);
        targets[0] = address(handler);
    }

    function targetSelectors() external view returns (FuzzSelector[] memory targets) {
        bytes4[] memory selectors = new bytes4[](16);
        selectors[0] = VaultHandler.deposit.selector;
        selectors[1] = VaultHandler.withdraw.selector;
        selectors[2] = VaultHandler.relay.selector;
        selectors[3] = VaultHandler.gift.selector;
        selectors[4] = VaultHandler.unlock.selector;
        selectors[5] = VaultHandler.startExit.selector;
        selectors[6] = VaultHandler.startExit.selector;
        selectors[7] = VaultHandler.finishExit.selector;
        selectors[8] = VaultHandler.forfeit.selector;
        selectors[9] = VaultHandler.pay.selector;
        selectors[10] = VaultHandler.move.selector;
        selectors[11] = VaultHandler.pass.selector;
        selectors[12] = VaultHandler.overdraw.selector;
        selectors[13] = VaultHandler.intrude.selector;
        // Without locks there is nothing for the others.
        selectors[14] = VaultHandler.lock.selector;
        selectors[15] = VaultHandler.lock.selector;
        targets = new FuzzSelector[](1);
        targets[0] = FuzzSelector(address(handler), selectors);
    }

    /// @dev One campaign for all rules.
    function invariant_the_vault_holds() public view {
        _all();
    }

    function rule_what_is_held_is_owed_to_somebody_or_was_a_gift() public view {
        uint256 owed = handler.gifts();
        for (uint256 p = 0; p < handler.PARTIES(); ++p) {
            owed += vault.free(handler.parties(p));
        }
        for (uint256 d = 0; d < handler.DESKS(); ++d) {
            owed += _heldFor(address(handler.desks(d)));
        }
        vm.assertEq(handler.held(), owed);
    }

    function rule_what_is_held_has_come_in_and_has_not_gone_out() public view {
        vm.assertEq(handler.held(), handler.deposited() + handler.gifts() - handler.withdrawn());
    }

    /// @dev Whatever other desks do: what a desk holds changes by its own verbs alone, and by what others move to it.
    function rule_no_desk_reaches_what_another_holds() public view {
        for (uint256 d = 0; d < handler.DESKS(); ++d) {
            address desk = address(handler.desks(d));
            vm.assertEq(_heldFor(desk), handler.entrusted(desk) - handler.returned(desk));
        }
    }

    /// @dev It grows by deposits, unlocking, leaving and payments, and falls by withdrawals and locks.
    function rule_free_money_has_a_source() public view {
        for (uint256 p = 0; p < handler.PARTIES(); ++p) {
            address party = handler.parties(p);
            vm.assertEq(vault.free(party), handler.received(party) - handler.spent(party));
        }
    }

    function rule_pots_hold_what_was_forfeited_and_not_paid() public view {
        uint256 pots = 0;
        for (uint256 d = 0; d < handler.DESKS(); ++d) {
            for (uint256 k = 0; k < handler.KEYS(); ++k) {
                pots += vault.pot(address(handler.desks(d)), handler.keyOf(k));
            }
        }
        vm.assertEq(pots, handler.forfeited() - handler.paid());
    }

    function rule_nothing_leaves_before_the_delay() public view {
        for (uint256 i = 0; i < handler.DESKS() * handler.KEYS() * handler.PARTIES(); ++i) {
            (address desk, bytes32 key, address party) = _place(i);
            (uint256 amount, uint64 until) = vault.leaving(desk, key, party);
            uint64 due = handler.lastExit(desk, key, party) + handler.EXIT_DELAY();
            vm.assertEq(until, amount == 0 ? 0 : due);
        }
    }

    function rule_desks_are_named_for_ever() public view {
        vm.assertTrue(vault.wired());
        for (uint256 d = 0; d < handler.DESKS(); ++d) {
            vm.assertTrue(vault.isDesk(address(handler.desks(d))));
        }
        vm.assertFalse(vault.isDesk(address(handler)));
        vm.assertFalse(vault.isDesk(address(handler.forwarder())));
        for (uint256 p = 0; p < handler.PARTIES(); ++p) {
            vm.assertFalse(vault.isDesk(handler.parties(p)));
        }
    }

    function rule_what_must_be_refused_is_and_changes_nothing() public view {
        vm.assertEq(handler.accepted(), 0);
        vm.assertEq(handler.changed(), 0);
    }

    function rule_only_the_vault_holds_value() public view {
        vm.assertEq(handler.balance(address(handler.forwarder())), 0);
        for (uint256 d = 0; d < handler.DESKS(); ++d) {
            vm.assertEq(handler.balance(address(handler.desks(d))), 0);
            vm.assertEq(vault.free(address(handler.desks(d))), 0);
        }
    }

    /// @dev An indexer that replays the logs equals storage.
    function rule_logs_tell_every_balance() public view {
        VaultReplay indexer = handler.indexer();
        vm.assertTrue(indexer.wired());
        for (uint256 p = 0; p < handler.PARTIES(); ++p) {
            vm.assertEq(indexer.free(handler.parties(p)), vault.free(handler.parties(p)));
        }
        for (uint256 i = 0; i < handler.DESKS() * handler.KEYS() * handler.PARTIES(); ++i) {
            (address desk, bytes32 key, address party) = _place(i);
            vm.assertTrue(indexer.isDesk(desk));
            vm.assertEq(indexer.locked(desk, key, party), vault.locked(desk, key, party));
            vm.assertEq(indexer.pot(desk, key), vault.pot(desk, key));
            (uint256 amount, uint64 until) = vault.leaving(desk, key, party);
            (uint256 told, uint64 toldUntil) = indexer.leaving(desk, key, party);
            vm.assertEq(told, amount);
            vm.assertEq(toldUntil, until);
        }
    }

    /// @dev Fixed long runs, to know that the invariants are tested where it matters.
    function test_long_runs_reach_every_verb() public {
        for (uint256 i = 0; i < 600; ++i) {
            _act(uint256(keccak256(abi.encode("dice", i))));
            if (i % 10 == 0) _all();
        }
        _all();
        vm.assertGt(handler.relayed(), 0);
        vm.assertGt(handler.unlocked(), 0);
        vm.assertGt(handler.left(), 0);
        vm.assertGt(handler.leftByTheWay(), 0);
        vm.assertGt(handler.forfeitedLeaving(), 0);
        vm.assertGt(handler.moved(), 0);
        vm.assertGt(handler.paid(), 0);
        vm.assertGt(handler.gifts(), 0);
        vm.assertGt(handler.withdrawn(), 0);
        vm.assertGt(handler.refusals(), 50);
    }

    /// @dev Within it, what has left is freed before it is found that too little is locked.
    function test_a_refused_exit_frees_nothing() public {
        handler.deposit(0);
        // Desk 0, duty 0, party 0: all that is free, and all that is locked.
        handler.lock(0);
        handler.startExit(0);
        handler.pass(0);
        // The third call of those that it may make, at the same place.
        handler.overdraw((uint256(2) << 64) + 16);
        vm.assertEq(handler.refusals(), 1);
        _all();
    }

    function testFuzz_logs_tell_every_balance(uint256 seed) public {
        for (uint256 i = 0; i < 24; ++i) {
            _act(uint256(keccak256(abi.encode(seed, i))));
        }
        rule_logs_tell_every_balance();
    }

    function _all() private view {
        rule_what_is_held_is_owed_to_somebody_or_was_a_gift();
        rule_what_is_held_has_come_in_and_has_not_gone_out();
        rule_no_desk_reaches_what_another_holds();
        rule_free_money_has_a_source();
        rule_pots_hold_what_was_forfeited_and_not_paid();
        rule_nothing_leaves_before_the_delay();
        rule_desks_are_named_for_ever();
        rule_what_must_be_refused_is_and_changes_nothing();
        rule_only_the_vault_holds_value();
        rule_logs_tell_every_balance();
    }

    function _act(uint256 dice) private {
        uint256 what = dice % 16;
        uint256 rest = dice >> 8;
        if (what < 2) handler.lock(rest);
        else if (what == 2) handler.deposit(rest);
        else if (what == 3) handler.withdraw(rest);
        else if (what == 4) handler.relay(rest);
        else if (what == 5) handler.gift(rest);
        else if (what == 6) handler.unlock(rest);
        else if (what < 9) handler.startExit(rest);
        else if (what == 9) handler.finishExit(rest);
        else if (what == 10) handler.forfeit(rest);
        else if (what == 11) handler.pay(rest);
        else if (what == 12) handler.move(rest);
        else if (what == 13) handler.pass(rest);
        else if (what == 14) handler.overdraw(rest);
        else handler.intrude(rest);
    }

    /// @dev What a desk holds of all parties, and in its pots.
    function _heldFor(address desk) private view returns (uint256 amount) {
        for (uint256 k = 0; k < handler.KEYS(); ++k) {
            bytes32 key = handler.keyOf(k);
            amount += vault.pot(desk, key);
            for (uint256 p = 0; p < handler.PARTIES(); ++p) {
                (uint256 leaving,) = vault.leaving(desk, key, handler.parties(p));
                amount += leaving + vault.locked(desk, key, handler.parties(p));
            }
        }
    }

    function _place(uint256 i) private view returns (address desk, bytes32 key, address party) {
        uint256 desks = handler.DESKS();
        uint256 keys = handler.KEYS();
        return (address(handler.desks(i % desks)), handler.keyOf(i / desks % keys), handler.parties(i / desks / keys));
    }
}

/// @notice Of the native currency.
/// forge-config: default.fuzz.runs = 16
/// forge-config: default.invariant.check-interval = 16
contract EtherVaultTest is VaultInvariants {
    function _isToken() internal pure override returns (bool) {
        return false;
    }
}

/// @notice Of a token.
/// forge-config: default.fuzz.runs = 16
/// forge-config: default.invariant.check-interval = 16
contract CoinVaultTest is VaultInvariants {
    function _isToken() internal pure override returns (bool) {
        return true;
    }
}
