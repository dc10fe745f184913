// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {StakeVault} from "../../../contracts/incentives/StakeVault.sol";
import {Base} from "../Base.sol";

/// @notice A second desk.
contract SecondDesk {}

/// @notice Laws of the vault in ether: no verb makes or loses value, for all balances and amounts. forge draws inputs,
/// `.ci/audit prove` proves them.
contract VaultLaws is Base {
    /// @dev All that one account has under one key, and the pot of the key.
    struct Balances {
        uint96 free;
        uint96 locked;
        uint96 leaving;
        uint96 pot;
    }

    uint64 private constant DELAY = 30 days;
    uint256 private constant START = 1_700_000_000;
    uint256 private constant BESIDE = 1 ether;
    bytes32 private constant KEY = "key";
    bytes32 private constant OTHER_KEY = "other key";
    address private constant ACCOUNT = address(0xacc0);
    address private constant OTHER = address(0x07e4);

    StakeVault private vault;
    address private second;

    /// @dev This contract is a desk, at which somebody else has something free, locked and leaving, and another key has
    /// a pot.
    function setUp() public {
        vault = new StakeVault(address(0), DELAY, address(0), address(this));
        second = address(new SecondDesk());
        address[] memory desks = new address[](2);
        (desks[0], desks[1]) = (address(this), second);
        vault.wire(desks);
        vm.warp(START);
        vm.deal(address(this), 4 * BESIDE);
        vault.deposit{value: 4 * BESIDE}(OTHER, 4 * BESIDE);
        vault.lock(KEY, OTHER, 2 * BESIDE);
        vault.startExit(KEY, OTHER, BESIDE);
        vault.lock(OTHER_KEY, OTHER, BESIDE);
        vault.forfeit(OTHER_KEY, OTHER, BESIDE);
    }

    /// @dev Brings the account where it has all of this.
    function _put(Balances memory b) private {
        uint256 sum = uint256(b.free) + b.locked + b.leaving + b.pot;
        vm.deal(address(this), sum);
        if (sum > 0) vault.deposit{value: sum}(ACCOUNT, sum);
        vault.lock(KEY, ACCOUNT, sum - b.free);
        vault.startExit(KEY, ACCOUNT, b.leaving);
        vault.forfeit(KEY, ACCOUNT, b.pot);
    }

    function _assertBalances(uint256 free, uint256 locked, uint256 leaving, uint256 pot) private view {
        assert(vault.free(ACCOUNT) == free);
        assert(vault.locked(address(this), KEY, ACCOUNT) == locked);
        (uint256 amount,) = vault.leaving(address(this), KEY, ACCOUNT);
        assert(amount == leaving);
        assert(vault.pot(address(this), KEY) == pot);
    }

    /// @dev Nobody else has more or less than before.
    function _assertOthers() private view {
        assert(vault.free(OTHER) == BESIDE && vault.locked(address(this), KEY, OTHER) == BESIDE);
        (uint256 amount,) = vault.leaving(address(this), KEY, OTHER);
        assert(amount == BESIDE && vault.pot(address(this), OTHER_KEY) == BESIDE);
        assert(vault.locked(address(this), OTHER_KEY, ACCOUNT) == 0 && vault.locked(second, KEY, ACCOUNT) == 0);
        assert(vault.pot(second, KEY) == 0);
    }

    function _call(bytes memory data) private returns (bool success) {
        (success,) = address(vault).call(data);
    }

    /// @dev A call that fails changes nothing, which the machine sees to.
    function testProve_a_lock_takes_what_is_free(Balances memory b, uint256 amount) public {
        _put(b);
        assert(_call(abi.encodeCall(vault.lock, (KEY, ACCOUNT, amount))) == (amount <= b.free));
        if (amount > b.free) return;
        _assertBalances(b.free - amount, b.locked + amount, b.leaving, b.pot);
        _assertOthers();
    }

    function testProve_an_unlock_gives_it_back(Balances memory b, uint256 amount) public {
        _put(b);
        assert(_call(abi.encodeCall(vault.unlock, (KEY, ACCOUNT, amount))) == (amount <= b.locked));
        if (amount > b.locked) return;
        _assertBalances(b.free + amount, b.locked - amount, b.leaving, b.pot);
        _assertOthers();
    }

    /// @dev What has left by then becomes free.
    function testProve_an_exit_takes_what_is_locked(Balances memory b, uint256 amount, uint32 wait) public {
        _put(b);
        vm.warp(START + wait);
        assert(_call(abi.encodeCall(vault.startExit, (KEY, ACCOUNT, amount))) == (amount <= b.locked));
        if (amount > b.locked) return;
        uint256 left = amount > 0 && wait >= DELAY ? b.leaving : 0;
        _assertBalances(b.free + left, b.locked - amount, b.leaving - left + amount, b.pot);
        _assertOthers();
    }

    function testProve_an_exit_ends_after_its_delay(Balances memory b, uint32 wait) public {
        _put(b);
        vm.warp(START + wait);
        bool hasLeft = b.leaving > 0 && wait >= DELAY;
        assert(_call(abi.encodeCall(vault.finishExit, (address(this), KEY, ACCOUNT))) == hasLeft);
        if (!hasLeft) return;
        _assertBalances(uint256(b.free) + b.leaving, b.locked, 0, b.pot);
        _assertOthers();
    }

    /// @dev First what is locked, then what is leaving and has not left.
    function testProve_what_is_forfeited_is_in_the_pot(Balances memory b, uint256 amount, uint32 wait) public {
        _put(b);
        vm.warp(START + wait);
        uint256 late = wait < DELAY ? b.leaving : 0;
        bool isThere = amount <= b.locked + late;
        assert(_call(abi.encodeCall(vault.forfeit, (KEY, ACCOUNT, amount))) == isThere);
        if (!isThere) return;
        uint256 fromExit = amount <= b.locked ? 0 : amount - b.locked;
        _assertBalances(b.free, b.locked - (amount - fromExit), b.leaving - fromExit, b.pot + amount);
        _assertOthers();
    }

    function testProve_a_payment_empties_the_pot_by_as_much(Balances memory b, uint256 amount) public {
        _put(b);
        assert(_call(abi.encodeCall(vault.pay, (KEY, ACCOUNT, amount))) == (amount <= b.pot));
        if (amount > b.pot) return;
        _assertBalances(b.free + amount, b.locked, b.leaving, b.pot - amount);
        _assertOthers();
    }

    function testProve_a_pot_moves_to_a_desk(Balances memory b, uint256 amount) public {
        _put(b);
        assert(_call(abi.encodeCall(vault.move, (KEY, second, OTHER_KEY, amount))) == (amount <= b.pot));
        if (amount > b.pot) return;
        _assertBalances(b.free, b.locked, b.leaving, b.pot - amount);
        assert(vault.pot(second, OTHER_KEY) == amount);
        _assertOthers();
    }

    /// @dev And no other way brings ether in.
    function testProve_a_deposit_is_free(Balances memory b, uint96 value, uint256 amount) public {
        _put(b);
        vm.deal(address(this), value);
        uint256 held = address(vault).balance;
        (bool success,) = address(vault).call{value: value}(abi.encodeCall(vault.deposit, (ACCOUNT, amount)));
        assert(success == (value == amount && amount > 0));
        if (!success) return;
        assert(address(vault).balance == held + amount);
        _assertBalances(b.free + amount, b.locked, b.leaving, b.pot);
        _assertOthers();
    }

    function testProve_a_withdrawal_takes_what_is_free(Balances memory b, uint256 amount) public {
        _put(b);
        uint256 held = address(vault).balance;
        vm.prank(ACCOUNT);
        bool isThere = amount > 0 && amount <= b.free;
        assert(_call(abi.encodeCall(vault.withdraw, (address(0xbeef), amount))) == isThere);
        if (!isThere) return;
        assert(address(vault).balance == held - amount && address(0xbeef).balance == amount);
        _assertBalances(b.free - amount, b.locked, b.leaving, b.pot);
        _assertOthers();
    }

    /// @dev Whoever is no desk moves nothing: not the account itself either.
    function testProve_strangers_move_nothing(address stranger, uint256 amount) public {
        if (stranger == address(this) || stranger == second || amount == 0) return;
        bytes[6] memory verbs = [
            abi.encodeCall(vault.lock, (KEY, OTHER, amount)),
            abi.encodeCall(vault.unlock, (KEY, OTHER, amount)),
            abi.encodeCall(vault.startExit, (KEY, OTHER, amount)),
            abi.encodeCall(vault.forfeit, (KEY, OTHER, amount)),
            abi.encodeCall(vault.pay, (OTHER_KEY, OTHER, amount)),
            abi.encodeCall(vault.move, (OTHER_KEY, second, KEY, amount))
        ];
        for (uint256 i = 0; i < verbs.length; i++) {
            vm.prank(stranger);
            assert(!_call(verbs[i]));
        }
    }
}
