// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Desk, IJackpot, ISortition, LotteryBase, SeatingDesk} from "./LotteryBase.sol";

/// @notice The known failures of Truebit's jackpot, and identities without number. Its rate of forced errors is in
/// ForcedErrors.t.sol.
contract JackpotFailuresTest is LotteryBase {
    bytes32 private constant TASK = "task";
    uint128 private constant RESERVE = 64 ether + 63;
    uint32 private constant MOST = 32;

    function setUp() public override {
        super.setUp();
        _donate(mallory, 200 ether);
    }

    function _watchers() internal pure override returns (uint32) {
        return MOST;
    }

    function _shares() internal pure override returns (uint32) {
        return 2 * MOST;
    }

    /// @dev Truebit: anybody could set who receives the jackpot of a task. Here nothing names a receiver: tickets are
    /// drawn, and an account commits its own only.
    function test_truebit_an_open_setter_for_jackpot_receivers() public {
        (bytes32 secret, uint32 index) = _toFound(1);
        address[] memory desks = new address[](1);
        desks[0] = mallory;
        _expectRefusal(mallory, abi.encodeWithSelector(Desk.NotAllowed.selector, mallory));
        jackpot.wire(SeatingDesk(mallory), desks);
        // Not even whoever has deployed it, once it is wired.
        vm.expectRevert(abi.encodeWithSelector(Desk.NotAllowed.selector, address(this)));
        jackpot.wire(SeatingDesk(mallory), desks);
        vm.expectRevert(abi.encodeWithSelector(IJackpot.NotDrawn.selector, mallory, 0));
        _watch(mallory, TASK, 0, _found(mallory, TASK, 1, index));
        // The address of a drawn watcher behind the call's data counts from the forwarder only.
        bytes memory verb = abi.encodeCall(jackpot.watch, (TASK, 0, _found(mallory, TASK, 1, index)));
        vm.prank(mallory);
        (bool ok,) = address(jackpot).call(abi.encodePacked(verb, _name(0)));
        vm.assertFalse(ok);
        _toClosed(TASK, secret);
        _expectRevertClaim(abi.encodeWithSelector(IJackpot.NotCaught.selector, mallory, 0), mallory);
        // Whoever brings a watcher's claim doesn't get it.
        _claim(TASK, _name(0), 0, SALT);
        vm.assertEq(vault.free(mallory), 0);
        vm.assertEq(vault.free(_name(0)), 1 ether);
    }

    /// @dev Truebit: a winner could call for the jackpot again and again.
    function test_truebit_a_jackpot_that_can_be_claimed_repeatedly() public {
        (bytes32 secret,) = _toFound(2);
        _toClosed(TASK, secret);
        _claim(TASK, _name(0), 0, SALT);
        for (uint256 i = 0; i < 3; ++i) {
            _expectRevertClaim(abi.encodeWithSelector(IJackpot.NotCaught.selector, _name(0), 0), _name(0));
            _pass(CATCH_WINDOW / 4);
        }
        vm.assertEq(vault.free(_name(0)), 1 ether);
    }

    /// @dev Truebit: the caller named the block whose hash decided. Here a draw takes task, account and ticket from the
    /// caller, and all else from the desk: neither block, time nor caller change who watches.
    function test_truebit_a_block_hash_chosen_by_the_caller_as_randomness() public {
        _enrol(_name(0), 40);
        _enrol(_name(1), 60);
        _pass(1);
        _toWatch(TASK, RESERVE, true);
        uint256 before = _whoWatches();
        vm.assertGt(before, 0);
        vm.assertLt(before, (1 << 40) - 1);
        for (uint256 i = 1; i < 6; ++i) {
            vm.roll(block.number + i * 256);
            vm.prevrandao(uint256(keccak256(abi.encode(i))));
            _pass(i);
            vm.startPrank(_name(i));
            vm.assertEq(_whoWatches(), before);
            vm.stopPrank();
        }
        // Nor is there a second draw of the same seating: the beacon has given its seed.
        vm.expectRevert(SeatingDesk.Unordered.selector);
        desk.draw(TASK, "another seed");
    }

    /// @dev Truebit: a sum of stakes was not checked, and could wrap around. Here all sums are, at their largest.
    function test_truebit_an_unchecked_addition() public {
        uint256 most = type(uint32).max;
        _bring(alice, (most + 1) * UNIT);
        vm.prank(alice);
        sortition.enrol(uint32(most));
        _expectRefusal(alice, abi.encodeWithSelector(ISortition.BadCount.selector, alice, 1));
        sortition.enrol(1);
        vm.assertEq(sortition.ticketsNow(alice), most);
        _enrol(bob, uint32(most));
        vm.assertEq(sortition.totalNow(), 2 * most);
        _donate(mallory, 1 << 200);
        desk.reserve("first", type(uint128).max);
        desk.reserve("second", type(uint128).max);
        vm.assertEq(jackpot.reserved(), 2 * uint256(type(uint128).max));
        vm.assertEq(jackpot.available(), (1 << 200) + 200 ether - 2 * uint256(type(uint128).max));
    }

    /// @dev Truebit: after a forced error the second solution was taken as it was. Here the sealed claim can be
    /// disputed like any other, and what is paid for is the root that stands after that.
    function test_truebit_no_checker_for_the_second_solution_after_a_forced_error() public {
        _enrol(_name(0), 1);
        _enrol(_name(1), 1);
        _pass(1);
        bytes32 secret = _toWatch(TASK, RESERVE, true);
        uint32 index = _index(TASK, 1, secret);
        bytes32 honest = "what a replay gives";
        _toCommit();
        _watch(_name(0), TASK, 0, keccak256(abi.encode(_name(0), TASK, uint32(1), index, honest, SALT)));
        // The verifier's friend names the false root that it has sealed.
        _watch(_name(1), TASK, 0, _found(_name(1), TASK, 1, index));
        _pass(1);
        desk.disclose(TASK, secret, SALT, _truth(index));
        _expectRevertClaim(abi.encodeWithSelector(IJackpot.NotClosed.selector, TASK), _name(1));
        desk.correct(TASK, index, honest);
        desk.close(TASK);
        _expectRevertClaim(abi.encodeWithSelector(IJackpot.NotCaught.selector, _name(1), 0), _name(1));
        _claim(TASK, _name(0), 0, SALT);
        vm.assertEq(vault.free(_name(0)), 1 ether);
    }

    /// @dev Truebit: J / 2^(k - 1) for k finders. Here each gets the same, however many they are.
    function test_truebit_pay_that_shrinks_exponentially_with_the_number_of_challengers() public {
        (bytes32 secret,) = _toFound(MOST);
        _toClosed(TASK, secret);
        for (uint256 i = 0; i < MOST; ++i) {
            _claim(TASK, _name(i), 0, SALT);
            vm.assertEq(vault.free(_name(i)), 1 ether);
        }
    }

    /// @dev sybil_jackpot_excess_wei = 0: the same tickets under 1 to 32 names are paid the same together, to the wei.
    function test_identities_gain_nothing() public {
        (bytes32 secret,) = _toFoundBy(_single(alice), MOST);
        _toClosed(TASK, secret);
        uint256 one = _claimAll(_single(alice));
        vm.assertEq(one, 32 ether);
        for (uint32 k = 2; k <= MOST; ++k) {
            setUp();
            address[] memory names = new address[](k);
            for (uint256 i = 0; i < k; ++i) {
                names[i] = _name(i);
            }
            (secret,) = _toFoundBy(names, MOST);
            _toClosed(TASK, secret);
            vm.assertLe(_claimAll(names), one);
        }
    }

    /// @dev Mallory brings the claim of a first ticket.
    function _expectRevertClaim(bytes memory reason, address who) private {
        (,,,,,,,,, uint32 index) = desk.seats(TASK, 1);
        _expectRefusal(mallory, reason);
        jackpot.claim(TASK, 1, who, 0, index, SALT, abi.encode(1));
    }

    function _name(uint256 i) private pure returns (address) {
        return address(uint160(0xA0000 + i));
    }

    function _single(address who) private pure returns (address[] memory names) {
        names = new address[](1);
        names[0] = who;
    }

    /// @dev All of `count` accounts with one ticket each watch, and have found the error.
    function _toFound(uint256 count) private returns (bytes32 secret, uint32 index) {
        address[] memory names = new address[](count);
        for (uint256 i = 0; i < count; ++i) {
            names[i] = _name(i);
        }
        return _toFoundBy(names, uint32(count));
    }

    /// @dev The tickets go round; all of them watch, and have found the error.
    function _toFoundBy(address[] memory names, uint32 tickets) private returns (bytes32 secret, uint32 index) {
        for (uint256 i = 0; i < tickets; ++i) {
            _enrol(names[i % names.length], 1);
        }
        _pass(1);
        secret = _toWatch(TASK, RESERVE, true);
        index = _index(TASK, 1, secret);
        _toCommit();
        for (uint256 i = 0; i < names.length; ++i) {
            for (uint32 ticket = 0; ticket < sortition.ticketsNow(names[i]); ++ticket) {
                _watch(names[i], TASK, ticket, _found(names[i], TASK, 1, index));
            }
        }
    }

    function _claimAll(address[] memory names) private returns (uint256 paid) {
        for (uint256 i = 0; i < names.length; ++i) {
            for (uint32 ticket = 0; ticket < sortition.ticketsNow(names[i]); ++ticket) {
                _claim(TASK, names[i], ticket, SALT);
            }
            paid += vault.free(names[i]);
        }
    }

    /// @dev Bits of the tickets that watch, of the first account.
    function _whoWatches() private view returns (uint256 bits) {
        uint32[] memory drawn = _drawn(_name(0), TASK);
        for (uint256 i = 0; i < drawn.length; ++i) {
            bits |= 1 << drawn[i];
        }
    }
}
