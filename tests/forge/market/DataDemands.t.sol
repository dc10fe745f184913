// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IStakeVault} from "../../../contracts/incentives/IStakeVault.sol";
import {DataDemands} from "../../../contracts/market/DataDemands.sol";
import {DataDemand, IDataDemands} from "../../../contracts/market/IDataDemands.sol";
import {DataDemandsBase, Piece} from "./DataDemandsBase.sol";
import {Claim, ISettlement, ITaskRegistry, IVerdicts, Outcome, Placed, Status} from "./MarketBase.sol";

/// @notice Whoever can't get a state asks for it, and the solver answers for it with its stake.
contract DataDemandsTest is DataDemandsBase {
    event Answered(
        bytes32 indexed taskId,
        bytes32 indexed key,
        address indexed answerer,
        bytes32 root,
        bytes leaf,
        bytes32[] logPath
    );
    event Expired(bytes32 indexed taskId, bytes32 indexed key, bool withheld);

    int256 private constant BOND = 0.01 ether;

    // Answers

    function test_the_solver_answers() public {
        _toCommitted();
        DataDemand memory d = _demand(challenger);
        vm.assertTrue(demands.isOpen(_key(d)));
        vm.assertEq(demands.open(id), 1);
        vm.assertEq(_gain(challenger), -BOND);
        vm.expectEmit(address(demands));
        emit Answered(id, _key(d), solver, log[1], _piece(1, 0, 1).leaf, _inclusion(1));
        _answer(solver, d);
        vm.assertFalse(demands.isOpen(_key(d)));
        vm.assertEq(demands.open(id), 0);
        vm.assertEq(_gain(solver), BOND - 5 ether);
        _expectStatus(Status.Committed);
        vm.expectRevert(abi.encodeWithSelector(IDataDemands.NoSuchDemand.selector, _key(d)));
        demands.expire(d);
        Piece memory piece = _piece(1, 0, 1);
        vm.expectRevert(abi.encodeWithSelector(IDataDemands.NoSuchDemand.selector, _key(d)));
        demands.answer(d, piece);
    }

    /// @dev Numbers wrap around at the width of the trees: padding has places too.
    function test_every_place_of_every_state_has_an_answer() public {
        _toCommitted();
        for (uint64 entry = 0; entry < 5; entry += 4) {
            for (uint32 position = 0; position < 5; ++position) {
                for (uint32 leaf = 0; leaf < 5; ++leaf) {
                    _answer(solver, _demand(challenger, entry, position, leaf));
                }
            }
        }
        _answer(solver, _demand(challenger, 4, type(uint32).max, type(uint32).max));
        vm.assertEq(demands.open(id), 0);
    }

    function test_the_solver_is_first_and_then_anybody() public {
        _toCommitted();
        DataDemand memory d = _demand(challenger);
        Piece memory piece = _piece(1, 0, 1);
        _pass(WINDOW / 2);
        _expectRefusal(challenger, abi.encodeWithSelector(IDataDemands.SolverFirst.selector, d.deadline - WINDOW / 2));
        demands.answer(d, piece);
        _pass(1);
        _answer(watcher, d);
        vm.assertEq(_gain(watcher), BOND);
    }

    function test_an_answer_is_what_the_log_says() public {
        _toCommitted();
        DataDemand memory d = _demand(challenger, 1, 0, 1);
        Piece memory other = _piece(2, 0, 1);
        vm.startPrank(solver);
        vm.expectRevert(abi.encodeWithSelector(IDataDemands.NotInLog.selector, log[2]));
        demands.answer(d, other);
        other = _piece(1, 0, 0);
        vm.expectPartialRevert(IDataDemands.NotInLog.selector);
        demands.answer(d, other);
        vm.stopPrank();
        d.leaf = 0;
        _expectRefusal(solver, abi.encodeWithSelector(IDataDemands.NoSuchDemand.selector, _key(d)));
        demands.answer(d, other);
    }

    // Demands

    function test_an_entry_that_the_log_has() public {
        _toCommitted();
        vm.expectRevert(abi.encodeWithSelector(IDataDemands.NoSuchEntry.selector, uint64(5), uint64(5)));
        demands.demand(id, 5, 0, 0, 1 ether);
    }

    function test_a_bond_pays_the_answer() public {
        _toCommitted();
        vm.fee(10 gwei);
        vm.assertEq(demands.bondOf(), 0.012 ether);
        _expectRefusal(challenger, abi.encodeWithSelector(IDataDemands.BondTooHigh.selector, 0.012 ether));
        demands.demand(id, 1, 0, 0, 0.012 ether - 1);
        DataDemand memory d = _demand(challenger);
        vm.fee(0);
        _answer(solver, d);
        vm.assertEq(_gain(solver), 0.012 ether - 5 ether);
        address poor = account("poor");
        _expectRefusal(poor, abi.encodeWithSelector(IStakeVault.Short.selector, poor, uint256(0), 0.01 ether));
        demands.demand(id, 1, 0, 0, 1 ether);
    }

    function test_once_in_a_second() public {
        _toCommitted();
        DataDemand memory d = _demand(challenger);
        _expectRefusal(challenger, abi.encodeWithSelector(IDataDemands.AlreadyDemanded.selector, _key(d)));
        demands.demand(id, 1, 0, 1, 1 ether);
        _demand(watcher);
        _pass(1);
        _demand(challenger);
        vm.assertEq(demands.open(id), 3);
    }

    function test_the_window_of_a_deployment_has_bounds() public {
        uint32[4] memory wrong = [uint32(0), 59, 14 days + 1, type(uint32).max];
        for (uint256 i = 0; i < wrong.length; ++i) {
            vm.expectRevert(abi.encodeWithSelector(IDataDemands.InvalidWindow.selector, wrong[i]));
            this.newDemands(wrong[i]);
        }
        vm.assertEq(uint256(new DataDemands(vault, 60, PRICE).window()), 60);
        vm.assertEq(uint256(new DataDemands(vault, 14 days, PRICE).window()), 14 days);
    }

    // Data withheld

    /// @dev Whoever has claimed the seat has its stake back.
    function test_withheld_while_the_seat_is_claimed() public {
        _toCommitted();
        _give(seats.seating(id).round, "seat");
        seats.openClaims(id);
        int256 before = _gain(nextVerifier);
        vm.prank(nextVerifier);
        seats.claim(id, 0, "commitment");
        _withhold(_demand(challenger));
        vm.assertEq(_gain(nextVerifier), before);
        _expectNextSolver();
    }

    function test_withheld_from_a_seated_verifier() public {
        _toVerifying(true);
        _withhold(_demand(verifier));
        // The fee of its profile, and the bounty.
        vm.assertEq(_gain(verifier), 1.3125 ether);
        // The next solver has to find it in the fund anew.
        vm.assertEq(jackpot.reserved(), 0);
        _expectNextSolver();
    }

    /// @dev A verifier that lies loses its stake, whether data are withheld or not.
    function test_a_verdict_falls_although_data_are_withheld() public {
        _toContested(true);
        DataDemand memory d = _demand(watcher);
        _challenge();
        vm.warp(d.deadline + 1);
        _finish(false);
        _expectStatus(Status.Committed);
        vm.assertEq(_gain(verifier), 1 ether - 4 ether);
        demands.expire(d);
        _expectNextSolver();
        vm.assertEq(_gain(verifier), 1 ether - 4 ether);
    }

    /// @dev Nor does it escape its duty.
    function test_a_duty_is_broken_although_data_are_withheld() public {
        _toWatched(true, true);
        DataDemand memory d = _demand(verifier);
        vm.warp(verdicts.verdict(id).watchUntil + 5 minutes + 1);
        verdicts.claimUndisclosed(id);
        demands.expire(d);
        vm.assertEq(_gain(verifier), 1 ether - 4 ether + 0.3125 ether);
        _expectNextSolver();
    }

    /// @dev A solver that is about to be rejected saves nothing by a friend's demand.
    function test_a_verdict_that_rejects_goes_before() public {
        _toContested(false);
        DataDemand memory d = _demand(challenger);
        vm.warp(registry.task(id).deadline + WINDOW + 1);
        vm.expectRevert(abi.encodeWithSelector(IDataDemands.SettleFirst.selector, id));
        demands.expire(d);
        vm.assertTrue(demands.isOpen(_key(d)));
        settlement.settle(id);
        vm.assertEq(uint256(registry.task(id).outcome), uint256(Outcome.Rejected));
        Piece memory piece = _piece(1, 0, 1);
        _expectRefusal(solver, abi.encodeWithSelector(IDataDemands.Moot.selector, _key(d)));
        demands.answer(d, piece);
        vm.expectEmit(address(demands));
        emit Expired(id, _key(d), false);
        demands.expire(d);
        vm.assertEq(_gain(challenger), 0);
    }

    function test_other_demands_are_moot_and_give_their_bonds_back_at_once() public {
        _toCommitted();
        DataDemand memory first = _demand(challenger);
        _pass(WINDOW / 2);
        DataDemand memory second = _demand(watcher);
        DataDemand memory third = _demand(donor);
        _withhold(first);
        vm.assertEq(demands.open(id), 0);
        demands.expire(second);
        vm.assertEq(_gain(watcher), 0);
        _award();
        _commit();
        demands.expire(third);
        vm.assertEq(_gain(donor), 0);
        vm.assertEq(demands.open(id), 0);
        _expectStatus(Status.Committed);
    }

    /// @dev What watchers have found in the verdict about a log that is gone says nothing about the next one: a
    /// coalition could train to make a commitment of its own come true.
    function test_catches_count_for_the_log_that_stands() public {
        _toWatched(true, true);
        (, uint32 index, bytes32 wrong) = _duty();
        uint32 number = registry.task(id).seating;
        Claim memory said = _lie(index, wrong);
        Placed memory posted = Placed(said, 0, _entries(true, true));
        _watch(watcher, index, true);
        DataDemand memory d = _demand(challenger);
        _disclose(verifier, true);
        vm.warp(registry.task(id).deadline + 1);
        demands.expire(d);
        _award();
        _commit();
        _judgeNext(true);
        _settle();
        (Claim[] memory claims,) = _claims(true);
        bytes memory evidence = abi.encode(posted, Placed(claims[index], 0, _entries(true, false)));
        vm.expectRevert(abi.encodeWithSelector(IVerdicts.NotRefuted.selector, id, number, index));
        jackpot.claim(id, number, watcher, 0, index, salt, evidence);
    }

    // Time

    /// @dev Once in a seating, and for who sits there.
    function test_a_verifier_has_the_window_for_answers_on_top() public {
        _toVerifying(false);
        uint64 deadline = registry.task(id).deadline;
        _answer(solver, _demand(challenger));
        vm.assertEq(registry.task(id).deadline, deadline);
        vm.warp(deadline);
        DataDemand memory d = _demand(verifier);
        vm.assertEq(registry.task(id).deadline, deadline + WINDOW);
        vm.assertEq(uint256(demands.waiting(id).extended), registry.task(id).seating);
        _pass(1);
        _demand(verifier);
        vm.assertEq(registry.task(id).deadline, deadline + WINDOW);
        vm.warp(d.deadline);
        _answer(solver, d);
        _verdict(verifier, true);
    }

    function test_a_default_waits_for_answers_one_window_and_no_longer() public {
        _toVerifying(false);
        _answer(solver, _demand(verifier));
        uint64 deadline = registry.task(id).deadline;
        vm.warp(deadline);
        DataDemand memory d = _demand(verifier, 1, 0, 2);
        _pass(1);
        vm.expectRevert(abi.encodeWithSelector(ISettlement.DemandsOpen.selector, uint32(1)));
        settlement.claimSeatDefault(id);
        _expectRefusal(verifier, abi.encodeWithSelector(ITaskRegistry.DeadlinePassed.selector, deadline));
        demands.demand(id, 1, 0, 0, 1 ether);
        vm.warp(d.deadline);
        _answer(solver, d);
        settlement.claimSeatDefault(id);
        vm.assertEq(_gain(verifier), 1 ether - 4 ether - 2 * BOND);
        _seatVerifier(nextVerifier, false);
        deadline = registry.task(id).deadline;
        _demand(nextVerifier);
        vm.assertEq(registry.task(id).deadline, deadline + WINDOW);
    }

    function _lie(uint32 index, bytes32 wrong) private view returns (Claim memory claim) {
        (Claim[] memory claims,) = _claims(true);
        claim = claims[index];
        claim.replay = wrong;
    }

    /// @dev A new auction, nothing left of the old proof, and the whole escrow.
    function _expectNextSolver() private view {
        _expectStatus(Status.Bidding);
        vm.assertEq(registry.task(id).solver, address(0));
        vm.assertEq(registry.task(id).holder, address(0));
        vm.assertEq(uint256(verdicts.verdict(id).seating), 0);
        vm.assertEq(vault.locked(address(settlement), id, submitter), 9.3525 ether);
        vm.assertEq(vault.locked(address(settlement), id, solver), 0);
        vm.assertEq(vault.locked(address(seats), id, verifier), 0);
        vm.assertEq(vault.pot(address(settlement), id), 0);
        vm.assertEq(_gain(solver), -5 ether);
    }

    /// @dev A call of its own: a cheatcode stands in the place of `new`, and would itself be the call that has to
    /// revert.
    function newDemands(uint32 window) external {
        new DataDemands(vault, window, PRICE);
    }
}
