// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {BlockBeacon} from "../../../contracts/market/BlockBeacon.sol";
import {ITaskMarket} from "../../../contracts/market/ITaskMarket.sol";
import {TaskMarket} from "../../../contracts/market/TaskMarket.sol";
import {Status, Terms} from "../../../contracts/market/TaskTypes.sol";
import {MarketBase} from "./MarketBase.sol";

contract SubmissionTest is MarketBase {
    function test_the_id_is_derived_and_never_repeats() public {
        _submit();
        vm.prank(submitter);
        bytes32 second = market.submitTask{value: _fee}(_terms());
        vm.assertNotEq(id, second);
        vm.assertEq(second, market.computeTaskId(submitter, 1, _terms()));
        vm.assertEq(id, keccak256(abi.encode(block.chainid, address(market), submitter, uint256(0), _terms())));
        vm.assertEq(market.nonces(submitter), 2);
        vm.assertEq(market.terms(second).program, bytes32("program"));
        vm.assertEq(uint256(market.task(second).status), uint256(Status.Open));
    }

    function test_emits_everything() public {
        vm.expectEmit(address(market));
        emit ITaskMarket.TaskSubmitted(id, submitter, 0, _terms(), _fee);
        _submit();
    }

    function test_zero_hashes_mean_nothing() public {
        Terms memory s = _terms();
        s.program = 0;
        _expectInvalid(s, "program");
        s = _terms();
        s.constants = 0;
        _expectInvalid(s, "constants");
        s = _terms();
        s.initialState = 0;
        _expectInvalid(s, "initialState");
        s = _terms();
        s.document = 0;
        _expectInvalid(s, "document");
    }

    function test_steps_are_whole_segments() public {
        Terms memory s = _terms();
        s.interval = 0;
        _expectInvalid(s, "interval");
        s = _terms();
        s.steps = 0;
        _expectInvalid(s, "steps");
        s = _terms();
        s.steps = 41;
        _expectInvalid(s, "steps");
        s = _terms();
        s.interval = 1;
        s.steps = type(uint32).max;
        _expectInvalid(s, "steps");
        s.steps = type(uint32).max - 1;
        _expectValid(s);
    }

    function test_draws_fit_the_segments_and_the_gas() public {
        Terms memory s = _terms();
        s.draws = 0;
        _expectInvalid(s, "draws");
        s.draws = 5;
        _expectInvalid(s, "draws");
        s.draws = 4;
        _expectValid(s);
        s.steps = 400;
        s.draws = 33;
        _expectInvalid(s, "draws");
        s.draws = 32;
        _expectValid(s);
    }

    function test_a_profile_has_bounds_and_exact_mode_has_none() public {
        Terms memory s = _terms();
        s.margin = 1 << 16;
        _expectInvalid(s, "margin");
        s.margin = (1 << 16) - 1;
        _expectValid(s);
        s.reruns = 0;
        _expectInvalid(s, "reruns");
        s = _terms();
        uint32[3] memory wrong = [uint32(0), (1 << 16) + 1, type(uint32).max];
        for (uint256 i = 0; i < wrong.length; ++i) {
            s.rerunCount = wrong[i];
            _expectInvalid(s, "rerunCount");
        }
        s.rerunCount = 1 << 16;
        _expectValid(s);
        wrong = [uint32(0), _segments() + 1, type(uint32).max];
        for (uint256 i = 0; i < wrong.length; ++i) {
            s.profiled = wrong[i];
            _expectInvalid(s, "profiled");
        }
        s.profiled = _segments();
        _expectValid(s);
        (s.steps, s.profiled) = (400, 17);
        _expectInvalid(s, "profiled");
        s.profiled = 16;
        _expectValid(s);
        wrong = [uint32(0), 59, 90 days + 1];
        for (uint256 i = 0; i < wrong.length; ++i) {
            s.profileWindow = wrong[i];
            _expectInvalid(s, "profileWindow");
        }
        s.profileWindow = 60;
        _expectValid(s);
        s.profileWindow = 90 days;
        _expectValid(s);
    }

    function test_exact_mode_has_no_profile() public {
        Terms memory s = _exact(_terms());
        _expectValid(s);
        s.reruns = "reruns";
        _expectInvalid(s, "reruns");
        s = _exact(s);
        s.rerunCount = 1;
        _expectInvalid(s, "rerunCount");
        s = _exact(s);
        s.profiled = 1;
        _expectInvalid(s, "profiled");
        s = _exact(s);
        s.profileWindow = 60;
        _expectInvalid(s, "profileWindow");
    }

    function test_work_and_stakes_are_there() public {
        Terms memory s = _terms();
        s.workUnits = 0;
        _expectInvalid(s, "workUnits");
        s = _terms();
        s.verifierStake = 0;
        _expectInvalid(s, "verifierStake");
    }

    function test_a_window_gives_time_to_be_heard_and_ends() public {
        Terms memory s = _terms();
        (s.trainingWindow, s.verificationWindow, s.challengeWindow) = (60, 60, 60);
        _expectValid(s);
        (s.trainingWindow, s.verificationWindow, s.challengeWindow) = (365 days, 90 days, 90 days);
        _expectValid(s);
        uint32[4] memory wrong = [uint32(0), 1, 59, type(uint32).max];
        for (uint256 i = 0; i < wrong.length; ++i) {
            s = _terms();
            s.trainingWindow = wrong[i];
            _expectInvalid(s, "trainingWindow");
            s = _terms();
            s.verificationWindow = wrong[i];
            _expectInvalid(s, "verificationWindow");
            s = _terms();
            s.challengeWindow = wrong[i];
            _expectInvalid(s, "challengeWindow");
        }
        s = _terms();
        s.trainingWindow = 365 days + 1;
        _expectInvalid(s, "trainingWindow");
        s = _terms();
        s.verificationWindow = 90 days + 1;
        _expectInvalid(s, "verificationWindow");
        s = _terms();
        s.challengeWindow = 90 days + 1;
        _expectInvalid(s, "challengeWindow");
    }

    /// @dev A second is lost by the honest side, 2^32 seconds hold every stake to ransom.
    function test_a_clock_is_long_enough_to_move_and_short_enough_to_end() public {
        Terms memory s = _terms();
        uint32[5] memory wrong = [uint32(0), 1, 10 minutes - 1, 14 days + 1, type(uint32).max];
        for (uint256 i = 0; i < wrong.length; ++i) {
            s.clock = wrong[i];
            _expectInvalid(s, "clock");
        }
        s.clock = 10 minutes;
        _expectValid(s);
        s.clock = 14 days;
        _expectValid(s);
    }

    /// @dev A wei makes delays free, a fortune makes challenges impossible.
    function test_the_bond_is_in_proportion_to_what_a_challenge_can_win() public {
        Terms memory s = _terms();
        s.verifierStake = 3200;
        uint128[5] memory wrong = [uint128(0), 1, 199, 1601, type(uint128).max];
        for (uint256 i = 0; i < wrong.length; ++i) {
            s.bond = wrong[i];
            _expectInvalid(s, "bond");
        }
        s.bond = 200;
        _expectValid(s);
        s.bond = 1600;
        _expectValid(s);
        (s.verifierStake, s.bond) = (type(uint128).max, type(uint128).max / 2);
        _expectValid(s);
        (s.verifierStake, s.bond) = (1, 1);
        _expectInvalid(s, "bond");
    }

    function test_the_solver_stake_covers_the_verifier_fee() public {
        Terms memory s = _terms();
        s.solverStake = 4 ether - 1;
        _expectInvalid(s, "solverStake");
        s.solverStake = 4 ether;
        _expectValid(s);
        s.verifierFee = 0;
        s.solverStake = 0;
        _expectInvalid(s, "solverStake");
        s.solverStake = 1;
        _expectValid(s);
    }

    function test_the_fee_leaves_a_price_and_fits_its_type() public {
        Terms memory s = _terms();
        vm.deal(submitter, 1 << 130);
        vm.startPrank(submitter);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.WrongPayment.selector, 2 ether, 2 ether + 1));
        market.submitTask{value: 2 ether}(s);
        market.submitTask{value: 2 ether + 1}(s);
        vm.expectPartialRevert(ITaskMarket.WrongPayment.selector);
        market.submitTask{value: 1 << 128}(s);
        market.submitTask{value: type(uint128).max}(s);
    }

    function test_only_the_submitter_cancels_and_only_once() public {
        _submit();
        vm.prank(solver);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.NotAllowed.selector, solver));
        market.cancelTask(id);
        vm.startPrank(submitter);
        market.cancelTask(id);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.WrongStatus.selector, id, uint8(Status.Closed)));
        market.cancelTask(id);
    }

    function test_no_cancelling_behind_a_solver() public {
        _toTraining();
        vm.prank(submitter);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.WrongStatus.selector, id, uint8(Status.Training)));
        market.cancelTask(id);
    }

    function test_a_task_that_does_not_exist_allows_nothing() public {
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.WrongStatus.selector, bytes32(0), uint8(Status.None)));
        market.cancelTask(0);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.WrongStatus.selector, bytes32(0), uint8(Status.None)));
        market.joinAsVerifier(0);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.WrongStatus.selector, bytes32(0), uint8(Status.None)));
        market.settle(0);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.WrongStatus.selector, bytes32(0), uint8(Status.None)));
        market.drawnSegments(0);
    }

    function test_the_deployer_names_a_real_game_once() public {
        TaskMarket fresh = new TaskMarket(beacon, treasury);
        Terms memory s = _terms();
        vm.prank(submitter);
        vm.expectRevert(ITaskMarket.GameNotSet.selector);
        fresh.submitTask{value: _fee}(s);
        vm.prank(submitter);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.NotAllowed.selector, submitter));
        fresh.setGame(address(game), address(profiles));
        vm.expectRevert(ITaskMarket.GameNotSet.selector);
        fresh.setGame(treasury, address(profiles));
        vm.expectRevert(ITaskMarket.GameNotSet.selector);
        fresh.setGame(address(game), treasury);
        fresh.setGame(address(game), address(profiles));
        vm.assertEq(address(fresh.game()), address(game));
        vm.assertEq(address(fresh.profiles()), address(profiles));
        vm.expectRevert(ITaskMarket.GameAlreadySet.selector);
        fresh.setGame(address(game), address(profiles));
    }

    function test_the_treasury_is_somebody() public {
        beacon = new BlockBeacon();
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.NotAllowed.selector, address(0)));
        new TaskMarket(beacon, address(0));
    }

    function _expectInvalid(Terms memory s, string memory field) private {
        vm.prank(submitter);
        vm.expectRevert(abi.encodeWithSelector(ITaskMarket.InvalidTerms.selector, field));
        market.submitTask{value: _fee}(s);
    }

    function _expectValid(Terms memory s) private {
        vm.prank(submitter);
        market.submitTask{value: _fee}(s);
    }
}
