// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Claim, Disclosure, ForcedErrors, IJackpot, IVerdicts, LogProof, Look, MarketBase} from "./MarketBase.sol";
import {Placed, Status, Verdict} from "./MarketBase.sol";

/// @notice Errors on purpose: planted, disclosed, withheld, leaked and caught.
contract DisclosureTest is MarketBase {
    function test_who_had_not_to_err_shows_it() public {
        _toWatched(true, false);
        uint256 time = verdicts.verdict(id).watchUntil + 1;
        vm.expectEmit(address(verdicts));
        emit IVerdicts.Disclosed(id, 2, secret, false, 0, 0, 0, uint64(time) + 20 minutes);
        bytes32 claims = verdicts.verdict(id).claims;
        _disclose(verifier, true);
        Verdict memory v = verdicts.verdict(id);
        vm.assertTrue(v.disclosed && !v.leaked && v.claims == claims);
        _expectStatus(Status.Contested);
        vm.assertEq(registry.task(id).deadline, time + 20 minutes);
    }

    function test_the_sealed_claim_takes_the_place_of_the_error() public {
        _toWatched(false, true);
        (, uint32 index, bytes32 wrong) = _duty();
        (Claim[] memory claims,) = _claims(false);
        vm.assertNotEq(claims[index].replay, wrong);
        vm.assertEq(verdicts.verdict(id).claims, keccak256(abi.encodePacked(_entries(false, true))));
        uint64 deadline = verdicts.verdict(id).watchUntil + 1 + 20 minutes;
        vm.expectEmit(address(verdicts));
        emit IVerdicts.ClaimPosted(id, 2, index, claims[index]);
        vm.expectEmit(address(verdicts));
        emit IVerdicts.Disclosed(id, 2, secret, true, index, 1, 1, deadline);
        _disclose(verifier, false);
        vm.assertEq(verdicts.verdict(id).claims, keccak256(abi.encodePacked(_entries(false, false))));
        vm.assertTrue(verdicts.holds(id, index, claims[index], 0, _entries(false, false)));
        vm.assertEq(verdicts.verdict(id).rejecting, 1);
    }

    /// @dev Who has to err and doesn't, to spare itself the risk or to starve the watchers, can't disclose any more.
    function test_the_truth_where_an_error_was_due_is_slashed() public {
        _toVerifying(true);
        (Claim[] memory claims, LogProof[] memory logProofs) = _claims(true);
        (, uint32 index,) = _duty();
        _post(claims, logProofs, ForcedErrors.sealedClaim(id, 2, salt, claims[index]));
        _toDisclosure();
        Disclosure memory d = Disclosure(secret, salt, claims[index], 0, _entries(true, false));
        _expectRefused(d, abi.encodeWithSelector(IVerdicts.WrongDisclosure.selector, index));
        d.claim.replay = "another";
        _expectRefused(d, abi.encodeWithSelector(IVerdicts.WrongDisclosure.selector, index));
        // As if it had not been forced.
        Disclosure memory plain;
        plain.secret = secret;
        _expectRefused(plain, abi.encodeWithSelector(IVerdicts.UnknownClaim.selector, index));
        _pass(5 minutes);
        verdicts.claimUndisclosed(id);
        vm.assertEq(_gain(verifier), -3 ether);
    }

    /// @dev Another root than the one of the draw would tell friends which errors are planted.
    function mistake(uint256 how) external {
        _toVerifying(true);
        (Claim[] memory claims, LogProof[] memory logProofs) = _claims(true);
        (, uint32 index, bytes32 wrong) = _duty();
        if (how == 4) claims[index].replay = 0;
        Claim memory truth = _copy(claims[index]);
        claims[how == 0 ? 1 - index : index].replay = how == 1 ? bytes32("chosen by the verifier") : wrong;
        if (how == 2) claims[index].distances[0] += 1;
        if (how == 3) claims[index].references[1] += 1;
        Disclosure memory d = _postSealed(claims, logProofs, truth);
        _expectRefused(d, abi.encodeWithSelector(IVerdicts.WrongDisclosure.selector, index));
    }

    function test_errors_that_are_none() public {
        string[5] memory names = ["another place", "another root", "a distance too", "a reference too", "a zero replay"];
        for (uint256 how = 0; how < names.length; ++how) {
            _row(names[how], abi.encodeCall(this.mistake, (how)));
        }
    }

    function test_what_is_shown_is_what_was_sealed_and_posted() public {
        _toWatched(true, true);
        (, uint32 index, bytes32 wrong) = _duty();
        _toDisclosure();
        bytes memory reason = abi.encodeWithSelector(IVerdicts.WrongDisclosure.selector, index);
        Disclosure memory d = _disclosure(true);
        d.salt = "another";
        _expectRefused(d, reason);
        d = _disclosure(true);
        d.look = "a look that isn't there";
        _expectRefused(d, reason);
        d = _disclosure(true);
        d.claim.distances[2] += 1;
        _expectRefused(d, reason);
        d = _disclosure(true);
        d.claim.replay = wrong;
        _expectRefused(d, reason);
        d = _disclosure(true);
        d.entries = _entries(true, false);
        _expectRefused(d, abi.encodeWithSelector(IVerdicts.UnknownClaim.selector, index));
        d.entries = new bytes32[](0);
        _expectRefused(d, abi.encodeWithSelector(IVerdicts.UnknownClaim.selector, index));
        // All of it changes nothing: the true disclosure still works.
        verdicts.disclose(id, _disclosure(true));
    }

    /// @dev In a claim that could not be disputed a catch would hang on a word that anybody may choose. Of each segment
    /// the end, the start, or both are zero.
    function replayOfNoState(uint256 every, bytes32 root) external {
        for (uint256 entry = 1; entry < log.length; entry += every) {
            log[entry] = 0;
        }
        _toVerifying(true);
        (, uint32 index, bytes32 wrong) = _duty();
        (Claim[] memory claims, LogProof[] memory logProofs) = _claims(true);
        vm.assertTrue(claims[index].start == 0 || claims[index].end == 0);
        claims[index].replay = root;
        Claim memory truth = _copy(claims[index]);
        claims[index].replay = wrong;
        Disclosure memory d = _postSealed(claims, logProofs, truth);
        if (root == verdicts.NO_REPLAY()) verdicts.disclose(id, d);
        else _expectRefused(d, abi.encodeWithSelector(IVerdicts.WrongDisclosure.selector, index));
    }

    function test_attack_a_replay_of_what_is_no_state() public {
        for (uint256 every = 1; every < 3; ++every) {
            _row("anything", abi.encodeCall(this.replayOfNoState, (every, "anything")));
            _row("none", abi.encodeCall(this.replayOfNoState, (every, verdicts.NO_REPLAY())));
        }
    }

    /// @dev Beside an infinite sum: the claim rejects before and after, but only the planted root differs. A claim that
    /// accepts has nothing to count.
    function repeated(uint256 sum) external {
        _toVerifying(true);
        (Claim[] memory claims, LogProof[] memory logProofs) = _claims(true);
        (, uint32 index, bytes32 wrong) = _duty();
        claims[index].replay = claims[index].end;
        if (sum > 0) claims[index].references[0] = sum;
        Claim memory truth = _copy(claims[index]);
        claims[index].replay = wrong;
        Disclosure memory d = _postSealed(claims, logProofs, truth);
        if (sum > 0) vm.assertEq(uint256(verdicts.verdict(id).differing), 1);
        verdicts.disclose(id, d);
        vm.assertEq(verdicts.verdict(id).rejecting, sum > 0 ? 1 : 0);
        vm.assertEq(uint256(verdicts.verdict(id).differing), 0);
        (bool accepts, bool repeats,) = verdicts.conclude(id);
        vm.assertTrue(repeats && accepts == (sum == 0));
    }

    function test_what_is_repeated_is_counted_anew() public {
        _row("infinite", abi.encodeCall(this.repeated, (type(uint256).max)));
        _row("accepted", abi.encodeCall(this.repeated, (0)));
    }

    function test_a_leak_before_the_verdict_empties_the_seat() public {
        _toVerifying(true);
        _expectRefusal(challenger, IVerdicts.WrongSecret.selector);
        verdicts.reportLeak(id, "a guess");
        _announceLeak(challenger, secret);
        vm.expectEmit(address(verdicts));
        emit IVerdicts.DutyBroken(id, 2, verifier, challenger);
        vm.prank(challenger);
        verdicts.reportLeak(id, secret);
        vm.assertEq(_gain(challenger), 2 ether);
        vm.assertEq(_gain(verifier), -3 ether);
        _expectStatus(Status.Committed);
        vm.assertEq(registry.task(id).holder, address(0));
        // The next one has a secret of its own.
        bytes32 leaked = secret;
        secret = "another secret";
        _seatVerifier(nextVerifier, false);
        vm.expectRevert(IVerdicts.WrongSecret.selector);
        verdicts.reportLeak(id, leaked);
    }

    function test_a_leak_in_the_watch_lets_the_watchers_go_on() public {
        _toWatched(true, true);
        (, uint32 index,) = _duty();
        _reportLeak(challenger);
        vm.assertEq(_gain(challenger), 2 ether);
        _expectStatus(Status.Watched);
        vm.assertTrue(verdicts.verdict(id).leaked);
        vm.expectRevert(IVerdicts.WrongSecret.selector);
        verdicts.reportLeak(id, secret);
        _watch(watcher, index, true);
        _toDisclosure();
        _expectRefused(_disclosure(true), abi.encodeWithSelector(IVerdicts.WrongSecret.selector));
        // Nobody waits for a disclosure that can't come, and the stake is lost once.
        verdicts.claimUndisclosed(id);
        _expectStatus(Status.Committed);
        vm.assertEq(_gain(verifier), -3 ether);
        vm.assertEq(seats.seating(id).number, 3);
    }

    /// @dev It has left its seat, but what it planted is still watched.
    function test_who_leaked_its_own_secret_does_not_watch_its_own_error() public {
        _toWatched(true, true);
        vm.assertTrue(verdicts.isParty(id, verifier));
        _reportLeak(address(this));
        vm.assertTrue(verdicts.isParty(id, verifier));
        vm.assertTrue(verdicts.isParty(id, submitter) && verdicts.isParty(id, solver));
        vm.assertFalse(verdicts.isParty(id, watcher));
        vm.warp(verdicts.verdict(id).watchUntil);
        _expectRefusal(verifier, abi.encodeWithSelector(IJackpot.IsParty.selector, id, verifier));
        jackpot.watch(id, 0, "commitment");
    }

    /// @dev Withheld, leaked or lost in a dispute: whoever had found the error is paid when the task is closed.
    function test_an_error_is_paid_whatever_became_of_its_seating() public {
        for (uint256 how = 0; how < 3; ++how) {
            setUp();
            _toWatched(true, true);
            (, uint32 index,) = _duty();
            (Claim[] memory claims,) = _claims(true);
            Placed memory posted = Placed(_planted(true)[index], 0, _entries(true, true));
            Placed memory stands = Placed(claims[index], 0, _entries(true, false));
            if (how == 1) _reportLeak(address(this));
            _watch(watcher, index, true);
            if (how == 2) {
                _disclose(verifier, true);
                _challenge();
                _finish(false);
            } else {
                _pass(5 minutes + 1);
                verdicts.claimUndisclosed(id);
            }
            vm.expectRevert(abi.encodeWithSelector(IJackpot.NotClosed.selector, id));
            jackpot.claim(id, 2, watcher, 0, index, salt, abi.encode(posted, stands));
            _judgeNext(true);
            _settle();
            jackpot.claim(id, 2, watcher, 0, index, salt, abi.encode(posted, stands));
            vm.assertEq(_gain(watcher), 0.5 ether);
            vm.expectRevert(abi.encodeWithSelector(IJackpot.NotCaught.selector, watcher, 0));
            jackpot.claim(id, 2, watcher, 0, index, salt, abi.encode(posted, stands));
        }
    }

    /// @dev A liar that lets a friend win the dispute doesn't take the pay of those who found the lie.
    function lie(uint256 about) external {
        _toVerifying(false);
        (Claim[] memory claims, LogProof[] memory logProofs) = _claims(true);
        if (about == 0) claims[1].replay = "a lie";
        else if (about == 1) claims[1].distances[0] += 1;
        else claims[1].references[1] += 1;
        Placed memory posted = Placed(_copy(claims[1]), 0, _hashes(claims));
        _post(claims, logProofs, "nothing");
        _openWatch();
        _watch(watcher, 1, true);
        _disclose(verifier, true);
        _challengeAs(challenger, posted, 1);
        _finish(false);
        _judgeNext(true);
        _settle();
        (Claim[] memory truth,) = _claims(true);
        jackpot.claim(id, 2, watcher, 0, 1, salt, abi.encode(posted, Placed(truth[1], 0, _entries(true, false))));
        vm.assertEq(_gain(watcher), 0.5 ether);
    }

    function test_a_lie_is_paid_like_an_error() public {
        _row("in a replay", abi.encodeCall(this.lie, (0)));
        _row("in a distance", abi.encodeCall(this.lie, (1)));
        _row("in a reference", abi.encodeCall(this.lie, (2)));
    }

    function test_evidence_that_refutes_nothing() public {
        _toWatched(true, true);
        (, uint32 index,) = _duty();
        Placed memory posted = Placed(_planted(true)[index], 0, _entries(true, true));
        (Claim[] memory claims,) = _claims(true);
        Placed memory stands = Placed(claims[index], 0, _entries(true, false));
        _disclose(verifier, true);
        _expectNotRefuted(2, index, posted, stands);
        _settle();
        vm.assertEq(verdicts.refuted(id, 2, index, abi.encode(posted, stands)), stands.entries[index]);
        // What stands, as if it had been said; what was said, as if it stood.
        _expectNotRefuted(2, index, stands, stands);
        _expectNotRefuted(2, index, posted, posted);
        _expectNotRefuted(2, index, stands, posted);
        // Another index, a seating without a verdict, one that never was.
        _expectNotRefuted(2, 1 - index, posted, stands);
        _expectNotRefuted(2, 2, posted, stands);
        _expectNotRefuted(1, index, posted, stands);
        _expectNotRefuted(3, index, posted, stands);
        // The claim that nobody planted an error in.
        Placed memory same = Placed(_planted(true)[1 - index], 0, _entries(true, true));
        Placed memory still = Placed(claims[1 - index], 0, _entries(true, false));
        _expectNotRefuted(2, 1 - index, same, still);
        // Entries of no verdict.
        posted.entries[1 - index] = 0;
        _expectNotRefuted(2, index, posted, stands);
        posted.entries = new bytes32[](0);
        _expectNotRefuted(2, index, posted, stands);
        posted.entries = _entries(true, true);
        posted.look = "look";
        _expectNotRefuted(2, index, posted, stands);
    }

    function test_a_cancelled_task_has_no_end_that_pays() public {
        _submit();
        vm.assertEq(verdicts.closedAt(id), 0);
        vm.prank(submitter);
        registry.cancel(id);
        vm.assertEq(verdicts.closedAt(id), 0);
        Placed memory nothing;
        _expectNotRefuted(0, 0, nothing, nothing);
    }

    function test_a_seating_tells_the_watchers_what_counts() public {
        _toVerifying(false);
        (uint32 number, uint64 since, bytes32 seed, uint64 until) = verdicts.seating(id);
        vm.assertTrue(number == 0 && since == 0 && seed == 0 && until == 0);
        _verdict(verifier, true);
        (number, since, seed, until) = verdicts.seating(id);
        vm.assertTrue(number == 2 && since == block.timestamp && seed == 0 && until == 0);
        _openWatch();
        (number, since, seed, until) = verdicts.seating(id);
        vm.assertTrue(seed == toyBeacon.seed(verdicts.verdict(id).watchRound) && until == block.timestamp + 15 minutes);
    }

    function _toDisclosure() private {
        if (verdicts.verdict(id).watchUntil == 0) _openWatch();
        vm.warp(verdicts.verdict(id).watchUntil + 1);
    }

    function _post(Claim[] memory claims, LogProof[] memory logProofs, bytes32 sealedClaim) private {
        vm.prank(verifier);
        verdicts.post(id, claims, logProofs, new Look[](0), sealedClaim);
    }

    function _copy(Claim memory claim) private pure returns (Claim memory) {
        return abi.decode(abi.encode(claim), (Claim));
    }

    /// @dev Until what was sealed may be shown.
    function _postSealed(Claim[] memory claims, LogProof[] memory logProofs, Claim memory truth)
        private
        returns (Disclosure memory)
    {
        _post(claims, logProofs, ForcedErrors.sealedClaim(id, 2, salt, truth));
        _toDisclosure();
        return Disclosure(secret, salt, truth, 0, _hashes(claims));
    }

    /// @dev The claims as an honest verifier posts them.
    function _planted(bool accepts) private view returns (Claim[] memory claims) {
        (claims,) = _claims(accepts);
        (, uint32 index, bytes32 wrong) = _duty();
        claims[index].replay = wrong;
    }

    function _expectRefused(Disclosure memory d, bytes memory reason) private {
        _expectRefusal(verifier, reason);
        verdicts.disclose(id, d);
    }

    function _expectNotRefuted(uint32 number, uint32 index, Placed memory said, Placed memory stands) private {
        vm.expectRevert(abi.encodeWithSelector(IVerdicts.NotRefuted.selector, id, number, index));
        verdicts.refuted(id, number, index, abi.encode(said, stands));
    }
}
