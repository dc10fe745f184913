// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {StakeVault} from "../../../contracts/incentives/StakeVault.sol";
import {Base} from "../Base.sol";

/// @notice Gas of the vault's verbs, on record in .ci/gas.json as `Gas.t.sol`: execution alone, without calldata and
/// the 21,000 of a transaction. Accounts, locks and pots that are written to hold something before and after, but for
/// the pot that money moves to.
contract VaultGas is Base {
    bytes32 private constant DUTY = "duty";

    StakeVault private vault = new StakeVault(address(0), 10 days, address(0), address(this));
    address private alice = account("alice");
    address private bob = account("bob");

    function setUp() public {
        vm.warp(1_800_000_000);
        address[] memory desks = new address[](1);
        desks[0] = address(this);
        vault.wire(desks);
        vm.deal(address(this), 100 ether);
        vm.deal(bob, 1 ether);
        vault.deposit{value: 10 ether}(alice, 10 ether);
        vault.deposit{value: 10 ether}(bob, 10 ether);
        vault.lock(DUTY, alice, 6 ether);
        vault.startExit(DUTY, alice, 2 ether);
        vault.forfeit(DUTY, alice, 1 ether);
    }

    function test_vault_deposit() public {
        _cool();
        vault.deposit{value: 1 ether}(alice, 1 ether);
    }

    function test_vault_withdraw() public {
        vm.prank(alice);
        _cool();
        vault.withdraw(bob, 1 ether);
    }

    function test_vault_lock() public {
        _cool();
        vault.lock(DUTY, alice, 1 ether);
    }

    function test_vault_unlock() public {
        _cool();
        vault.unlock(DUTY, alice, 1 ether);
    }

    function test_vault_start_exit() public {
        _cool();
        vault.startExit(DUTY, alice, 1 ether);
    }

    function test_vault_finish_exit() public {
        vm.warp(1_800_000_000 + 10 days);
        _cool();
        vault.finishExit(address(this), DUTY, alice);
    }

    function test_vault_forfeit() public {
        _cool();
        vault.forfeit(DUTY, alice, 1 ether);
    }

    function test_vault_forfeit_what_is_leaving() public {
        _cool();
        vault.forfeit(DUTY, alice, 4 ether);
    }

    function test_vault_pay() public {
        _cool();
        vault.pay(DUTY, bob, 0.5 ether);
    }

    function test_vault_move() public {
        _cool();
        vault.move(DUTY, address(this), "another duty", 0.5 ether);
    }

    function _cool() private {
        vm.cool(address(vault));
    }
}
