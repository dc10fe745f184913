// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {CompleteStateLeaf} from "../../../contracts/commitments/CompleteStateLeaf.sol";
import {Chunk, Demand, ILearningLog, Run, RunStatus} from "../../../contracts/commitments/ILearningLog.sol";
import {PullPayments} from "../../../contracts/commitments/PullPayments.sol";
import {Vm} from "../Base.sol";
import {LearningLogBase} from "./LearningLogBase.sol";

/// @notice Demands are answered or the stake is lost; nothing else moves a wei.
contract RecordDemandsTest is LearningLogBase {
    function setUp() public override {
        super.setUp();
        _open();
        _post(3);
    }

    function _answer(address who, Demand memory d) private {
        Chunk memory chunk = _chunk(d);
        vm.prank(who);
        logs.answer(d, chunk);
    }

    function _key(Demand memory d) private pure returns (bytes32) {
        return keccak256(abi.encode(d));
    }

    function testFuzz_the_publisher_answers_any_demand(uint64 index, uint32 position, uint64 leaf) public {
        Demand memory d = _demand(uint64(bound(index, 0, 2)), position, leaf);
        Chunk memory c = _chunk(d);
        vm.assertEq(logs.runOf(id).open, 1);
        // It is about the log as it was.
        _post(4);
        vm.warp(d.deadline);
        vm.expectEmit(address(logs));
        emit ILearningLog.Answered(
            id, _key(d), publisher, _completeRoot(_entries(d.index)), c.name, c.form, c.count, c.leaf
        );
        vm.prank(publisher);
        logs.answer(d, c);
        vm.assertEq(logs.credits(publisher), BOND);
        vm.assertEq(logs.credits(demander), 0);
        vm.assertEq(logs.runOf(id).open, 0);
        vm.assertEq(address(logs).balance, STAKE + BOND);
        _expectBooks();
        _expectRefusal(publisher, abi.encodeWithSelector(ILearningLog.NoSuchDemand.selector, _key(d)));
        logs.answer(d, c);
        vm.expectRevert(abi.encodeWithSelector(ILearningLog.NoSuchDemand.selector, _key(d)));
        logs.expire(d);
    }

    function test_demands_that_are_refused() public {
        vm.startPrank(demander);
        vm.expectRevert(abi.encodeWithSelector(ILearningLog.NoSuchEntry.selector, 3, 3));
        logs.demand{value: BOND}(id, 3, 0, 0);
        vm.expectRevert(abi.encodeWithSelector(ILearningLog.BondTooLow.selector, BOND - 1, BOND));
        logs.demand{value: BOND - 1}(id, 0, 0, 0);
        vm.fee(2 * BASE_FEE);
        vm.assertEq(logs.bondOf(id), 2 * BOND - PRICE);
        vm.expectRevert(abi.encodeWithSelector(ILearningLog.BondTooLow.selector, BOND, 2 * BOND - PRICE));
        logs.demand{value: BOND}(id, 0, 0, 0);
        vm.fee(BASE_FEE);
        vm.expectRevert(abi.encodeWithSelector(ILearningLog.NotOpen.selector, bytes32("none"), RunStatus.None));
        logs.demand{value: BOND}("none", 0, 0, 0);
        bytes32 key = logs.demand{value: BOND}(id, 0, 0, 0);
        vm.expectRevert(abi.encodeWithSelector(ILearningLog.AlreadyDemanded.selector, key));
        logs.demand{value: BOND}(id, 0, 0, 0);
        logs.demand{value: BOND}(id, 0, 0, 1);
        vm.assertEq(logs.runOf(id).open, 2);
        vm.warp(START + EXIT_DELAY);
        logs.demand{value: BOND}(id, 0, 0, 0);
        vm.warp(START + EXIT_DELAY + 1);
        vm.expectRevert(abi.encodeWithSelector(ILearningLog.DemandsEnded.selector, START + EXIT_DELAY));
        logs.demand{value: BOND}(id, 0, 0, 0);
        vm.stopPrank();
    }

    /// @dev A stranger that copies an answer can't take the publisher's bond, nor a demander get its own back.
    function test_only_the_publisher_answers_in_the_first_half() public {
        Demand memory d = _demand(0, 2, 1);
        Chunk memory chunk = _chunk(d);
        uint256 half = START + WINDOW / 2;
        vm.warp(half);
        _expectRefusal(demander, abi.encodeWithSelector(ILearningLog.PublisherFirst.selector, half));
        logs.answer(d, chunk);
        vm.warp(half + 1);
        _answer(stranger, d);
        vm.assertEq(logs.credits(stranger), BOND);
        _expectBooks();
    }

    function test_an_answer_in_the_last_second_and_one_after_it() public {
        Demand memory d = _demand(1, 0, 0);
        Chunk memory chunk = _chunk(d);
        vm.warp(d.deadline);
        vm.expectRevert(abi.encodeWithSelector(ILearningLog.TooEarly.selector, d.deadline));
        logs.expire(d);
        vm.warp(d.deadline + 1);
        _expectRefusal(publisher, abi.encodeWithSelector(ILearningLog.TooLate.selector, d.deadline));
        logs.answer(d, chunk);
    }

    /// @dev Another leaf of the same state, the same leaf of another state, a changed byte: none is an answer, and the
    /// demand stays.
    function test_wrong_answers() public {
        Demand memory d = _demand(1, 2, 1);
        Chunk memory good = _chunk(d);
        Demand memory other = d;
        vm.startPrank(publisher);
        other = _copy(d);
        other.leaf = 0;
        Chunk memory chunk = _chunk(other);
        vm.expectPartialRevert(ILearningLog.NotInLog.selector);
        logs.answer(d, chunk);
        other = _copy(d);
        other.position = 4;
        chunk = _chunk(other);
        vm.expectPartialRevert(ILearningLog.NotInLog.selector);
        logs.answer(d, chunk);
        other = _copy(d);
        other.index = 2;
        chunk = _chunk(other);
        vm.expectPartialRevert(ILearningLog.NotInLog.selector);
        logs.answer(d, chunk);
        chunk = _chunk(d);
        chunk.leaf[17] ^= 0x01;
        vm.expectPartialRevert(ILearningLog.NotInLog.selector);
        logs.answer(d, chunk);
        chunk = _chunk(d);
        chunk.logPath[0] ^= bytes32(uint256(1));
        vm.expectPartialRevert(ILearningLog.NotInLog.selector);
        logs.answer(d, chunk);
        chunk = _chunk(d);
        chunk.leaf = "";
        vm.expectRevert(abi.encodeWithSelector(CompleteStateLeaf.InvalidLeaf.selector, 0, 256));
        logs.answer(d, chunk);
        vm.assertTrue(logs.isOpen(_key(d)));
        vm.assertEq(logs.runOf(id).open, 1);
        logs.answer(d, good);
        vm.stopPrank();
    }

    function test_a_demand_with_any_field_changed_is_no_demand() public {
        Demand memory d = _demand(1, 2, 1);
        for (uint256 i = 0; i < 9; ++i) {
            Demand memory other = _copy(d);
            if (i == 0) other.id = "x";
            if (i == 1) other.logRoot = "x";
            if (i == 2) other.size = 2;
            if (i == 3) other.index = 0;
            if (i == 4) other.position = 0;
            if (i == 5) other.leaf = 0;
            if (i == 6) other.demander = publisher;
            if (i == 7) other.deadline += 1;
            if (i == 8) other.bond += 1;
            Chunk memory chunk = _chunk(d);
            _expectRefusal(publisher, abi.encodeWithSelector(ILearningLog.NoSuchDemand.selector, _key(other)));
            logs.answer(other, chunk);
        }
    }

    function test_withheld_data_costs_the_stake() public {
        Demand memory d = _demand(1, 2, 1);
        Demand memory later = _demand(0, 0, 0);
        vm.warp(d.deadline + 1);
        uint256 burned = address(0).balance;
        vm.expectEmit(address(logs));
        emit ILearningLog.Expired(id, _key(d));
        vm.expectEmit(address(logs));
        emit ILearningLog.DataWithheld(id, _key(d), demander, STAKE / 4, STAKE - STAKE / 4);
        logs.expire(d);
        vm.assertEq(address(0).balance - burned, STAKE - STAKE / 4);
        vm.assertEq(logs.credits(demander), BOND + STAKE / 4);
        Run memory r = logs.runOf(id);
        vm.assertTrue(r.status == RunStatus.Withheld);
        vm.assertEq(r.stake, 0);
        vm.assertEq(r.open, 1);
        vm.assertEq(address(logs).balance, 2 * BOND + STAKE / 4);
        _expectBooks();
        // Every further demand that expires gives its bond back, and nothing more: nobody is told of a stake once more.
        vm.recordLogs();
        logs.expire(later);
        Vm.Log[] memory told = vm.getRecordedLogs();
        vm.assertEq(told.length, 2);
        vm.assertEq(told[0].topics[0], ILearningLog.Expired.selector);
        vm.assertEq(told[1].topics[0], PullPayments.Credited.selector);
        vm.assertEq(logs.credits(demander), 2 * BOND + STAKE / 4);
        vm.prank(demander);
        logs.withdraw();
        vm.assertEq(address(logs).balance, 0);
        vm.assertEq(demander.balance, 100 ether + STAKE / 4);
    }

    function test_a_withheld_run_is_withheld_for_good() public {
        Demand memory d = _demand(1, 2, 1);
        vm.warp(START + 10);
        Demand memory later = _demand(0, 0, 0);
        Chunk memory chunk = _chunk(later);
        vm.warp(d.deadline + 1);
        logs.expire(d);
        bytes memory refusal = abi.encodeWithSelector(ILearningLog.NotOpen.selector, id, RunStatus.Withheld);
        _expectRefusal(demander, refusal);
        logs.demand{value: BOND}(id, 0, 0, 0);
        vm.startPrank(publisher);
        vm.expectRevert(refusal);
        logs.post(id, 4, "root", new bytes32[](0));
        vm.expectRevert(abi.encodeWithSelector(ILearningLog.AlreadyOpen.selector, id));
        logs.open(RUN, WINDOW, EXIT_DELAY, PRICE);
        // What is still in time is answered and paid.
        logs.answer(later, chunk);
        vm.assertEq(logs.credits(publisher), BOND);
        vm.warp(START + 1000 days);
        vm.expectRevert(refusal);
        logs.close(id);
        vm.stopPrank();
    }

    function test_close() public {
        Demand memory d = _demand(1, 2, 1);
        uint256 end = START + EXIT_DELAY;
        vm.warp(end);
        vm.startPrank(publisher);
        vm.expectRevert(abi.encodeWithSelector(ILearningLog.StakeLocked.selector, end));
        logs.close(id);
        vm.warp(end + 1);
        vm.expectRevert(abi.encodeWithSelector(ILearningLog.DemandsOpen.selector, 1));
        logs.close(id);
        vm.stopPrank();
        // Demands stay demands: nobody escapes by the exit.
        logs.expire(d);
        vm.assertEq(logs.runOf(id).stake, 0);
    }

    function test_close_gives_the_stake_back_once() public {
        vm.warp(START + 100);
        _post(4);
        vm.warp(START + EXIT_DELAY + 100);
        _expectRefusal(publisher, abi.encodeWithSelector(ILearningLog.StakeLocked.selector, START + EXIT_DELAY + 100));
        logs.close(id);
        vm.warp(START + EXIT_DELAY + 101);
        _expectRefusal(stranger, abi.encodeWithSelector(ILearningLog.NotPublisher.selector, stranger));
        logs.close(id);
        vm.startPrank(publisher);
        vm.expectEmit(address(logs));
        emit ILearningLog.Closed(id, STAKE);
        logs.close(id);
        vm.assertEq(logs.runOf(id).stake, 0);
        _expectBooks();
        bytes memory refusal = abi.encodeWithSelector(ILearningLog.NotOpen.selector, id, RunStatus.Closed);
        vm.expectRevert(refusal);
        logs.close(id);
        vm.expectRevert(refusal);
        logs.post(id, 5, "root", new bytes32[](0));
        vm.expectEmit(address(logs));
        emit PullPayments.Withdrawn(publisher, STAKE);
        logs.withdraw();
        vm.stopPrank();
        vm.assertEq(publisher.balance, 100 ether);
    }

    /// @dev Whoever demands from itself, to save what it can before somebody else gets it, loses three quarters.
    function test_attack_slashing_oneself() public {
        demander = publisher;
        uint256 before = publisher.balance;
        Demand memory d = _demand(1, 2, 1);
        vm.warp(d.deadline + 1);
        logs.expire(d);
        vm.prank(publisher);
        logs.withdraw();
        vm.assertEq(publisher.balance, before + STAKE / 4);
    }

    /// @dev Nobody has the code, so this can't happen; if it did, the stake would stay where it is.
    function test_what_cannot_be_burned_is_not_lost() public {
        Demand memory d = _demand(1, 2, 1);
        vm.warp(d.deadline + 1);
        vm.etch(logs.BURNED(), hex"60006000fd");
        vm.expectRevert(PullPayments.PaymentRefused.selector);
        logs.expire(d);
        vm.assertEq(logs.runOf(id).stake, STAKE);
    }

    function test_nobody_withdraws_what_it_is_not_owed() public {
        _expectRefusal(stranger, PullPayments.NothingToWithdraw.selector);
        logs.withdraw();
    }

    /// @dev Its money waits until it can take it.
    function test_an_account_that_refuses_money_loses_none() public {
        demander = publisher;
        Demand memory d = _demand(1, 2, 1);
        vm.warp(d.deadline + 1);
        logs.expire(d);
        uint256 owed = logs.credits(publisher);
        vm.etch(publisher, hex"60006000fd");
        _expectRefusal(publisher, PullPayments.PaymentRefused.selector);
        logs.withdraw();
        vm.assertEq(logs.credits(publisher), owed);
        vm.etch(publisher, "");
        vm.prank(publisher);
        logs.withdraw();
        vm.assertEq(logs.credits(publisher), 0);
    }

    /// @dev Every demand costs its bond when it is answered; however many there are, the publisher gains.
    function test_attack_spam_pays_the_publisher() public {
        for (uint32 i = 0; i < 20; ++i) {
            Demand memory d = _demand(1, i, 0);
            _answer(publisher, d);
        }
        vm.assertEq(demander.balance, 100 ether - 20 * BOND);
        vm.assertEq(logs.credits(publisher), 20 * BOND);
    }

    /// @dev Every wei held is somebody's: credited, the stake, or the bond of an open demand.
    function _expectBooks() private view {
        uint256 credits = logs.credits(publisher) + logs.credits(demander) + logs.credits(stranger);
        Run memory r = logs.runOf(id);
        vm.assertEq(address(logs).balance, credits + r.stake + r.open * BOND);
    }

    function _copy(Demand memory d) private pure returns (Demand memory) {
        return abi.decode(abi.encode(d), (Demand));
    }
}
