// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Acceptance} from "../../../contracts/market/Acceptance.sol";
import {SecondLook} from "../../../contracts/market/SecondLook.sol";
import {Base, Charge, Claim, ClaimCharge, Disclosure, ForcedErrors, IChallenges} from "./MarketBase.sol";
import {ITaskRegistry, IVerdicts, LogProof, Look, MarketBase, NaiveLog, Placed, Reordered} from "./MarketBase.sol";
import {Rerun, StartParams, Terms, Witness} from "./MarketBase.sol";

/// @notice A task whose rejecting claims are looked at again: two reruns, margin 2. A distance of 3 is excused by
/// reruns that part by 1.
contract SecondLookTest is MarketBase {
    uint32 private constant LOOKS = 2;

    function test_reruns_that_part_as_far_excuse() public {
        _toVerifying(false);
        (Claim[] memory claims, LogProof[] memory logProofs) = _claims(false);
        Look[] memory looks = _looks(claims, 1);
        vm.expectEmit(address(verdicts));
        emit IVerdicts.LookPosted(id, 2, 1, looks[0].reruns);
        _post(claims, logProofs, looks);
        vm.assertEq(verdicts.verdict(id).rejecting, 0);
        bytes32[] memory entries = _seen(claims, looks[0].reruns);
        vm.assertTrue(verdicts.holds(id, 1, claims[1], keccak256(abi.encode(looks[0].reruns)), entries));
        vm.assertTrue(verdicts.holds(id, 0, claims[0], 0, entries));
        vm.assertFalse(verdicts.holds(id, 1, claims[1], 0, entries));
    }

    function test_reruns_that_part_less_do_not_excuse() public {
        _toVerifying(false);
        (Claim[] memory claims, LogProof[] memory logProofs) = _claims(false);
        _post(claims, logProofs, _looks(claims, 0));
        vm.assertEq(verdicts.verdict(id).rejecting, 1);
    }

    function test_a_look_that_is_due_is_there_and_complete() public {
        _toVerifying(false);
        (Claim[] memory claims, LogProof[] memory logProofs) = _claims(false);
        _expectWrongLook(claims, logProofs, new Look[](0), 1);
        Look[] memory looks = _looks(claims, 1);
        looks[0].segment = claims[0].segment;
        _expectWrongLook(claims, logProofs, looks, 1);
        for (uint256 count = 0; count <= 3; ++count) {
            if (count == LOOKS) continue;
            looks = _looks(claims, 1);
            looks[0].reruns = new Rerun[](count);
            _expectWrongLook(claims, logProofs, looks, 1);
        }
        for (uint256 j = 0; j < LOOKS; ++j) {
            looks = _looks(claims, 1);
            looks[0].reruns[j].end = 0;
            _expectRefusal(verifier, ITaskRegistry.ZeroHash.selector);
            verdicts.post(id, claims, logProofs, looks, "nothing");
        }
    }

    function test_no_look_where_none_is_due() public {
        _toVerifying(false);
        (Claim[] memory claims, LogProof[] memory logProofs) = _claims(true);
        Look[] memory looks = new Look[](1);
        looks[0] = _look(claims[0], 1);
        _expectWrongLook(claims, logProofs, looks, 1);
        (claims,) = _claims(false);
        looks = new Look[](2);
        (looks[0], looks[1]) = (_look(claims[1], 1), _look(claims[1], 1));
        _expectWrongLook(claims, logProofs, looks, 2);
        // Beyond what any look excuses, without a distance, without a way.
        claims[1].distances[1] = (1 << 12) + 1;
        _expectWrongLook(claims, logProofs, _looks(claims, 1), 1);
        _post(claims, logProofs, new Look[](0));
        vm.assertEq(verdicts.verdict(id).rejecting, 1);
    }

    function test_what_no_look_excuses_is_rejected_without_one() public {
        for (uint256 i = 0; i < 3; ++i) {
            setUp();
            _toVerifying(false);
            (Claim[] memory claims, LogProof[] memory logProofs) = _claims(false);
            if (i == 0) claims[1].distances[2] = 1 << 160;
            else if (i == 1) claims[1].references[0] = 1 << 191;
            else claims[1].distances[2] = 1;
            _post(claims, logProofs, new Look[](0));
            vm.assertEq(verdicts.verdict(id).rejecting, 1);
        }
    }

    function test_looks_come_in_the_order_of_their_claims() public {
        _toVerifying(false);
        (Claim[] memory claims, LogProof[] memory logProofs) = _claims(false);
        claims[0].distances[0] = 2;
        Look[] memory looks = new Look[](2);
        (looks[0], looks[1]) = (_look(claims[1], 1), _look(claims[0], 1));
        _expectWrongLook(claims, logProofs, looks, 0);
        (looks[0], looks[1]) = (looks[1], looks[0]);
        _post(claims, logProofs, looks);
        vm.assertEq(verdicts.verdict(id).rejecting, 0);
    }

    /// @dev The planted error is in the root: sums and look stay as they are, and so does what they say.
    function test_an_error_is_planted_beside_a_look() public {
        // The claim with the look is the one with the error.
        for (uint256 i = 0;; ++i) {
            setUp();
            secret = keccak256(abi.encode("secret", i));
            _toVerifying(true);
            (, uint32 drawn,) = _duty();
            if (drawn == 1) break;
        }
        (Claim[] memory claims, Rerun[] memory reruns) = _postPlanted();
        Disclosure memory d;
        (d.secret, d.salt) = (secret, salt);
        (,, claims[1].replay) = _duty();
        d.entries = _seen(claims, reruns);
        (claims,) = _claims(false);
        d.claim = claims[1];
        _openWatch();
        vm.warp(verdicts.verdict(id).watchUntil + 1);
        vm.expectRevert(abi.encodeWithSelector(IVerdicts.WrongDisclosure.selector, uint32(1)));
        verdicts.disclose(id, d);
        d.look = keccak256(abi.encode(reruns));
        verdicts.disclose(id, d);
        vm.assertEq(verdicts.verdict(id).rejecting, 0);
        vm.assertTrue(verdicts.holds(id, 1, claims[1], d.look, _seen(claims, reruns)));
    }

    /// @dev What is true, and the second look at the claim with the error.
    function _postPlanted() private returns (Claim[] memory claims, Rerun[] memory reruns) {
        LogProof[] memory logProofs;
        (claims, logProofs) = _claims(false);
        Look[] memory looks = _looks(claims, 1);
        reruns = looks[0].reruns;
        bytes32 sealedClaim = ForcedErrors.sealedClaim(id, 2, salt, claims[1]);
        (,, claims[1].replay) = _duty();
        vm.prank(verifier);
        verdicts.post(id, claims, logProofs, looks, sealedClaim);
        (claims,) = _claims(false);
    }

    function test_a_rerun_goes_to_court_with_the_program_of_the_terms() public {
        ClaimCharge memory charge = _contest();
        Rerun[] memory reruns = _look(charge.claim, 1).reruns;
        for (uint32 j = 0; j < LOOKS; ++j) {
            (charge.kind, charge.component, charge.rerun) = (5, 0, j);
            Reordered memory reordered = _reordered(RERUNS + j);
            _announceCharge(challenger, charge);
            vm.prank(challenger);
            challenges.challengeLook(id, charge, reruns, reordered, _opening());
            StartParams memory p = game.started();
            vm.assertTrue(p.asserter == verifier && p.challenger == challenger && p.kind == 1 && p.component == 0);
            vm.assertTrue(
                p.program == reordered.program && p.constants == "constants" && p.clock == (j + 1) * 10 minutes
            );
            vm.assertTrue(p.firstStep == uint256(charge.claim.segment) * 10 && p.steps == 10);
            vm.assertTrue(p.start == charge.claim.start && p.end == reruns[j].end);
            vm.assertTrue(p.x == 0 && p.y == 0 && p.sum == 0);
        }
    }

    function test_a_distance_of_a_rerun_goes_to_court() public {
        ClaimCharge memory charge = _contest();
        Rerun[] memory reruns = _look(charge.claim, 1).reruns;
        Reordered memory none;
        for (uint8 c = 1; c <= 3; ++c) {
            (charge.kind, charge.component, charge.rerun) = (6, c, 1);
            _announceCharge(challenger, charge);
            vm.prank(challenger);
            challenges.challengeLook(id, charge, reruns, none, _opening());
            StartParams memory p = game.started();
            vm.assertTrue(
                p.kind == 2 && p.component == c && p.program == "program" && p.clock == uint256(c) * 10 minutes
            );
            vm.assertTrue(p.x == charge.claim.replay && p.y == reruns[1].end && p.sum == reruns[1].distances[c - 1]);
            vm.assertTrue(p.start == 0 && p.end == 0 && p.steps == 0);
        }
    }

    function test_only_the_program_of_the_rerun_is_its_program() public {
        ClaimCharge memory charge = _contest();
        Rerun[] memory reruns = _look(charge.claim, 1).reruns;
        (charge.kind, charge.rerun) = (5, 0);
        bytes memory reason = abi.encodeWithSelector(IChallenges.NotInPrograms.selector, uint32(0));
        // Those of the profile, the other one of the look, an invented one.
        for (uint256 i = 0; i < RERUNS + LOOKS; ++i) {
            if (i == RERUNS) continue;
            _expectLookRefused(charge, reruns, _reordered(i), reason);
        }
        Reordered memory invented = _reordered(RERUNS);
        invented.program = "program";
        _expectLookRefused(charge, reruns, invented, reason);
    }

    function test_charges_that_do_not_exist() public {
        ClaimCharge memory charge = _contest();
        Rerun[] memory reruns = _look(charge.claim, 1).reruns;
        uint8[2][10] memory wrong = [[0, 0], [1, 0], [2, 1], [3, 1], [4, 0], [5, 1], [6, 0], [6, 4], [7, 0], [7, 1]];
        for (uint256 i = 0; i < wrong.length; ++i) {
            (charge.kind, charge.component) = (wrong[i][0], wrong[i][1]);
            bytes memory reason =
                abi.encodeWithSelector(IChallenges.InvalidChallenge.selector, wrong[i][0], wrong[i][1]);
            _expectLookRefused(charge, reruns, _reordered(RERUNS), reason);
        }
        (charge.kind, charge.component) = (5, 0);
        bytes memory unknown = abi.encodeWithSelector(IChallenges.UnknownClaim.selector, uint32(1));
        charge.rerun = LOOKS;
        _expectLookRefused(charge, reruns, _reordered(RERUNS), unknown);
        charge.rerun = 0;
        _expectLookRefused(charge, new Rerun[](0), _reordered(RERUNS), unknown);
        reruns[0].distances[0] += 1;
        _expectLookRefused(charge, reruns, _reordered(RERUNS), unknown);
    }

    /// @dev A claim without a look has none that could be wrong.
    function test_a_claim_without_a_look_has_no_reruns_to_charge() public {
        ClaimCharge memory charge = _contest();
        Rerun[] memory reruns = _look(charge.claim, 1).reruns;
        (Claim[] memory claims,) = _claims(false);
        (charge.index, charge.claim, charge.look, charge.kind) = (0, claims[0], 0, 5);
        bytes memory unknown = abi.encodeWithSelector(IChallenges.UnknownClaim.selector, uint32(0));
        _expectLookRefused(charge, reruns, _reordered(RERUNS), unknown);
        _expectLookRefused(charge, new Rerun[](0), _reordered(RERUNS), unknown);
    }

    /// @dev A watcher that has made the reruns itself commits to the entry with the true look.
    function test_a_lie_in_a_look_is_paid_like_an_error() public {
        ClaimCharge memory charge = _contestAfter(true);
        Placed memory posted = Placed(charge.claim, charge.look, charge.entries);
        _challengeAs(challenger, posted, 1);
        _finish(false);
        _seatVerifier(nextVerifier, false);
        (Claim[] memory claims, LogProof[] memory logProofs) = _claims(false);
        Look[] memory looks = _looks(claims, 0);
        vm.prank(nextVerifier);
        verdicts.post(id, claims, logProofs, looks, "nothing");
        _openWatch();
        _disclose(nextVerifier, false);
        _settle();
        bytes32 look = keccak256(abi.encode(looks[0].reruns));
        Placed memory stands = Placed(claims[1], look, _seen(claims, looks[0].reruns));
        jackpot.claim(id, 2, watcher, 0, 1, salt, abi.encode(posted, stands));
        vm.assertEq(_gain(watcher), 0.5 ether);
    }

    /// @dev The claim itself is charged like any other, with its look.
    function test_a_claim_with_a_look_goes_to_court() public {
        ClaimCharge memory charge = _contest();
        _challengeAs(challenger, Placed(charge.claim, charge.look, charge.entries), 1);
        vm.assertEq(game.started().end, charge.claim.replay);
        vm.expectRevert(abi.encodeWithSelector(IChallenges.UnknownClaim.selector, uint32(1)));
        this.challengeAs(Placed(charge.claim, 0, charge.entries));
    }

    function challengeAs(Placed calldata placed) external {
        _challengeAs(challenger, placed, 1);
    }

    /// @dev Programs of the profile stand in a tree with those of the look.
    function test_a_rerun_of_the_profile_is_charged_in_the_same_tree() public {
        _toProfiled();
        (Witness memory rerun, Reordered memory reordered) = (_witness(4), _reordered(1));
        _announceProfileCharge(challenger, Charge.Rerun, rerun.index, 0);
        vm.prank(challenger);
        profiles.challengeRerun(id, _portions(), rerun, reordered, _opening());
        vm.assertEq(profileGame.started().program, _all()[1]);
    }

    function _terms() internal view override returns (Terms memory s) {
        s = super._terms();
        (s.looks, s.lookMargin, s.reruns) = (LOOKS, 2, _tree);
    }

    // Kept for the same reason as that of the base.
    bytes32 private _tree = NaiveLog.root(_all(), 0, RERUNS + LOOKS);

    function _all() private pure returns (bytes32[] memory programs) {
        programs = new bytes32[](RERUNS + LOOKS);
        for (uint256 j = 0; j < programs.length; ++j) {
            programs[j] = keccak256(abi.encode("program", j));
        }
    }

    function _reordered(uint256 rerun) private pure returns (Reordered memory) {
        return Reordered(_all()[rerun], NaiveLog.inclusionPath(_all(), rerun, 0, RERUNS + LOOKS));
    }

    function _look(Claim memory claim, uint256 distance) private pure returns (Look memory look) {
        look.segment = claim.segment;
        look.reruns = new Rerun[](LOOKS);
        for (uint256 j = 0; j < LOOKS; ++j) {
            look.reruns[j] = Rerun(keccak256(abi.encode("look", j)), [distance, j == 0 ? 0 : distance, 0]);
        }
    }

    function _looks(Claim[] memory claims, uint256 distance) private pure returns (Look[] memory looks) {
        looks = new Look[](1);
        looks[0] = _look(claims[1], distance);
    }

    /// @dev Entries of claims of which the second has a look.
    function _seen(Claim[] memory claims, Rerun[] memory reruns) private pure returns (bytes32[] memory entries) {
        entries = _hashes(claims);
        entries[1] = keccak256(abi.encode(keccak256(abi.encode(claims[1])), keccak256(abi.encode(reruns))));
    }

    /// @dev A verdict that accepts by its look, and the charge of the claim.
    function _contest() private returns (ClaimCharge memory charge) {
        return _contestAfter(false);
    }

    /// @dev With a watcher that says that the look is another.
    function _contestAfter(bool watched) private returns (ClaimCharge memory charge) {
        _toVerifying(false);
        (Claim[] memory claims, LogProof[] memory logProofs) = _claims(false);
        Look[] memory looks = _looks(claims, 1);
        _post(claims, logProofs, looks);
        _openWatch();
        if (watched) _commitToLook(claims);
        _disclose(verifier, false);
        (charge.index, charge.claim) = (1, claims[1]);
        charge.look = keccak256(abi.encode(looks[0].reruns));
        charge.entries = _seen(claims, looks[0].reruns);
    }

    function _commitToLook(Claim[] memory claims) private {
        bytes32 entry = _seen(claims, _looks(claims, 0)[0].reruns)[1];
        uint32 number = registry.task(id).seating;
        vm.warp(verdicts.verdict(id).watchUntil);
        vm.prank(watcher);
        jackpot.watch(id, 0, keccak256(abi.encode(watcher, id, number, uint32(1), entry, salt)));
    }

    function _post(Claim[] memory claims, LogProof[] memory logProofs, Look[] memory looks) private {
        vm.prank(verifier);
        verdicts.post(id, claims, logProofs, looks, "nothing");
    }

    function _expectWrongLook(Claim[] memory claims, LogProof[] memory logProofs, Look[] memory looks, uint256 index)
        private
    {
        _expectRefusal(verifier, abi.encodeWithSelector(IVerdicts.WrongLook.selector, index));
        verdicts.post(id, claims, logProofs, looks, "nothing");
    }

    function _expectLookRefused(
        ClaimCharge memory charge,
        Rerun[] memory reruns,
        Reordered memory reordered,
        bytes memory reason
    ) private {
        _expectRefusal(challenger, reason);
        challenges.challengeLook(id, charge, reruns, reordered, _opening());
    }
}

/// @notice What `pol.verification.verdict.second_look` decides is what the contract decides, for the vectors of the
/// specification.
contract SecondLookVectorsTest is Base {
    string private constant FORM = "LookRow(bytes32 start,bytes32 end,uint256[3] distances,uint256[3] references,uint256[3] thresholds,"
        "uint256 margin,uint256[3][] reruns,bool due,bool excused)";

    struct LookRow {
        bytes32 start;
        bytes32 end;
        uint256[3] distances;
        uint256[3] references;
        uint256[3] thresholds;
        uint256 margin;
        uint256[3][] reruns;
        bool due;
        bool excused;
    }

    function test_vectors() public view {
        string memory json = vm.readFile("fixtures/vectors/second_look.json");
        LookRow[] memory rows = abi.decode(vm.parseJsonTypeArray(json, ".rows", FORM), (LookRow[]));
        uint256 due = 0;
        uint256 excused = 0;
        for (uint256 i = 0; i < rows.length; ++i) {
            vm.assertTrue(this.isDue(_thresholdsOf(rows[i]), _claimOf(rows[i])) == rows[i].due, vm.toString(i));
            if (rows[i].due) ++due;
            if (rows[i].due) vm.assertTrue(_isExcused(rows[i]) == rows[i].excused, vm.toString(i));
            if (rows[i].excused) ++excused;
        }
        vm.assertGt(excused, 3);
        vm.assertGt(due, excused + 3);
        vm.assertGt(rows.length, due + 3);
    }

    function isDue(uint64[3] memory thresholds, Claim calldata claim) external pure returns (bool) {
        return !Acceptance.accepts(false, thresholds, claim) && SecondLook.isDue(thresholds, claim);
    }

    function accepts(uint64[3] memory thresholds, Claim calldata claim, Rerun[] calldata reruns, uint256 margin)
        external
        pure
        returns (bool)
    {
        return SecondLook.accepts(thresholds, claim, reruns, margin);
    }

    function _isExcused(LookRow memory row) private view returns (bool) {
        Rerun[] memory reruns = new Rerun[](row.reruns.length);
        for (uint256 j = 0; j < reruns.length; ++j) {
            reruns[j] = Rerun("rerun", row.reruns[j]);
        }
        return this.accepts(_thresholdsOf(row), _claimOf(row), reruns, row.margin);
    }

    function _claimOf(LookRow memory row) private pure returns (Claim memory claim) {
        (claim.start, claim.end, claim.replay) = (row.start, row.end, "replay");
        (claim.distances, claim.references) = (row.distances, row.references);
    }

    function _thresholdsOf(LookRow memory row) private pure returns (uint64[3] memory) {
        return [uint64(row.thresholds[0]), uint64(row.thresholds[1]), uint64(row.thresholds[2])];
    }
}
