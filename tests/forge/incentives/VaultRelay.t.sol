// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC2771Forwarder, Forwarder, IStakeVault, PlainDesk, Relaying, VaultBase} from "./VaultBase.sol";

/// @notice Carol has signed what Mallory relays.
contract VaultRelayTest is VaultBase, Relaying {
    uint256 private constant KEY_OF_CAROL = 0xca401;
    address private immutable carol = vm.addr(KEY_OF_CAROL);

    function setUp() public override {
        super.setUp();
        vm.prank(mallory);
        vault.deposit{value: 5 ether}(carol, 5 ether);
    }

    function _withdrawal(address to, uint256 amount) private pure returns (bytes memory) {
        return abi.encodeCall(IStakeVault.withdraw, (to, amount));
    }

    function test_a_relayed_withdrawal_is_the_signers() public {
        ERC2771Forwarder.ForwardRequestData memory request =
            _request(forwarder, KEY_OF_CAROL, address(vault), 0, _withdrawal(bob, 2 ether));
        vm.assertTrue(forwarder.verify(request));
        vm.expectEmit(address(vault));
        emit IStakeVault.Withdrawn(carol, bob, 2 ether);
        vm.prank(mallory);
        forwarder.execute(request);
        _expectFree(carol, 3 ether);
        vm.assertEq(bob.balance, 100 ether - BROUGHT + 2 ether);
    }

    function test_a_deposit_is_relayed_with_its_value() public {
        bytes memory data = abi.encodeCall(IStakeVault.deposit, (carol, 1 ether));
        ERC2771Forwarder.ForwardRequestData memory request =
            _request(forwarder, KEY_OF_CAROL, address(vault), 1 ether, data);
        vm.expectEmit(address(vault));
        emit IStakeVault.Deposited(carol, carol, 1 ether);
        vm.prank(mallory);
        forwarder.execute{value: 1 ether}(request);
        _expectFree(carol, 6 ether);
    }

    /// @dev Only what the forwarder appends names a party.
    function test_whoever_appends_an_address_is_still_the_caller() public {
        vm.prank(mallory);
        (bool done, bytes memory answer) = address(vault).call(abi.encodePacked(_withdrawal(mallory, 1 ether), carol));
        vm.assertFalse(done);
        vm.assertEq(answer, abi.encodeWithSelector(IStakeVault.Short.selector, mallory, 0, 1 ether));
    }

    function test_another_forwarder_is_not_trusted() public {
        Forwarder other = new Forwarder();
        ERC2771Forwarder.ForwardRequestData memory request =
            _request(other, KEY_OF_CAROL, address(vault), 0, _withdrawal(bob, 2 ether));
        vm.assertFalse(other.verify(request));
        vm.expectPartialRevert(ERC2771Forwarder.ERC2771UntrustfulTarget.selector);
        other.execute(request);
    }

    /// @dev To the vault, desks are who calls: a party can't be one by way of the forwarder.
    function test_nobody_is_relayed_as_a_desk() public {
        bytes memory data = abi.encodeCall(IStakeVault.lock, (KEY, alice, 1));
        ERC2771Forwarder.ForwardRequestData memory request = _request(forwarder, KEY_OF_CAROL, address(vault), 0, data);
        vm.expectRevert();
        forwarder.execute(request);
        vm.prank(address(forwarder));
        (bool done, bytes memory answer) = address(vault).call(abi.encodePacked(data, address(desk)));
        vm.assertFalse(done);
        vm.assertEq(answer, abi.encodeWithSelector(IStakeVault.NotADesk.selector, address(forwarder)));
    }

    function test_desks_trust_the_same_forwarder() public {
        vm.assertEq(desk.trustedForwarder(), address(forwarder));
        vm.prank(address(forwarder));
        (bool done, bytes memory answer) =
            address(desk).call(abi.encodePacked(abi.encodeCall(PlainDesk.who, ()), carol));
        vm.assertTrue(done);
        vm.assertEq(abi.decode(answer, (address)), carol);
        vm.prank(mallory);
        vm.assertEq(desk.who(), mallory);
    }
}
