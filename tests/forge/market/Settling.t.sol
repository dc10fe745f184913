// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Forwarder} from "../../../contracts/incentives/Forwarder.sol";
import {ERC2771Forwarder, Relaying} from "../incentives/Tokens.sol";
import {DataDemandsBase} from "./DataDemandsBase.sol";
import {Claim, Ending, IJackpot, IProfiles, ISettlement, IVerdicts, LogProof, Look} from "./MarketBase.sol";
import {MarketBase, Status, Terms} from "./MarketBase.sol";
import {ProfileBase} from "./ProfileBase.sol";

/// @notice Between the end of a dispute in the game and `settleDispute`, which anybody may call at any later time:
/// nobody loses by it.
contract SettlingTest is MarketBase {
    function test_the_game_only_has_its_result_noted() public {
        _toContested(true);
        uint256 number = _challenge();
        bytes memory before = _balances();
        game.report(number, false);
        _expectStatus(Status.Contested);
        vm.assertTrue(challenges.dispute(number).ending == Ending.Fell);
        vm.assertTrue(challenges.contested(id).fell && challenges.contested(id).open == 1);
        vm.assertEq(registry.task(id).holder, verifier);
        vm.assertEq(_balances(), before);
        // Whoever is here, and whenever.
        _pass(1_000 days);
        vm.prank(account("stranger"));
        challenges.settleDispute(number);
        _expectStatus(Status.Committed);
        vm.assertEq(_gain(challenger), 2 ether);
        vm.assertEq(_gain(verifier), -3 ether);
        vm.assertEq(_rest(), 2 ether);
    }

    function test_a_task_waits_for_a_loss_that_nobody_has_settled() public {
        _toContested(true);
        uint256 lost = _challenge();
        uint256 stood = _challenge();
        game.report(stood, true);
        game.report(lost, false);
        _pass(_terms().challengeWindow + 1);
        vm.expectRevert(abi.encodeWithSelector(ISettlement.DisputesOpen.selector, uint32(2)));
        settlement.settle(id);
        // Moot: the other one has decided.
        challenges.settleDispute(stood);
        vm.expectRevert(abi.encodeWithSelector(ISettlement.DisputesOpen.selector, uint32(1)));
        settlement.settle(id);
        vm.expectRevert();
        settlement.claimSeatDefault(id);
        vm.assertEq(_gain(challenger), -1 ether);
        challenges.settleDispute(lost);
        vm.assertEq(_gain(challenger), 2 ether);
        vm.assertEq(_gain(verifier), -3 ether);
    }

    /// @dev Who wins first is paid, though others win later and settle earlier.
    function test_the_first_to_win_is_paid_whoever_settles_first() public {
        _toContested(true);
        uint256 first = _challenge(challenger);
        uint256 second = _challenge(solver);
        uint256 third = _challenge(nextVerifier);
        game.report(second, false);
        game.report(first, false);
        challenges.settleDispute(first);
        challenges.settleDispute(third);
        vm.assertEq(_gain(challenger), 0);
        vm.assertEq(_gain(nextVerifier), 0);
        _expectStatus(Status.Contested);
        challenges.settleDispute(second);
        vm.assertEq(_gain(solver), -5 ether + 2 ether);
        vm.assertEq(_gain(verifier), -3 ether);
    }

    /// @dev Who stops playing because the verdict has fallen elsewhere keeps its bond, though the verifier settles
    /// first.
    function test_a_verifier_that_has_lost_earns_nothing_from_the_others() public {
        _toContested(true);
        uint256 first = _challenge(challenger);
        uint256 second = _challenge(solver);
        game.report(second, false);
        game.report(first, true);
        vm.prank(verifier);
        challenges.settleDispute(first);
        vm.assertEq(_gain(challenger), 0);
        vm.assertEq(_gain(verifier), -3 ether);
        challenges.settleDispute(second);
        vm.assertEq(_gain(solver), -5 ether + 2 ether);
    }

    function test_what_the_game_costs_to_end_is_little() public {
        _toContested(true);
        uint256 number = _challenge();
        vm.cool(address(challenges));
        vm.startPrank(address(game));
        challenges.onResolved(number, false);
        vm.assertLt(vm.lastCallGas().gasTotalUsed, 20_000);
    }

    function _balances() private view returns (bytes memory) {
        return abi.encode(vault.free(challenger), vault.free(verifier), vault.free(treasury), _rest());
    }
}

/// @notice The same for profiles.
contract SettlingProfilesTest is ProfileBase {
    function test_the_game_only_has_its_result_noted() public {
        _chargePortion(challenger);
        profileGame.report(1, false);
        vm.assertTrue(profiles.dispute(1).ending == Ending.Fell);
        vm.assertTrue(profiles.profile(id).fell && profiles.profile(id).open == 1);
        vm.assertEq(_gain(challenger), -1 ether);
        _pass(1_000 days);
        vm.expectRevert(abi.encodeWithSelector(IProfiles.DisputesOpen.selector, uint32(1)));
        profiles.conclude(id);
        vm.prank(account("stranger"));
        profiles.settleDispute(1);
        _expectVoid(challenger);
    }

    function test_the_first_to_win_is_paid_whoever_settles_first() public {
        _chargePortion(challenger);
        _chargePortion(solver);
        _chargePortion(nextVerifier);
        profileGame.report(2, false);
        profileGame.report(1, false);
        profileGame.report(3, true);
        profiles.settleDispute(1);
        profiles.settleDispute(3);
        vm.assertEq(_gain(challenger), 0);
        vm.assertEq(_gain(nextVerifier), 0);
        vm.assertEq(profiles.profile(id).open, 1);
        profiles.settleDispute(2);
        _expectVoid(solver);
        _seat(nextVerifier);
        _profile(nextVerifier);
        vm.assertFalse(profiles.profile(id).fell);
    }

    /// @dev It ends when the profile is gone and no other one there.
    function test_a_late_result_does_not_touch_the_next_profile() public {
        _chargePortion(challenger);
        _chargePortion(solver);
        _endProfile(1, false);
        profileGame.report(2, false);
        vm.assertFalse(profiles.profile(id).fell);
        _seat(nextVerifier);
        _profile(nextVerifier);
        profiles.settleDispute(2);
        vm.assertEq(profiles.profile(id).verifier, nextVerifier);
        vm.assertEq(_gain(solver), 0);
        _conclude();
    }
}

/// @notice What a watcher signs and a party of the task relays. Verbs about the life of a task: Transitions.t.sol.
contract RelayedTest is DataDemandsBase, Relaying {
    uint256 private constant SOLVER = 0x501;
    uint256 private constant WATCHER = 0x3a7;

    Forwarder private forwarder;

    function setUp() public override {
        (solver, watcher) = (vm.addr(SOLVER), vm.addr(WATCHER));
        super.setUp();
        // All desks trust the vault's forwarder. In this market it is the address zero, from which nobody but a test
        // can call.
        forwarder = Forwarder(vault.trustedForwarder());
        vm.etch(address(forwarder), address(new Forwarder()).code);
    }

    /// @dev A party may relay what it may not sign. Mallory names the watcher, and the desk sees Mallory.
    function test_a_watcher_commits() public {
        _toWatched(true, true);
        uint32 seating = registry.task(id).seating;
        vm.warp(verdicts.verdict(id).watchUntil);
        bytes memory data = abi.encodeCall(IJackpot.watch, (id, 0, "found"));
        address mallory = account("mallory");
        vm.prank(mallory);
        (bool done, bytes memory answer) = address(jackpot).call(abi.encodePacked(data, watcher));
        vm.assertFalse(done);
        vm.assertEq(answer, abi.encodeWithSelector(IJackpot.NotDrawn.selector, mallory, 0));
        vm.prank(address(forwarder));
        (done, answer) = address(jackpot).call(abi.encodePacked(data, solver));
        vm.assertEq(answer, abi.encodeWithSelector(IJackpot.IsParty.selector, id, solver));
        ERC2771Forwarder.ForwardRequestData memory request = _request(forwarder, WATCHER, address(jackpot), 0, data);
        vm.prank(solver);
        forwarder.execute(request);
        vm.assertEq(jackpot.commitments(id, seating, watcher, 0), "found");
        vm.assertEq(jackpot.commitments(id, seating, solver, 0), bytes32(0));
        vm.assertEq(sortition.trustedForwarder(), address(forwarder));
    }
}

/// @notice Segments of one step, all of which are drawn: one entry of the log is no state, and the verdict can say so.
contract ShortestSegmentsTest is MarketBase {
    function test_a_zero_entry_is_said_to_be_none() public {
        log[2] = 0;
        _toExactlyVerifying(false);
        (Claim[] memory claims, LogProof[] memory logProofs) = _claims(true);
        bytes32 no = bytes32(type(uint256).max);
        for (uint256 i = 0; i < 4; ++i) {
            claims[i].replay = claims[i].end;
            claims[i].distances = [uint256(0), 0, 0];
            claims[i].before = claims[i].start;
            if (claims[i].start == 0 || claims[i].end == 0) {
                (claims[i].replay, claims[i].before, claims[i].receipt) = (no, no, no);
            }
        }
        vm.prank(verifier);
        verdicts.post(id, claims, logProofs, new Look[](0), "nothing");
        vm.assertEq(uint256(verdicts.verdict(id).rejecting), 2);
    }

    function test_before_the_only_step_is_the_start() public {
        _toExactlyVerifying(false);
        (Claim[] memory claims, LogProof[] memory logProofs) = _claims(true);
        for (uint256 i = 0; i < 4; ++i) {
            (claims[i].replay, claims[i].before) = (claims[i].end, claims[i].start);
        }
        claims[3].before = "another";
        _expectRefusal(verifier, abi.encodeWithSelector(IVerdicts.WrongReceipt.selector, uint256(3)));
        verdicts.post(id, claims, logProofs, new Look[](0), "nothing");
    }

    function _terms() internal view override returns (Terms memory s) {
        s = _exact(super._terms());
        s.draws = 4;
        s.interval = 1;
        s.steps = 4;
    }
}
