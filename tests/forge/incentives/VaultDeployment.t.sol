// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Coin, IStakeVault, StakeVault, VaultBase} from "./VaultBase.sol";

/// @notice What a constructor fixes for ever; desks are named once, and do what nobody else does.
contract VaultDeploymentTest is VaultBase {
    function test_what_is_fixed_at_deployment() public {
        Coin coin = new Coin();
        StakeVault other = new StakeVault(address(coin), 3 days, mallory, alice);
        vm.assertEq(other.asset(), address(coin));
        vm.assertEq(other.exitDelay(), 3 days);
        vm.assertEq(other.trustedForwarder(), mallory);
        vm.assertEq(other.deployer(), alice);
        vm.assertFalse(other.wired());
        vm.assertEq(vault.asset(), address(0));
        vm.assertEq(vault.trustedForwarder(), address(forwarder));
    }

    function test_an_asset_without_code_is_refused() public {
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.NotAToken.selector, alice));
        this.newVault(alice, EXIT_DELAY, address(this));
    }

    function test_bounds_of_the_exit_delay() public {
        vm.assertEq(new StakeVault(address(0), 1 days, address(0), address(this)).exitDelay(), 1 days);
        vm.assertEq(new StakeVault(address(0), 365 days, address(0), address(this)).exitDelay(), 365 days);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.BadExitDelay.selector, 1 days - 1));
        this.newVault(address(0), 1 days - 1, address(this));
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.BadExitDelay.selector, 365 days + 1));
        this.newVault(address(0), 365 days + 1, address(this));
    }

    function test_without_a_deployer_it_is_refused() public {
        vm.expectRevert(IStakeVault.Zero.selector);
        this.newVault(address(0), EXIT_DELAY, address(0));
    }

    /// @dev A call of its own: a cheatcode stands in the place of `new`, and would itself be the call that has to
    /// revert.
    function newVault(address asset, uint64 exitDelay, address deployer) external {
        new StakeVault(asset, exitDelay, address(forwarder), deployer);
    }

    function _bare() private returns (StakeVault) {
        return new StakeVault(address(0), EXIT_DELAY, address(forwarder), address(this));
    }

    function test_desks_are_named_once() public {
        StakeVault bare = _bare();
        vm.expectEmit(address(bare));
        emit IStakeVault.Wired(_desks());
        bare.wire(_desks());
        vm.assertTrue(bare.wired());
        vm.assertTrue(bare.isDesk(address(desk)));
        vm.assertTrue(bare.isDesk(address(otherDesk)));
        vm.assertFalse(bare.isDesk(address(this)));
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.NotAllowed.selector, address(this)));
        bare.wire(_desks());
    }

    /// @dev At agreed addresses a factory creates the contracts, which can't be what names them.
    function test_the_deployer_is_not_who_creates_it() public {
        StakeVault bare = new StakeVault(address(0), EXIT_DELAY, address(forwarder), alice);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.NotAllowed.selector, address(this)));
        bare.wire(_desks());
        vm.prank(alice);
        bare.wire(_desks());
        vm.assertTrue(bare.wired());
    }

    function test_no_desks_are_refused() public {
        StakeVault bare = _bare();
        vm.expectRevert(IStakeVault.Zero.selector);
        bare.wire(new address[](0));
    }

    function test_a_desk_without_code_is_refused() public {
        StakeVault bare = _bare();
        address[] memory desks = _desks();
        desks[1] = alice;
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.NotADesk.selector, alice));
        bare.wire(desks);
        vm.assertFalse(bare.isDesk(desks[0]));
    }

    /// @dev Or everybody could act as that desk: the forwarder calls what any signed request says.
    function test_the_forwarder_is_no_desk() public {
        StakeVault bare = _bare();
        address[] memory desks = _desks();
        desks[0] = address(forwarder);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.NotADesk.selector, address(forwarder)));
        bare.wire(desks);
    }

    function test_only_desks_move_what_is_held() public {
        bytes[6] memory calls = [
            abi.encodeCall(IStakeVault.lock, (KEY, alice, 1)),
            abi.encodeCall(IStakeVault.unlock, (KEY, alice, 1)),
            abi.encodeCall(IStakeVault.startExit, (KEY, alice, 1)),
            abi.encodeCall(IStakeVault.forfeit, (KEY, alice, 1)),
            abi.encodeCall(IStakeVault.pay, (KEY, alice, 1)),
            abi.encodeCall(IStakeVault.move, (KEY, address(desk), KEY, 1))
        ];
        for (uint256 i = 0; i < calls.length; ++i) {
            vm.prank(alice);
            (bool done, bytes memory answer) = address(vault).call(calls[i]);
            vm.assertFalse(done);
            vm.assertEq(answer, abi.encodeWithSelector(IStakeVault.NotADesk.selector, alice));
        }
    }
}
