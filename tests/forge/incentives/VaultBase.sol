// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ReentrancyGuardTransient} from "@openzeppelin/contracts/utils/ReentrancyGuardTransient.sol";
import {Forwarder} from "../../../contracts/incentives/Forwarder.sol";
import {Base, Coin, ERC2771Forwarder, Hostile, Relaying, StakeVault} from "./Tokens.sol";
import {IStakeVault, PlainDesk} from "./PlainDesk.sol";

/// @notice A vault of the native currency with two desks, and two parties that have brought ten each.
abstract contract VaultBase is Base {
    uint64 internal constant EXIT_DELAY = 10 days;
    uint256 internal constant BROUGHT = 10 ether;
    bytes32 internal constant KEY = "a duty";
    bytes32 internal constant OTHER_KEY = "another duty";

    Forwarder internal forwarder;
    StakeVault internal vault;
    PlainDesk internal desk;
    PlainDesk internal otherDesk;
    address internal alice = account("alice");
    address internal bob = account("bob");
    address internal mallory = account("mallory");

    function setUp() public virtual {
        vm.warp(1_000_000);
        _deploy(address(0));
        address[3] memory parties = [alice, bob, mallory];
        for (uint256 i = 0; i < parties.length; ++i) {
            vm.deal(parties[i], 100 ether);
        }
        _bring(alice, BROUGHT);
        _bring(bob, BROUGHT);
    }

    /// @dev A wired vault of this asset.
    function _deploy(address asset) internal {
        forwarder = new Forwarder();
        vault = new StakeVault(asset, EXIT_DELAY, address(forwarder), address(this));
        (desk, otherDesk) = (new PlainDesk(vault), new PlainDesk(vault));
        vault.wire(_desks());
    }

    function _desks() internal view returns (address[] memory desks) {
        desks = new address[](2);
        (desks[0], desks[1]) = (address(desk), address(otherDesk));
    }

    function _bring(address who, uint256 amount) internal {
        vm.prank(who);
        vault.deposit{value: amount}(who, amount);
    }

    function _pass(uint256 time) internal {
        vm.warp(vm.getBlockTimestamp() + time);
    }

    function _expectShort(address who, uint256 available, uint256 wanted) internal {
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.Short.selector, who, available, wanted));
    }

    function _expectFree(address who, uint256 amount) internal view {
        vm.assertEq(vault.free(who), amount);
    }

    function _expectLocked(address who, uint256 amount) internal view {
        vm.assertEq(vault.locked(address(desk), KEY, who), amount);
    }

    function _expectLeaving(address who, uint256 amount, uint64 until) internal view {
        (uint256 leaving, uint64 time) = vault.leaving(address(desk), KEY, who);
        vm.assertEq(leaving, amount);
        vm.assertEq(time, until);
    }

    function _expectPot(uint256 amount) internal view {
        vm.assertEq(vault.pot(address(desk), KEY), amount);
    }
}
