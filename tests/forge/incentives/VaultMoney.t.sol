// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Hostile, IStakeVault, PlainDesk, ReentrancyGuardTransient, StakeVault, VaultBase} from "./VaultBase.sol";

/// @notice The native currency comes in and goes out; how tokens do is in VaultToken.t.sol.
contract VaultMoneyTest is VaultBase {
    function test_another_amount_than_the_value_is_refused() public {
        vm.startPrank(alice);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.WrongTransfer.selector, 2 ether, 1 ether));
        vault.deposit{value: 1 ether}(alice, 2 ether);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.WrongTransfer.selector, 1 ether, 2 ether));
        vault.deposit{value: 2 ether}(alice, 1 ether);
    }

    function test_nothing_comes_in_and_nobody_gets_it() public {
        vm.startPrank(alice);
        vm.expectRevert(IStakeVault.Zero.selector);
        vault.deposit{value: 0}(alice, 0);
        vm.expectRevert(IStakeVault.Zero.selector);
        vault.deposit{value: 1}(address(0), 1);
    }

    function test_nothing_comes_before_the_desks_are_named() public {
        StakeVault bare = new StakeVault(address(0), EXIT_DELAY, address(forwarder), address(this));
        _expectRefusal(alice, IStakeVault.NotWired.selector);
        bare.deposit{value: 1}(alice, 1);
    }

    function test_a_permit_of_the_native_currency_is_refused() public {
        _expectRefusal(alice, abi.encodeWithSelector(IStakeVault.WrongTransfer.selector, 1, 0));
        vault.depositWithPermit(alice, 1, type(uint256).max, 27, 0, 0);
    }

    function test_plain_ether_is_refused() public {
        vm.prank(alice);
        (bool taken,) = address(vault).call{value: 1}("");
        vm.assertFalse(taken);
    }

    function test_nothing_goes_out_and_nobody_takes_it() public {
        vm.startPrank(alice);
        vm.expectRevert(IStakeVault.Zero.selector);
        vault.withdraw(alice, 0);
        vm.expectRevert(IStakeVault.Zero.selector);
        vault.withdraw(address(0), 1);
    }

    function test_the_vault_itself_takes_no_ether() public {
        _expectRefusal(alice, abi.encodeWithSelector(IStakeVault.PaymentRefused.selector, address(vault)));
        vault.withdraw(address(vault), 1);
    }

    function test_who_refuses_keeps_its_money_and_stops_nobody() public {
        Hostile hostile = _hostile();
        hostile.refuse(true);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.PaymentRefused.selector, address(hostile)));
        hostile.withdraw(BROUGHT);
        _expectFree(address(hostile), BROUGHT);
        hostile.refuse(false);
        hostile.withdraw(BROUGHT);
        vm.assertEq(address(hostile).balance, BROUGHT);
    }

    function test_reentering_pays_nothing_more() public {
        bytes[3] memory calls = [
            abi.encodeCall(IStakeVault.withdraw, (mallory, 1 ether)),
            abi.encodeCall(IStakeVault.deposit, (mallory, 0)),
            abi.encodeCall(IStakeVault.depositWithPermit, (mallory, 1, 0, 0, 0, 0))
        ];
        for (uint256 i = 0; i < calls.length; ++i) {
            Hostile hostile = _hostile();
            hostile.plan(address(vault), calls[i]);
            hostile.withdraw(1 ether);
            vm.assertEq(hostile.tries(), 1);
            vm.assertEq(hostile.successes(), 0);
            vm.assertEq(
                hostile.answer(), abi.encodeWithSelector(ReentrancyGuardTransient.ReentrancyGuardReentrantCall.selector)
            );
            vm.assertEq(address(hostile).balance, 1 ether);
            _expectFree(address(hostile), BROUGHT - 1 ether);
        }
    }

    /// @dev Desks are not guarded: what has gone out isn't free any more when the receiver is called.
    function test_a_desk_sees_what_is_left_while_money_goes_out() public {
        Hostile hostile = _hostile();
        hostile.plan(address(desk), abi.encodeCall(PlainDesk.lock, (KEY, address(hostile), BROUGHT - 4 ether + 1)));
        hostile.withdraw(1 ether);
        vm.assertEq(hostile.tries(), 1);
        vm.assertEq(hostile.successes(), 1);
        hostile.plan(address(desk), abi.encodeCall(PlainDesk.lock, (KEY, address(hostile), 3 ether)));
        hostile.withdraw(1 ether);
        vm.assertEq(hostile.successes(), 1);
        _expectFree(address(hostile), 2 ether - 1);
        _expectLocked(address(hostile), BROUGHT - 4 ether + 1);
        vm.assertEq(address(vault).balance, 3 * BROUGHT - 2 ether);
    }

    function test_money_goes_out_twice_in_one_transaction() public {
        Hostile hostile = _hostile();
        hostile.withdraw(1 ether);
        hostile.withdraw(1 ether);
        hostile.deposit(1 ether);
        _expectFree(address(hostile), BROUGHT - 1 ether);
    }

    function _hostile() private returns (Hostile hostile) {
        hostile = new Hostile(vault);
        vm.deal(address(hostile), BROUGHT);
        hostile.deposit(BROUGHT);
    }
}
