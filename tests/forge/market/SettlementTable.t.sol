// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Outcome, Status} from "../../../contracts/market/TaskTypes.sol";
import {MarketBase} from "./MarketBase.sol";

/// @notice One test per row of the settlement table, in literal amounts: fee 10, price 7, verifier's fee 2, stakes 5 and 3, bond 1.
contract SettlementTableTest is MarketBase {
    function test_accepted_unchallenged() public {
        _toVerdict(true);
        _pass(20 minutes + 1);
        market.settle(id);
        _expectClosed(Outcome.Accepted);
        _expectCredits({toSubmitter: 1 ether, toSolver: 12 ether, toVerifier: 5 ether, toChallenger: 0, toTreasury: 0});
    }

    function test_rejected_unchallenged() public {
        _toVerdict(false);
        _pass(20 minutes + 1);
        market.settle(id);
        _expectClosed(Outcome.Rejected);
        _expectCredits({
            toSubmitter: 8 ether + 2.5 ether, toSolver: 0, toVerifier: 5 ether, toChallenger: 0, toTreasury: 2.5 ether
        });
    }

    function test_challenger_right_slashes_the_verifier_and_voids_the_verdict() public {
        _toDisputed(true);
        game.finish(false);
        _expectStatus(Status.Drawn);
        vm.assertEq(market.task(id).verifier, address(0));
        _expectCredits({
            toSubmitter: 0, toSolver: 0, toVerifier: 0, toChallenger: 1 ether + 1.5 ether, toTreasury: 1.5 ether
        });
    }

    function test_challenger_right_then_the_corrected_verdict_decides() public {
        _toDisputed(true);
        game.finish(false);
        _join(nextVerifier);
        _verdict(nextVerifier, false);
        _pass(20 minutes + 1);
        market.settle(id);
        _expectClosed(Outcome.Rejected);
        vm.assertEq(market.credits(nextVerifier), 5 ether);
        _expectCredits({
            toSubmitter: 10.5 ether, toSolver: 0, toVerifier: 0, toChallenger: 2.5 ether, toTreasury: 4 ether
        });
    }

    function test_challenger_wrong_loses_its_bond() public {
        _toDisputed(true);
        game.finish(true);
        _expectStatus(Status.Verdict);
        _expectCredits({toSubmitter: 0, toSolver: 0, toVerifier: 0.5 ether, toChallenger: 0, toTreasury: 0.5 ether});
        _pass(20 minutes + 1);
        market.settle(id);
        _expectClosed(Outcome.Accepted);
        _expectCredits({
            toSubmitter: 1 ether, toSolver: 12 ether, toVerifier: 5.5 ether, toChallenger: 0, toTreasury: 0.5 ether
        });
    }

    function test_solver_defaults() public {
        _toTraining();
        _pass(1 hours + 1);
        market.claimSolverDefault(id);
        _expectClosed(Outcome.SolverDefaulted);
        _expectCredits({
            toSubmitter: 12.5 ether, toSolver: 0, toVerifier: 3 ether, toChallenger: 0, toTreasury: 2.5 ether
        });
    }

    function test_verifier_defaults_and_the_next_one_is_paid() public {
        _toDrawn();
        _pass(30 minutes + 1);
        market.claimVerifierDefault(id);
        _expectStatus(Status.Drawn);
        _expectCredits({toSubmitter: 1.5 ether, toSolver: 0, toVerifier: 0, toChallenger: 0, toTreasury: 1.5 ether});
        _pass(300 days);
        _join(nextVerifier);
        _verdict(nextVerifier, true);
        _pass(20 minutes + 1);
        market.settle(id);
        vm.assertEq(market.credits(nextVerifier), 5 ether);
        _expectCredits({
            toSubmitter: 2.5 ether, toSolver: 12 ether, toVerifier: 0, toChallenger: 0, toTreasury: 1.5 ether
        });
    }

    function test_cancelled_before_anybody_joined() public {
        _submit();
        vm.prank(submitter);
        market.cancelTask(id);
        _expectClosed(Outcome.Cancelled);
        _expectCredits({toSubmitter: 10 ether, toSolver: 0, toVerifier: 0, toChallenger: 0, toTreasury: 0});
    }

    function test_cancelled_with_a_verifier() public {
        _submit();
        _join(verifier);
        _profile();
        _pass(10 minutes + 1);
        vm.prank(submitter);
        market.cancelTask(id);
        _expectClosed(Outcome.Cancelled);
        _expectCredits({toSubmitter: 10 ether, toSolver: 0, toVerifier: 3 ether, toChallenger: 0, toTreasury: 0});
    }

    function test_everybody_withdraws_and_nothing_is_left() public {
        _toVerdict(true);
        _challenge();
        game.finish(true);
        _pass(20 minutes + 1);
        market.settle(id);
        address[4] memory paid = [submitter, solver, verifier, treasury];
        for (uint256 i = 0; i < paid.length; ++i) {
            uint256 before = paid[i].balance;
            uint256 credit = market.credits(paid[i]);
            vm.prank(paid[i]);
            market.withdraw();
            vm.assertEq(paid[i].balance, before + credit);
        }
        vm.assertEq(address(market).balance, 0);
    }

    function _expectClosed(Outcome outcome) private view {
        _expectStatus(Status.Closed);
        vm.assertEq(uint256(market.task(id).outcome), uint256(outcome));
    }

    function _expectCredits(
        uint256 toSubmitter,
        uint256 toSolver,
        uint256 toVerifier,
        uint256 toChallenger,
        uint256 toTreasury
    ) private view {
        vm.assertEq(market.credits(submitter), toSubmitter, "submitter");
        vm.assertEq(market.credits(solver), toSolver, "solver");
        vm.assertEq(market.credits(verifier), toVerifier, "verifier");
        vm.assertEq(market.credits(challenger), toChallenger, "challenger");
        vm.assertEq(market.credits(treasury), toTreasury, "treasury");
        _expectConserved();
    }
}
