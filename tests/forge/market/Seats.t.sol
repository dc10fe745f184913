// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IProfiles} from "../../../contracts/market/IProfiles.sol";
import {ITaskMarket} from "../../../contracts/market/ITaskMarket.sol";
import {Status} from "../../../contracts/market/TaskTypes.sol";
import {MarketBase} from "./MarketBase.sol";

/// @notice Who may take which seat, and what a profile binds.
contract SeatsTest is MarketBase {
    function test_the_submitter_does_not_verify_its_own_task() public {
        _submit();
        vm.prank(submitter);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.NotAllowed.selector, submitter));
        market.joinAsVerifier{value: 3 ether}(id);
    }

    function test_the_solver_does_not_verify_itself() public {
        _toDrawn();
        _pass(30 minutes + 1);
        market.claimVerifierDefault(id);
        vm.prank(solver);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.NotAllowed.selector, solver));
        market.joinAsVerifier{value: 3 ether}(id);
    }

    function test_the_verifier_does_not_solve() public {
        _submit();
        _join(verifier);
        _profile();
        _pass(10 minutes + 1);
        vm.prank(verifier);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.NotAllowed.selector, verifier));
        market.acceptTask{value: 5 ether}(id, _price, _thresholds());
    }

    function test_one_seat() public {
        _submit();
        _join(verifier);
        vm.prank(nextVerifier);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.SeatTaken.selector, verifier));
        market.joinAsVerifier{value: 3 ether}(id);
    }

    function test_the_stake_is_exact() public {
        _submit();
        vm.startPrank(verifier);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.WrongPayment.selector, 3 ether - 1, 3 ether));
        market.joinAsVerifier{value: 3 ether - 1}(id);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.WrongPayment.selector, 3 ether + 1, 3 ether));
        market.joinAsVerifier{value: 3 ether + 1}(id);
        vm.stopPrank();
        _join(verifier);
        _profile();
        _pass(10 minutes + 1);
        vm.prank(solver);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.WrongPayment.selector, 5 ether + 1, 5 ether));
        market.acceptTask{value: 5 ether + 1}(id, _price, _thresholds());
    }

    function test_a_seat_is_taken_in_open_and_drawn_only() public {
        _toTraining();
        vm.prank(nextVerifier);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.WrongStatus.selector, id, uint8(Status.Training)));
        market.joinAsVerifier{value: 3 ether}(id);
    }

    function test_leaving_takes_the_profile_along() public {
        _submit();
        _join(verifier);
        _profile();
        _pass(10 minutes + 1);
        vm.prank(challenger);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.NotAllowed.selector, challenger));
        market.leaveAsVerifier(id);
        vm.prank(verifier);
        market.leaveAsVerifier(id);
        vm.assertEq(market.credits(verifier), 3 ether);
        _expectConserved();
        vm.prank(solver);
        vm.expectRevert(ITaskMarket.NoVerifier.selector);
        market.acceptTask{value: 5 ether}(id, _price, _thresholds());
        _join(nextVerifier);
        vm.prank(solver);
        vm.expectRevert(abi.encodeWithSelector(IProfiles.NoProfile.selector, id));
        market.acceptTask{value: 5 ether}(id, _price, _thresholds());
        vm.prank(solver);
        vm.expectRevert(abi.encodeWithSelector(IProfiles.NoProfile.selector, id));
        market.acceptTask{value: 5 ether}(id, _price, [uint64(0), 0, 0]);
        vm.prank(verifier);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.NotAllowed.selector, verifier));
        market.leaveAsVerifier(id);
    }

    function test_an_empty_seat_can_not_be_left() public {
        _submit();
        vm.prank(verifier);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.NotAllowed.selector, verifier));
        market.leaveAsVerifier(id);
    }

    function test_nobody_leaves_a_training_solver() public {
        _toTraining();
        vm.prank(verifier);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.WrongStatus.selector, id, uint8(Status.Training)));
        market.leaveAsVerifier(id);
    }

    function test_a_solver_is_bound_by_the_profile_that_it_saw() public {
        _submit();
        _join(verifier);
        _profile();
        _pass(10 minutes + 1);
        for (uint256 c = 0; c < 3; ++c) {
            uint64[3] memory other = _thresholds();
            other[c] -= 1;
            vm.prank(solver);
            vm.expectRevert(ITaskMarket.ProfileMismatch.selector);
            market.acceptTask{value: 5 ether}(id, _price, other);
        }
        _accept();
        vm.assertEq(market.task(id).solver, solver);
        vm.assertEq(market.task(id).deadline, block.timestamp + 1 hours);
    }

    function test_the_price_fits_the_escrow() public {
        _submit();
        _join(verifier);
        _profile();
        _pass(10 minutes + 1);
        vm.startPrank(solver);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.PriceTooHigh.selector, 8 ether));
        market.acceptTask{value: 5 ether}(id, 8 ether + 1, _thresholds());
        market.acceptTask{value: 5 ether}(id, 8 ether, _thresholds());
    }

    function test_a_task_has_one_solver() public {
        _toTraining();
        vm.prank(challenger);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.WrongStatus.selector, id, uint8(Status.Training)));
        market.acceptTask{value: 5 ether}(id, _price, _thresholds());
    }
}
