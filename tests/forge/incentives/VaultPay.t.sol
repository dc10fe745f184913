// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IStakeVault} from "../../../contracts/incentives/IStakeVault.sol";
import {VaultBase} from "./VaultBase.sol";

/// @notice A pot pays a party, or moves on to another desk.
contract VaultPayTest is VaultBase {
    function setUp() public override {
        super.setUp();
        desk.lock(KEY, alice, 3 ether);
        desk.forfeit(KEY, alice, 3 ether);
    }

    function test_nobody_is_not_paid() public {
        vm.expectRevert(IStakeVault.Zero.selector);
        desk.pay(KEY, address(0), 1);
    }

    function test_a_pot_moves_to_another_desk() public {
        vm.expectEmit(address(vault));
        emit IStakeVault.Moved(address(desk), KEY, address(otherDesk), OTHER_KEY, 1 ether);
        desk.move(KEY, address(otherDesk), OTHER_KEY, 1 ether);
        _expectPot(2 ether);
        vm.assertEq(vault.pot(address(otherDesk), OTHER_KEY), 1 ether);
        desk.move(KEY, address(otherDesk), OTHER_KEY, 0.5 ether);
        vm.assertEq(vault.pot(address(otherDesk), OTHER_KEY), 1.5 ether);
        otherDesk.pay(OTHER_KEY, bob, 1.5 ether);
        _expectFree(bob, BROUGHT + 1.5 ether);
    }

    function test_a_pot_moves_to_no_stranger() public {
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.NotADesk.selector, mallory));
        desk.move(KEY, mallory, KEY, 1 ether);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.NotADesk.selector, mallory));
        desk.move(KEY, mallory, KEY, 0);
    }
}
