// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IStakeVault} from "../../../contracts/incentives/IStakeVault.sol";
import {VaultBase} from "./VaultBase.sol";

/// @notice Locked money, and what is leaving, goes to the pot.
contract VaultForfeitTest is VaultBase {
    uint64 private until;

    function setUp() public override {
        super.setUp();
        desk.lock(KEY, alice, 3 ether);
        until = uint64(vm.getBlockTimestamp()) + EXIT_DELAY;
    }

    function test_locked_money_goes_to_the_pot() public {
        vm.expectEmit(address(vault));
        emit IStakeVault.Forfeited(address(desk), KEY, alice, 1 ether);
        desk.forfeit(KEY, alice, 1 ether);
        _expectLocked(alice, 2 ether);
        _expectPot(1 ether);
        desk.forfeit(KEY, alice, 2 ether);
        _expectLocked(alice, 0);
        _expectPot(3 ether);
        _expectFree(alice, BROUGHT - 3 ether);
    }

    function test_no_more_than_answers_for_the_duty() public {
        _expectShort(alice, 3 ether, 3 ether + 1);
        desk.forfeit(KEY, alice, 3 ether + 1);
        desk.startExit(KEY, alice, 2 ether);
        _expectShort(alice, 3 ether, 3 ether + 1);
        desk.forfeit(KEY, alice, 3 ether + 1);
        _expectShort(bob, 0, 1);
        desk.forfeit(KEY, bob, 1);
    }

    function test_locked_money_goes_first() public {
        desk.startExit(KEY, alice, 2 ether);
        desk.forfeit(KEY, alice, 1 ether);
        _expectLocked(alice, 0);
        _expectLeaving(alice, 2 ether, until);
        _expectPot(1 ether);
    }

    function test_all_of_both() public {
        desk.startExit(KEY, alice, 2 ether);
        desk.forfeit(KEY, alice, 3 ether);
        _expectLocked(alice, 0);
        _expectLeaving(alice, 0, 0);
        _expectPot(3 ether);
        vm.warp(until);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.NotYet.selector, 0));
        vault.finishExit(address(desk), KEY, alice);
    }

    /// @dev Whoever calls first changes nothing: what has left is not there, finished or not.
    function test_what_has_left_does_not_answer_with_what_is_locked() public {
        desk.startExit(KEY, alice, 2 ether);
        vm.warp(until);
        _expectShort(alice, 1 ether, 1 ether + 1);
        desk.forfeit(KEY, alice, 1 ether + 1);
        desk.forfeit(KEY, alice, 1 ether);
        vault.finishExit(address(desk), KEY, alice);
        _expectFree(alice, BROUGHT - 1 ether);
    }

    function test_the_pot_is_of_the_desk_and_the_key() public {
        desk.forfeit(KEY, alice, 1 ether);
        vm.assertEq(vault.pot(address(desk), OTHER_KEY), 0);
        vm.assertEq(vault.pot(address(otherDesk), KEY), 0);
        _expectShort(address(otherDesk), 0, 1);
        otherDesk.pay(KEY, mallory, 1);
        _expectShort(address(otherDesk), 0, 1);
        otherDesk.move(KEY, address(otherDesk), KEY, 1);
    }
}
