// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC20Errors} from "@openzeppelin/contracts/interfaces/draft-IERC6093.sol";
import {SafeERC20} from "@openzeppelin/contracts/token/ERC20/utils/SafeERC20.sol";
import {Coin, FeeCoin, HookCoin, ShrinkingCoin, SilentCoin, StuckCoin} from "./Tokens.sol";
import {ERC2771Forwarder, Hostile, IStakeVault, PlainDesk, ReentrancyGuardTransient, Relaying} from "./VaultBase.sol";
import {VaultBase} from "./VaultBase.sol";

/// @notice Vaults of tokens, of which some do other things than they say.
contract VaultTokenTest is VaultBase, Relaying {
    uint256 private constant KEY_OF_CAROL = 0xca401;
    address private immutable carol = vm.addr(KEY_OF_CAROL);

    /// @dev A vault of the coin; Alice, Bob and Carol have ten, and Alice and Bob have approved them.
    function _use(Coin coin) private returns (Coin) {
        _deploy(address(coin));
        address[3] memory parties = [alice, bob, carol];
        for (uint256 i = 0; i < parties.length; ++i) {
            coin.give(parties[i], 10 ether);
        }
        vm.prank(alice);
        coin.approve(address(vault), 10 ether);
        vm.prank(bob);
        coin.approve(address(vault), 10 ether);
        return coin;
    }

    function _deposit(address who, uint256 amount) private {
        vm.prank(who);
        vault.deposit(who, amount);
    }

    function _expectWrong(uint256 amount, uint256 moved) private {
        vm.expectRevert(abi.encodeWithSelector(IStakeVault.WrongTransfer.selector, amount, moved));
    }

    /// @dev The first that leaves would go with the money of the others: nobody leaves, and nobody comes, before the
    /// vault is whole again.
    function test_a_token_that_takes_from_the_vault_stops_it() public {
        ShrinkingCoin coin = new ShrinkingCoin();
        _use(coin);
        _deposit(alice, 4 ether);
        _deposit(bob, 4 ether);
        vm.prank(bob);
        vault.withdraw(bob, 1 ether);
        vm.assertEq(vault.credited(), 7 ether);
        coin.shrink(address(vault), 2 ether);
        bytes memory short = abi.encodeWithSelector(IStakeVault.AssetShort.selector, 5 ether, 7 ether);
        _expectRefusal(alice, short);
        vault.withdraw(alice, 4 ether);
        _expectRefusal(bob, short);
        vault.deposit(bob, 1 ether);
        coin.give(address(vault), 2 ether);
        vm.prank(alice);
        vault.withdraw(alice, 4 ether);
        vm.assertEq(coin.balanceOf(address(vault)), 3 ether);
        vm.assertEq(vault.credited(), 3 ether);
    }

    // Tokens that do what they say

    function test_tokens_without_an_answer_come_and_go() public {
        SilentCoin coin = new SilentCoin();
        _use(coin);
        _deposit(alice, 3 ether);
        vm.prank(alice);
        vault.withdraw(bob, 1 ether);
        vm.assertEq(coin.balanceOf(bob), 11 ether);
        _expectFree(alice, 2 ether);
    }

    function test_ether_beside_tokens_is_refused() public {
        _use(new Coin());
        vm.startPrank(alice);
        _expectWrong(0, 1);
        vault.deposit{value: 1}(alice, 1 ether);
        vm.expectRevert(IStakeVault.Zero.selector);
        vault.deposit(alice, 0);
        vm.expectRevert(IStakeVault.Zero.selector);
        vault.deposit(address(0), 1);
    }

    function test_nobody_brings_what_others_have_approved() public {
        Coin coin = _use(new Coin());
        vm.prank(mallory);
        vm.expectPartialRevert(IERC20Errors.ERC20InsufficientAllowance.selector);
        vault.deposit(mallory, 1 ether);
        vm.prank(mallory);
        vm.expectPartialRevert(IERC20Errors.ERC20InsufficientAllowance.selector);
        vault.depositWithPermit(alice, 1 ether, NEVER, 27, 0, 0);
    }

    /// @dev What is sent past `deposit` is nobody's.
    function test_a_gift_changes_no_balance() public {
        Coin coin = _use(new Coin());
        vm.prank(bob);
        coin.transfer(address(vault), 2 ether);
        _deposit(alice, 3 ether);
        _expectFree(alice, 3 ether);
        vm.prank(alice);
        vault.withdraw(alice, 3 ether);
        vm.assertEq(coin.balanceOf(address(vault)), 2 ether);
    }

    // Tokens that don't

    function test_a_fee_on_what_comes_in_is_refused() public {
        _use(new FeeCoin());
        _expectWrong(1 ether, 0.99 ether);
        _deposit(alice, 1 ether);
    }

    /// @dev Of what arrives: the vault loses what it says, and money isn't held back by a fee that begins later.
    function test_a_fee_on_what_goes_out_is_the_receivers() public {
        FeeCoin coin = new FeeCoin();
        _use(coin);
        coin.set(false, false);
        _deposit(alice, 2 ether);
        _deposit(bob, 2 ether);
        coin.set(true, false);
        vm.prank(alice);
        vault.withdraw(mallory, 2 ether);
        vm.assertEq(coin.balanceOf(mallory), 1.98 ether);
        vm.assertEq(coin.balanceOf(address(vault)), 2 ether);
    }

    /// @dev It would be paid by the others.
    function test_a_fee_that_the_vault_pays_is_refused() public {
        FeeCoin coin = new FeeCoin();
        _use(coin);
        coin.set(false, true);
        _deposit(alice, 2 ether);
        _deposit(bob, 2 ether);
        coin.set(true, true);
        vm.prank(alice);
        _expectWrong(2 ether, 2.02 ether);
        vault.withdraw(alice, 2 ether);
        _expectFree(alice, 2 ether);
    }

    function test_a_token_that_says_false_is_refused() public {
        StuckCoin coin = new StuckCoin();
        _use(coin);
        vm.expectRevert(abi.encodeWithSelector(SafeERC20.SafeERC20FailedOperation.selector, address(coin)));
        _deposit(alice, 1 ether);
        coin.set(false, false);
        _deposit(alice, 1 ether);
        coin.set(true, false);
        _expectRefusal(alice, abi.encodeWithSelector(SafeERC20.SafeERC20FailedOperation.selector, address(coin)));
        vault.withdraw(alice, 1 ether);
    }

    function test_a_token_that_says_true_and_does_nothing_is_refused() public {
        StuckCoin coin = new StuckCoin();
        _use(coin);
        coin.set(true, true);
        _expectWrong(1 ether, 0);
        _deposit(alice, 1 ether);
        coin.set(false, true);
        _deposit(alice, 1 ether);
        coin.set(true, true);
        vm.prank(alice);
        _expectWrong(1 ether, 0);
        vault.withdraw(alice, 1 ether);
        _expectFree(alice, 1 ether);
    }

    function test_the_vault_pays_no_token_to_itself() public {
        _use(new Coin());
        _deposit(alice, 1 ether);
        vm.prank(alice);
        _expectWrong(1 ether, 0);
        vault.withdraw(address(vault), 1 ether);
    }

    // Callbacks

    function _hostile(HookCoin coin) private returns (Hostile hostile) {
        _use(coin);
        _deposit(bob, 10 ether);
        hostile = new Hostile(vault);
        coin.give(address(hostile), 10 ether);
        hostile.deposit(4 ether);
    }

    function test_reentering_brings_and_takes_nothing_more() public {
        bytes[3] memory calls = [
            abi.encodeCall(IStakeVault.withdraw, (mallory, 1 ether)),
            abi.encodeCall(IStakeVault.deposit, (mallory, 1 ether)),
            abi.encodeCall(IStakeVault.depositWithPermit, (mallory, 1 ether, 0, 0, 0, 0))
        ];
        for (uint256 i = 0; i < 2 * calls.length; ++i) {
            Hostile hostile = _hostile(new HookCoin());
            hostile.plan(address(vault), calls[i / 2]);
            if (i % 2 == 0) hostile.deposit(1 ether);
            else hostile.withdraw(1 ether);
            vm.assertEq(hostile.tries(), 1);
            vm.assertEq(
                hostile.answer(), abi.encodeWithSelector(ReentrancyGuardTransient.ReentrancyGuardReentrantCall.selector)
            );
            _expectFree(address(hostile), i % 2 == 0 ? 5 ether : 3 ether);
            _expectFree(mallory, 0);
        }
    }

    function test_a_desk_does_not_see_what_is_still_coming() public {
        Hostile hostile = _hostile(new HookCoin());
        hostile.plan(address(desk), abi.encodeCall(PlainDesk.lock, (KEY, address(hostile), 4 ether + 1)));
        hostile.deposit(1 ether);
        vm.assertEq(hostile.tries(), 1);
        vm.assertEq(hostile.successes(), 0);
        vm.assertEq(
            hostile.answer(), abi.encodeWithSelector(IStakeVault.Short.selector, address(hostile), 4 ether, 4 ether + 1)
        );
        _expectFree(address(hostile), 5 ether);
    }

    /// @dev Tokens sent past `deposit` while it runs would be counted twice if only the end were looked at.
    function test_a_gift_within_a_deposit_is_refused() public {
        HookCoin coin = new HookCoin();
        Hostile hostile = _hostile(coin);
        hostile.plan(address(coin), abi.encodeCall(coin.transfer, (address(vault), 1 ether)));
        _expectWrong(2 ether, 3 ether);
        hostile.deposit(2 ether);
    }

    function test_a_gift_within_a_withdrawal_is_refused() public {
        HookCoin coin = new HookCoin();
        Hostile hostile = _hostile(coin);
        hostile.plan(address(coin), abi.encodeCall(coin.transfer, (address(vault), 3 ether)));
        _expectWrong(2 ether, 0);
        hostile.withdraw(2 ether);
        hostile.plan(address(coin), abi.encodeCall(coin.transfer, (address(vault), 0.5 ether)));
        _expectWrong(2 ether, 1.5 ether);
        hostile.withdraw(2 ether);
    }

    // Permits

    function _permit(Coin coin, uint256 amount) private view returns (uint8 v, bytes32 r, bytes32 s) {
        bytes32 form = keccak256("Permit(address owner,address spender,uint256 value,uint256 nonce,uint256 deadline)");
        uint256 nonce = coin.nonces(carol);
        bytes32 content = keccak256(abi.encode(form, carol, address(vault), amount, nonce, uint256(NEVER)));
        bytes memory signature = _signature(KEY_OF_CAROL, _domain(address(coin), "coin"), content);
        assembly {
            r := mload(add(signature, 32))
            s := mload(add(signature, 64))
            v := byte(0, mload(add(signature, 96)))
        }
    }

    function test_a_permit_that_somebody_has_used_stops_nothing() public {
        Coin coin = _use(new Coin());
        (uint8 v, bytes32 r, bytes32 s) = _permit(coin, 3 ether);
        vm.prank(mallory);
        coin.permit(carol, address(vault), 3 ether, NEVER, v, r, s);
        vm.prank(carol);
        vault.depositWithPermit(bob, 3 ether, NEVER, v, r, s);
        _expectFree(bob, 3 ether);
    }

    function test_a_permit_of_somebody_else_brings_nothing() public {
        Coin coin = _use(new Coin());
        (uint8 v, bytes32 r, bytes32 s) = _permit(coin, 3 ether);
        vm.prank(mallory);
        vm.expectPartialRevert(IERC20Errors.ERC20InsufficientAllowance.selector);
        vault.depositWithPermit(mallory, 3 ether, NEVER, v, r, s);
        vm.assertEq(coin.nonces(carol), 0);
    }

    function test_permit_and_deposit_are_relayed_together() public {
        Coin coin = _use(new Coin());
        (uint8 v, bytes32 r, bytes32 s) = _permit(coin, 3 ether);
        bytes memory data = abi.encodeCall(IStakeVault.depositWithPermit, (carol, 3 ether, NEVER, v, r, s));
        ERC2771Forwarder.ForwardRequestData memory request = _request(forwarder, KEY_OF_CAROL, address(vault), 0, data);
        vm.expectEmit(address(vault));
        emit IStakeVault.Deposited(carol, carol, 3 ether);
        vm.prank(mallory);
        forwarder.execute(request);
        _expectFree(carol, 3 ether);
    }
}
