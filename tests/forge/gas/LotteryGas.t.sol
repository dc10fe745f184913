// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {LotteryBase} from "../incentives/LotteryBase.sol";

/// @notice Gas of tickets and of the jackpot, on record in .ci/gas.json as `Gas.t.sol`: execution alone, without
/// calldata and the 21,000 of a transaction.
contract LotteryGas is LotteryBase {
    bytes32 private constant TASK = "task";
    bytes32 private constant CLOSED = "closed task";
    uint128 private constant RESERVE = 6 ether;
    uint32 private index;
    bytes private evidence = abi.encode(1);

    function setUp() public override {
        super.setUp();
        _enrol(alice, 2);
        _enrol(bob, 1);
        _bring(mallory, 20 ether);
        _donate(mallory, 20 ether);
        _bring(mallory, 20 ether);
        _pass(1);
        bytes32 secret = _toWatch(CLOSED, RESERVE, true);
        index = _index(CLOSED, 1, secret);
        _toCommit();
        _watch(alice, CLOSED, 0, _found(alice, CLOSED, 1, index));
        _toClosed(CLOSED, secret);
        _toWatch(TASK, RESERVE, true);
        _toCommit();
    }

    function test_sortition_enrol() public {
        vm.prank(mallory);
        sortition.enrol(1);
    }

    function test_sortition_resign() public {
        vm.prank(alice);
        sortition.resign(1);
    }

    function test_sortition_is_watcher() public view {
        sortition.isWatcher(alice, 0, TASK, 1, 1_000_001, SEED);
    }

    function test_jackpot_donate() public {
        vm.prank(mallory);
        jackpot.donate(1 ether);
    }

    function test_jackpot_reserve() public {
        vm.prank(address(desk));
        jackpot.reserve("another", RESERVE);
    }

    function test_jackpot_release() public {
        vm.prank(address(desk));
        jackpot.release(TASK);
    }

    function test_jackpot_watch() public {
        vm.prank(alice);
        jackpot.watch(TASK, 0, "found");
    }

    function test_jackpot_claim() public {
        jackpot.claim(CLOSED, 1, alice, 0, index, SALT, evidence);
    }
}
