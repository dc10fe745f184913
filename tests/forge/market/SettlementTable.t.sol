// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ForcedErrors} from "../../../contracts/incentives/ForcedErrors.sol";
import {Disclosure, IVerdicts, Look} from "../../../contracts/market/IVerdicts.sol";
import {Claim, LogProof, Outcome, Status} from "../../../contracts/market/TaskTypes.sol";
import {DataDemandsBase} from "./DataDemandsBase.sol";

/// @notice One test per row of the settlement table, in literal amounts: maximum price 8 (one bid: it is paid),
/// treasury 0.04, fees of profiler and verifier 1 each, tax 0.3125, stakes 5 and 3, bond 1.
contract SettlementTableTest is DataDemandsBase {
    function test_the_escrow() public {
        _submit();
        vm.assertEq(vault.locked(address(settlement), id, submitter), 10.3525 ether);
        vm.assertEq(settlement.escrowOf(_terms()), 10.3525 ether);
    }

    function test_accepted_unchallenged() public {
        _toContested(true);
        _settle();
        _expectClosed(Outcome.Accepted);
        _expectGains({toSubmitter: -10.3525 ether, toSolver: 8 ether, toVerifier: 2 ether, toChallenger: 0});
        _expectShares({toTreasury: 0.04 ether, toFund: 0.3125 ether});
    }

    function test_rejected_unchallenged() public {
        _toContested(false);
        _settle();
        _expectClosed(Outcome.Rejected);
        // Fees and tax, less half of the solver's stake.
        _expectGains({toSubmitter: 0.1875 ether, toSolver: -5 ether, toVerifier: 2 ether, toChallenger: 0});
        _expectShares({toTreasury: 0, toFund: 2.8125 ether});
    }

    /// @dev What is not finite after every replay: the submitter has chosen it, and the stake is the fund's.
    function test_rejected_though_repeated() public {
        _toVerifying(false);
        (Claim[] memory claims, LogProof[] memory logProofs) = _claims(true);
        (claims[0].replay, claims[0].references[0]) = (claims[0].end, type(uint256).max);
        vm.prank(verifier);
        verdicts.post(id, claims, logProofs, new Look[](0), "nothing");
        _openWatch();
        _disclose(verifier, true);
        _settle();
        _expectClosed(Outcome.Rejected);
        _expectGains({toSubmitter: -2.3125 ether, toSolver: -5 ether, toVerifier: 2 ether, toChallenger: 0});
        _expectShares({toTreasury: 0, toFund: 5.3125 ether});
    }

    function test_challenger_right_slashes_the_verifier_and_voids_the_verdict() public {
        _toContested(true);
        _challenge();
        _finish(false);
        _expectStatus(Status.Committed);
        vm.assertEq(registry.task(id).holder, address(0));
        _expectGains({toSubmitter: -10.3525 ether, toSolver: -5 ether, toVerifier: -3 ether, toChallenger: 2 ether});
        _expectShares({toTreasury: 0, toFund: 2 ether});
    }

    function test_challenger_right_then_the_corrected_verdict_decides() public {
        _toContested(true);
        _challenge();
        _finish(false);
        _seatVerifier(nextVerifier, false);
        _verdict(nextVerifier, false);
        _openWatch();
        _disclose(nextVerifier, false);
        _settle();
        _expectClosed(Outcome.Rejected);
        vm.assertEq(_gain(nextVerifier), 1 ether);
        _expectGains({toSubmitter: 0.1875 ether, toSolver: -5 ether, toVerifier: -3 ether, toChallenger: 2 ether});
        _expectShares({toTreasury: 0, toFund: 4.8125 ether});
    }

    function test_challenger_wrong_loses_its_bond() public {
        _toContested(true);
        _challenge();
        _finish(true);
        _expectStatus(Status.Contested);
        _expectShares({toTreasury: 0, toFund: 0.5 ether});
        _settle();
        _expectClosed(Outcome.Accepted);
        _expectGains({toSubmitter: -10.3525 ether, toSolver: 8 ether, toVerifier: 2.5 ether, toChallenger: -1 ether});
        _expectShares({toTreasury: 0.04 ether, toFund: 0.8125 ether});
    }

    function test_forced_error_missed() public {
        _toWatched(true, true);
        _disclose(verifier, true);
        _settle();
        _expectClosed(Outcome.Accepted);
        _expectGains({toSubmitter: -10.3525 ether, toSolver: 8 ether, toVerifier: 2 ether, toChallenger: 0});
        _expectShares({toTreasury: 0.04 ether, toFund: 0.3125 ether});
    }

    function test_forced_error_caught() public {
        _toWatched(true, true);
        (, uint32 index,) = _duty();
        _watch(watcher, index, true);
        _disclose(verifier, true);
        _settle();
        _expectClosed(Outcome.Accepted);
        _catch(watcher, index, true);
        // One share of four of a jackpot of two.
        vm.assertEq(_gain(watcher), 0.5 ether);
        _expectGains({toSubmitter: -10.3525 ether, toSolver: 8 ether, toVerifier: 2 ether, toChallenger: 0});
        _expectShares({toTreasury: 0.04 ether, toFund: -0.1875 ether});
    }

    function test_secret_withheld() public {
        _toWatched(true, true);
        _pass(20 minutes + 1);
        verdicts.claimUndisclosed(id);
        _expectStatus(Status.Committed);
        _expectGains({toSubmitter: -10.3525 ether, toSolver: -5 ether, toVerifier: -3 ether, toChallenger: 0});
        _expectShares({toTreasury: 0, toFund: 4 ether});
    }

    /// @dev No disclosure fits the truth where an error was due, so it ends as if the secret had been withheld.
    function test_the_truth_when_forced() public {
        _toVerifying(true);
        (Claim[] memory claims, LogProof[] memory logProofs) = _claims(true);
        (, uint32 index,) = _duty();
        bytes32 sealedClaim = ForcedErrors.sealedClaim(id, registry.task(id).seating, salt, claims[index]);
        vm.prank(verifier);
        verdicts.post(id, claims, logProofs, new Look[](0), sealedClaim);
        _openWatch();
        vm.warp(verdicts.verdict(id).watchUntil + 1);
        Disclosure memory d = Disclosure(secret, salt, claims[index], 0, _hashes(claims));
        vm.expectRevert(abi.encodeWithSelector(IVerdicts.WrongDisclosure.selector, index));
        verdicts.disclose(id, d);
        _pass(20 minutes + 1);
        verdicts.claimUndisclosed(id);
        _expectStatus(Status.Committed);
        _expectGains({toSubmitter: -10.3525 ether, toSolver: -5 ether, toVerifier: -3 ether, toChallenger: 0});
        _expectShares({toTreasury: 0, toFund: 4 ether});
    }

    function test_secret_leaked() public {
        _toWatched(true, true);
        _reportLeak(challenger);
        _expectGains({toSubmitter: -10.3525 ether, toSolver: -5 ether, toVerifier: -3 ether, toChallenger: 2 ether});
        _expectShares({toTreasury: 0, toFund: 2 ether});
        _pass(15 minutes + 1);
        verdicts.claimUndisclosed(id);
        _expectStatus(Status.Committed);
    }

    function test_profile_void() public {
        _toProfiled();
        _challengeProfile();
        _finishProfile(false);
        _expectStatus(Status.Profiling);
        _expectGains({toSubmitter: -10.3525 ether, toSolver: 0, toVerifier: -4 ether, toChallenger: 2 ether});
        _expectShares({toTreasury: 0, toFund: 2 ether});
    }

    function test_profile_stands() public {
        _toProfiled();
        _challengeProfile();
        _finishProfile(true);
        _conclude();
        _expectStatus(Status.Bidding);
        _expectGains({toSubmitter: -10.3525 ether, toSolver: 0, toVerifier: 1.5 ether, toChallenger: -1 ether});
        _expectShares({toTreasury: 0, toFund: 0.5 ether});
    }

    function test_solver_defaults_and_the_auction_begins_anew() public {
        _toTraining();
        _pass(_promise + 1);
        settlement.claimSolverDefault(id);
        _expectStatus(Status.Bidding);
        vm.assertEq(registry.task(id).solver, address(0));
        _expectGains({toSubmitter: -7.8525 ether, toSolver: -5 ether, toVerifier: 1 ether, toChallenger: 0});
        _expectShares({toTreasury: 0, toFund: 2.5 ether});
        _award();
        _expectStatus(Status.Training);
    }

    function test_data_withheld_and_the_auction_begins_anew() public {
        _toVerifying(false);
        _withhold(_demand(challenger));
        _expectStatus(Status.Bidding);
        vm.assertEq(registry.task(id).solver, address(0));
        _expectGains({toSubmitter: -7.8525 ether, toSolver: -5 ether, toVerifier: 1 ether, toChallenger: 0.3125 ether});
        _expectShares({toTreasury: 0, toFund: 2.1875 ether});
        _award();
        _expectStatus(Status.Training);
    }

    /// @dev Its verifier has worked: the fee comes from the submitter's share.
    function test_data_withheld_after_a_verdict() public {
        _toContested(true);
        _pass(_terms().challengeWindow);
        _withhold(_demand(challenger));
        _expectStatus(Status.Bidding);
        _expectGains({toSubmitter: -8.8525 ether, toSolver: -5 ether, toVerifier: 2 ether, toChallenger: 0.3125 ether});
        _expectShares({toTreasury: 0, toFund: 2.1875 ether});
    }

    function test_data_shown() public {
        _toCommitted();
        _answer(solver, _demand(challenger));
        _expectStatus(Status.Committed);
        _expectGains({
            toSubmitter: -10.3525 ether, toSolver: -4.99 ether, toVerifier: 1 ether, toChallenger: -0.01 ether
        });
        _expectShares({toTreasury: 0, toFund: 0});
    }

    function test_verifier_defaults_and_the_next_one_is_paid() public {
        _toVerifying(false);
        _pass(30 minutes + 1);
        vm.prank(challenger);
        settlement.claimSeatDefault(id);
        _expectStatus(Status.Committed);
        _expectGains({toSubmitter: -8.3525 ether, toSolver: -5 ether, toVerifier: -3 ether, toChallenger: 0.25 ether});
        _seatVerifier(nextVerifier, false);
        _verdict(nextVerifier, true);
        _openWatch();
        _disclose(nextVerifier, true);
        _settle();
        vm.assertEq(_gain(nextVerifier), 1 ether);
        _expectGains({toSubmitter: -8.3525 ether, toSolver: 8 ether, toVerifier: -3 ether, toChallenger: 0.25 ether});
        _expectShares({toTreasury: 0.04 ether, toFund: 2.0625 ether});
    }

    function test_cancelled_before_a_profile() public {
        _submit();
        vm.prank(submitter);
        registry.cancel(id);
        _expectClosed(Outcome.Cancelled);
        _expectGains({toSubmitter: 0, toSolver: 0, toVerifier: 0, toChallenger: 0});
    }

    function test_cancelled_before_a_bid() public {
        _toBidding();
        vm.prank(submitter);
        registry.cancel(id);
        _expectClosed(Outcome.Cancelled);
        _expectGains({toSubmitter: -1 ether, toSolver: 0, toVerifier: 1 ether, toChallenger: 0});
    }

    function _expectClosed(Outcome outcome) private view {
        _expectStatus(Status.Closed);
        vm.assertEq(uint256(registry.task(id).outcome), uint256(outcome));
        vm.assertEq(vault.locked(address(settlement), id, submitter), 0);
        vm.assertEq(vault.pot(address(settlement), id), 0);
    }

    function _expectGains(int256 toSubmitter, int256 toSolver, int256 toVerifier, int256 toChallenger) private view {
        vm.assertEq(_gain(submitter), toSubmitter);
        vm.assertEq(_gain(solver), toSolver);
        vm.assertEq(_gain(verifier), toVerifier);
        vm.assertEq(_gain(challenger), toChallenger);
    }

    function _expectShares(int256 toTreasury, int256 toFund) private view {
        vm.assertEq(int256(vault.free(treasury)), toTreasury);
        vm.assertEq(int256(vault.pot(address(jackpot), jackpot.FUND())) - 100 ether, toFund);
    }
}
