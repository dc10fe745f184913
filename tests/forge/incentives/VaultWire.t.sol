// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IStakeVault} from "../../../contracts/incentives/IStakeVault.sol";
import {StakeVault} from "../../../contracts/incentives/StakeVault.sol";
import {VaultBase} from "./VaultBase.sol";

/// @notice Desks are named once, and do what nobody else does.
contract VaultWireTest is VaultBase {
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

    function test_only_the_deployer_names_desks() public {
        StakeVault bare = _bare();
        vm.prank(mallory);
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.NotAllowed.selector, mallory));
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
