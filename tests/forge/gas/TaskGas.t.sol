// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Claim, Disclosure, ForcedErrors, LogProof, Look, PATIENCE, Placed, Terms} from "../market/MarketBase.sol";
import {MarketGasBase} from "./MarketGasBase.sol";

/// @notice Gas of the calls that take a task from its submission to a proof and a seated verifier, on record in
/// .ci/gas.json.
contract TaskGas is MarketGasBase {
    function test_task_submit() public metered {
        Terms memory s = _terms();
        _begin(submitter);
        registry.submit(s);
    }

    function test_task_cancel() public metered {
        _toBidding();
        _begin(submitter);
        registry.cancel(id);
    }

    function test_task_bid() public metered {
        _toBidding();
        (bytes32 roundId, bytes32 commitment) = _bidOf(solver);
        _begin(solver);
        auction.bid(roundId, commitment);
    }

    function test_task_reveal() public metered {
        bytes32 roundId = _toRevealing();
        _begin(solver);
        auction.reveal(roundId, solver, _price, _promise, salt);
    }

    function test_task_award() public metered {
        bytes32 roundId = _toRevealing();
        auction.reveal(roundId, solver, _price, _promise, salt);
        _begin(solver);
        registry.award(id);
    }

    function test_task_forfeit_bid() public metered {
        bytes32 roundId = _toRevealing();
        _pass(_terms().bidWindow + 1);
        _begin(challenger);
        auction.forfeit(roundId, solver);
    }

    function test_task_progress() public metered {
        _toTraining();
        (bytes32 root, bytes32[] memory path) = (_root(3), _consistency(3));
        _begin(solver);
        proofs.post(id, 3, root, path);
    }

    function test_task_commit() public metered {
        _toTraining();
        _progress(3);
        (bytes32 root, bytes32[] memory path, bytes32[] memory first) = (_root(5), _consistency(5), _inclusion(0));
        _begin(solver);
        proofs.commit(id, 5, root, path, "proof", first);
    }

    function test_task_solver_default() public metered {
        _toTraining();
        _pass(_promise + 1);
        _begin(submitter);
        settlement.claimSolverDefault(id);
    }

    function test_seat_open_claims() public metered {
        _toCommitted();
        _give(seats.seating(id).round, "seat");
        _begin(verifier);
        seats.openClaims(id);
    }

    function test_seat_replace_round() public metered {
        _submit();
        _pass(PATIENCE + 1);
        _begin(verifier);
        seats.replaceRound(id);
    }

    function test_task_replace_round_of_the_draw() public metered {
        _toCommitted();
        _pass(PATIENCE + 1);
        _begin(verifier);
        proofs.replaceRound(id);
    }

    function test_seat_claim() public metered {
        bytes32 commitment = _toClaims();
        _begin(verifier);
        seats.claim(id, 0, commitment);
    }

    function test_seat_claim_a_better_one() public metered {
        bytes32 commitment = _toClaims();
        address[2] memory who = [verifier, nextVerifier];
        uint64 at = seats.seating(id).fixedAt;
        uint256[2] memory rank;
        for (uint256 i = 0; i < 2; ++i) {
            rank[i] = sortition.seatRank(who[i], 0, id, seats.seating(id).number, at, seats.seating(id).seed);
        }
        if (rank[0] < rank[1]) (who[0], who[1]) = (who[1], who[0]);
        vm.prank(who[0]);
        seats.claim(id, 0, commitment);
        _begin(who[1]);
        seats.claim(id, 0, commitment);
    }

    function test_seat_decide() public metered {
        bytes32 commitment = _toClaims();
        vm.prank(verifier);
        seats.claim(id, 0, commitment);
        _pass(_terms().seatWindow + 1);
        _begin(verifier);
        seats.decide(id);
    }

    function test_seat_default() public metered {
        _toVerifying(false);
        _pass(_terms().verificationWindow + 1);
        _begin(submitter);
        settlement.claimSeatDefault(id);
    }

    function test_seat_unserved() public metered {
        _toVerifying(false);
        _begin(verifier);
        settlement.unserved(id);
    }

    function test_seat_unserved_twice() public metered {
        _toVerifying(false);
        vm.prank(verifier);
        settlement.unserved(id);
        _seatVerifier(nextVerifier, false);
        _begin(nextVerifier);
        settlement.unserved(id);
    }

    function _bidOf(address who) private view returns (bytes32 roundId, bytes32 commitment) {
        roundId = auction.lastRound(address(registry), id);
        commitment = keccak256(abi.encode(roundId, who, _price, _promise, salt));
    }

    function _toRevealing() private returns (bytes32 roundId) {
        bytes32 commitment;
        _toBidding();
        (roundId, commitment) = _bidOf(solver);
        vm.prank(solver);
        auction.bid(roundId, commitment);
        _pass(_terms().bidWindow + 1);
    }

    function _toClaims() private returns (bytes32 commitment) {
        _toCommitted();
        _give(proofs.proof(id).round, "draw");
        _give(seats.seating(id).round, "seat");
        seats.openClaims(id);
        return ForcedErrors.commitment(verifier, id, secret);
    }
}

/// @notice Gas of the calls about a verdict and its settlement, on record in .ci/gas.json.
contract VerdictsGas is MarketGasBase {
    function test_verdict_post() public metered {
        _toVerifying(false);
        (Claim[] memory claims, LogProof[] memory logProofs) = _claims(true);
        Look[] memory none = new Look[](0);
        _begin(verifier);
        verdicts.post(id, claims, logProofs, none, "nothing");
    }

    function test_verdict_replace_round() public metered {
        _toVerifying(false);
        _verdict(verifier, true);
        _pass(PATIENCE + 1);
        _begin(verifier);
        verdicts.replaceRound(id);
    }

    function test_verdict_open_watch() public metered {
        _toVerifying(false);
        _verdict(verifier, true);
        _give(verdicts.verdict(id).watchRound, "watch");
        _begin(verifier);
        verdicts.openWatch(id);
    }

    function test_verdict_watch() public metered {
        _toWatched(true, false);
        vm.warp(verdicts.verdict(id).watchUntil);
        _begin(watcher);
        jackpot.watch(id, 0, "commitment");
    }

    function test_verdict_disclose() public metered {
        _meterDisclosure(false);
    }

    function test_verdict_disclose_an_error() public metered {
        _meterDisclosure(true);
    }

    function test_verdict_claim_undisclosed() public metered {
        _toWatched(true, false);
        _pass(_terms().watchWindow + _terms().disclosureWindow + 1);
        _begin(submitter);
        verdicts.claimUndisclosed(id);
    }

    function test_verdict_report_leak() public metered {
        _toWatched(true, false);
        _announceLeak(challenger, secret);
        _begin(challenger);
        verdicts.reportLeak(id, secret);
    }

    function test_verdict_announce_leak() public metered {
        _begin(challenger);
        verdicts.announce("digest");
    }

    function test_settle_accepted() public metered {
        _meterSettlement(true);
    }

    function test_settle_rejected() public metered {
        _meterSettlement(false);
    }

    function test_settle_collect() public metered {
        _toWatched(true, true);
        (, uint32 index, bytes32 wrong) = _duty();
        _watch(watcher, index, true);
        _disclose(verifier, true);
        (Claim[] memory claims,) = _claims(true);
        Placed memory stands = Placed(claims[index], 0, _entries(true, false));
        (claims,) = _claims(true);
        claims[index].replay = wrong;
        bytes memory evidence = abi.encode(Placed(claims[index], 0, _entries(true, true)), stands);
        uint32 number = registry.task(id).seating;
        _settle();
        _begin(watcher);
        jackpot.claim(id, number, watcher, 0, index, salt, evidence);
    }

    function test_settle_sweep() public metered {
        _toContested(true);
        _settle();
        _pass(CATCH_WINDOW + 1);
        _begin(donor);
        jackpot.sweep(id);
    }

    function _meterDisclosure(bool forced) private {
        _toWatched(true, forced);
        vm.warp(verdicts.verdict(id).watchUntil + 1);
        Disclosure memory d = _disclosure(true);
        _begin(verifier);
        verdicts.disclose(id, d);
    }

    function _meterSettlement(bool accepts) private {
        _toContested(accepts);
        _pass(_terms().challengeWindow + 1);
        _begin(solver);
        settlement.settle(id);
    }
}
