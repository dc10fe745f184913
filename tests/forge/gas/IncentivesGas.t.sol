// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AuctionBase, Base, StakeVault} from "../incentives/AuctionBase.sol";
import {LotteryBase} from "../incentives/LotteryBase.sol";

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

/// @notice Gas of the calls of the auction, on record in .ci/gas.json as `Gas.t.sol`: execution alone, without calldata
/// and the 21,000 of a transaction; the vault included, the desk not. Four bids.
contract AuctionGas is AuctionBase {
    modifier metered() {
        vm.pauseGasMetering();
        _open();
        _;
        vm.pauseGasMetering();
    }

    function test_auction_open() public metered {
        _begin(address(desk));
        auction.open("another task", _terms());
    }

    function test_auction_bid() public metered {
        bytes32 commitment = _commitment(id, ada, 2 ether, 1 hours);
        _begin(ada);
        auction.bid(id, commitment);
    }

    function test_auction_reveal_and_lead() public metered {
        _toReveal();
        _begin(dan);
        _reveal(dan, 1 ether, 1 hours);
    }

    function test_auction_reveal_and_lose() public metered {
        _toReveal();
        vm.startPrank(dan);
        _reveal(dan, 1 ether, 1 hours);
        vm.stopPrank();
        _begin(cyd);
        _reveal(cyd, 5 ether, 1 hours);
    }

    function test_auction_conclude() public metered {
        _toReveal();
        _toEnd();
        _begin(address(desk));
        auction.conclude(TASK);
    }

    function test_auction_forfeit() public metered {
        _toReveal();
        _toEnd();
        _begin(dan);
        auction.forfeit(id, dan);
    }

    function test_auction_expire() public metered {
        _toReveal();
        _toEnd();
        vm.warp(vm.getBlockTimestamp() + auction.round(id).window + 1);
        _begin(dan);
        auction.expire(id);
    }

    function test_auction_record_accepted() public metered {
        _toReveal();
        _toEnd();
        desk.conclude(TASK);
        _begin(address(desk));
        auction.recordAccepted(TASK);
    }

    /// @dev Ada and Bob have revealed; Cyd and Dan haven't.
    function _toReveal() private {
        _bid(ada, 3 ether, 1 hours);
        _bid(bob, 4 ether, 1 hours);
        _bid(cyd, 5 ether, 1 hours);
        _bid(dan, 1 ether, 1 hours);
        _toReveals();
        _reveal(ada, 3 ether, 1 hours);
        _reveal(bob, 4 ether, 1 hours);
    }

    function _begin(address caller) private {
        vm.cool(address(auction));
        vm.cool(address(vault));
        vm.prank(caller);
        vm.resumeGasMetering();
    }
}

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
