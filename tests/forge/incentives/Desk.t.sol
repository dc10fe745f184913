// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Desk} from "../../../contracts/incentives/Desk.sol";
import {PlainDesk, StakeVault, VaultBase} from "./VaultBase.sol";

/// @notice What every desk knows: its vault, and once for ever the other desks.
contract DeskTest is VaultBase {
    function _expectNotAllowed(address caller) private {
        vm.expectRevert(abi.encodeWithSelector(Desk.NotAllowed.selector, caller));
    }

    function test_a_desk_knows_its_vault_and_its_forwarder() public view {
        vm.assertEq(address(desk.vault()), address(vault));
        vm.assertEq(desk.trustedForwarder(), address(forwarder));
    }

    function test_other_desks_are_named_once() public {
        desk.wire(address(otherDesk));
        vm.assertEq(desk.neighbour(), address(otherDesk));
        _expectNotAllowed(address(this));
        desk.wire(address(otherDesk));
    }

    function test_only_the_deployer_names_other_desks() public {
        vm.prank(mallory);
        _expectNotAllowed(mallory);
        desk.wire(mallory);
    }

    /// @dev At agreed addresses a factory creates the desks, which can't be what names them.
    function test_the_deployer_is_not_who_creates_it() public {
        PlainDesk third = new PlainDesk(new StakeVault(address(0), EXIT_DELAY, address(forwarder), alice));
        _expectNotAllowed(address(this));
        third.wire(address(desk));
        vm.prank(alice);
        third.wire(address(desk));
        vm.assertEq(third.neighbour(), address(desk));
    }

    function test_one_desk_alone_may_call() public {
        desk.wire(address(otherDesk));
        otherDesk.tell(desk);
        PlainDesk third = new PlainDesk(vault);
        _expectNotAllowed(address(third));
        third.tell(desk);
        vm.prank(mallory);
        _expectNotAllowed(mallory);
        desk.greet();
    }

    function test_any_desk_of_the_vault_may_call() public {
        otherDesk.visit(desk);
        PlainDesk third = new PlainDesk(vault);
        _expectNotAllowed(address(third));
        third.visit(desk);
        vm.prank(mallory);
        _expectNotAllowed(mallory);
        desk.meet();
    }
}
