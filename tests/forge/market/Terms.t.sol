// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ISettlement} from "../../../contracts/market/ISettlement.sol";
import {ITaskRegistry} from "../../../contracts/market/ITaskRegistry.sol";
import {Terms} from "../../../contracts/market/TaskTypes.sol";
import {MarketBase} from "./MarketBase.sol";

/// @notice What the terms of a task may say: the first field that breaks a bound is named.
contract TermsTest is MarketBase {
    function test_work_costs_something_and_not_more_than_there_can_be() public {
        Terms memory s = _terms();
        (s.workUnits, s.unitPrice, s.secondPrice) = (1, 1, 0);
        _expectValid(s);
        (s.workUnits, s.unitPrice) = (1 << 112, 1 << 112);
        vm.prank(submitter);
        vm.expectRevert(abi.encodeWithSelector(ISettlement.PriceTooHigh.selector, 1 << 112));
        registry.submit(s);
        (s.workUnits, s.unitPrice) = ((1 << 112) + 1, 1);
        _expectInvalid(s, "workUnits");
        s.workUnits = 0;
        _expectInvalid(s, "workUnits");
        (s.workUnits, s.unitPrice) = (1, (1 << 112) + 1);
        _expectInvalid(s, "unitPrice");
        s.unitPrice = 0;
        _expectInvalid(s, "unitPrice");
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
        (s.steps, s.interval) = (type(uint32).max, 3);
        _expectValid(s);
        (s.steps, s.interval) = (uint64(type(uint32).max) + 1, 4);
        _expectInvalid(s, "steps");
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

    function test_a_profile_has_bounds() public {
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
    }

    function test_a_second_look_has_bounds() public {
        Terms memory s = _terms();
        s.solverStake = 80 ether;
        (s.looks, s.lookMargin) = (64, (1 << 16) - 1);
        _expectValid(s);
        s.looks = 65;
        _expectInvalid(s, "looks");
        (s.steps, s.interval, s.profiled) = (32, 1, 1);
        (s.draws, s.looks) = (32, 17);
        _expectInvalid(s, "looks");
        s.looks = 16;
        _expectValid(s);
        (s.draws, s.looks) = (8, 64);
        _expectValid(s);
        // Each drawn segment may need one, and what they leave covers as much as before.
        s.solverStake = 66 ether - 1;
        _expectInvalid(s, "solverStake");
        s.solverStake = 64 ether;
        _expectInvalid(s, "solverStake");
        s.solverStake = 66 ether;
        _expectValid(s);
        (s.looks, s.lookMargin) = (1, 1 << 16);
        _expectInvalid(s, "lookMargin");
        (s.looks, s.lookMargin) = (0, 1);
        _expectInvalid(s, "lookMargin");
        (s.looks, s.lookMargin) = (1, 0);
        _expectInvalid(s, "lookMargin");
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
        s = _exact(s);
        (s.looks, s.lookMargin) = (1, 1);
        _expectInvalid(s, "looks");
    }

    /// @dev Each window in turn, with the fields in the order of the rules.
    function test_a_window_gives_time_to_be_heard_and_ends() public {
        string[8] memory fields = [
            "profileWindow",
            "bidWindow",
            "seatWindow",
            "trainingWindow",
            "verificationWindow",
            "watchWindow",
            "disclosureWindow",
            "challengeWindow"
        ];
        for (uint256 i = 0; i < fields.length; ++i) {
            uint32 most = i == 3 ? 365 days : 90 days;
            uint32[5] memory wrong = [uint32(0), 1, 59, most + 1, type(uint32).max];
            for (uint256 k = 0; k < wrong.length; ++k) {
                _expectInvalid(_withWindow(i, wrong[k]), fields[i]);
            }
            // Longer than the window of commitments.
            _expectValid(_withWindow(i, i == 5 ? COMMIT_WINDOW + 1 : 60));
            if (i == 5) _expectInvalid(_withWindow(i, COMMIT_WINDOW), fields[i]);
            _expectValid(_withWindow(i, most));
        }
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
        (s.verifierStake, s.jackpot) = (3200, 4);
        uint128[5] memory wrong = [uint128(0), 1, 199, 1601, type(uint128).max];
        for (uint256 i = 0; i < wrong.length; ++i) {
            s.bond = wrong[i];
            _expectInvalid(s, "bond");
        }
        s.bond = 200;
        _expectValid(s);
        s.bond = 1600;
        _expectValid(s);
        (s.verifierStake, s.bond) = (1 << 112, 1 << 111);
        _expectValid(s);
        s.verifierStake = (1 << 112) + 1;
        _expectInvalid(s, "verifierStake");
        (s.verifierStake, s.bond) = (0, 0);
        _expectInvalid(s, "verifierStake");
        (s.verifierStake, s.bond) = (1, 1);
        _expectInvalid(s, "bond");
    }

    function test_the_solver_stake_covers_the_verifier_fee() public {
        Terms memory s = _terms();
        s.solverStake = 2 ether - 1;
        _expectInvalid(s, "solverStake");
        s.solverStake = 2 ether;
        _expectValid(s);
        s.solverStake = (1 << 112) + 1;
        _expectInvalid(s, "solverStake");
        s.verifierFee = 0;
        s.solverStake = 0;
        _expectInvalid(s, "solverStake");
        (s.solverStake, s.jackpot) = (1, SHARES);
        _expectValid(s);
        s.verifierFee = (1 << 112) + 1;
        _expectInvalid(s, "verifierFee");
    }

    /// @dev Seven sixteenths of the stake are left to the fund; the tax is 0.3125 ether.
    function test_what_withheld_data_leave_to_the_fund_covers_the_tax() public {
        Terms memory s = _terms();
        s.verifierFee = 0;
        s.solverStake = 714285714285714283;
        _expectValid(s);
        s.solverStake = 714285714285714282;
        _expectInvalid(s, "solverStake");
    }

    /// @dev The jackpot refuses less than one unit a share: nobody could ever take the verifier's seat.
    function test_a_jackpot_that_cannot_be_reserved_makes_no_task() public {
        Terms memory s = _terms();
        s.jackpot = SHARES - 1;
        _expectInvalid(s, "jackpot");
        s.jackpot = 0;
        _expectInvalid(s, "jackpot");
        s.jackpot = SHARES;
        _expectValid(s);
    }

    /// @dev Or somebody would lie in tasks of its own to catch itself: docs/spec/incentives.md, "The jackpot".
    function test_a_lie_costs_more_than_its_catches_pay() public {
        Terms memory s = _terms();
        (s.verifierStake, s.bond, s.jackpot) = (3200, 400, 1600);
        _expectValid(s);
        s.jackpot = 1601;
        _expectInvalid(s, "jackpot");
        s.jackpot = (1 << 112) + 1;
        _expectInvalid(s, "jackpot");
    }

    /// @dev The auction refuses them: a profile could never be concluded, and its profiler's stake would stay.
    function test_a_second_price_that_leaves_no_bid_makes_no_task() public {
        Terms memory s = _terms();
        uint128 most = uint128(uint256(8 ether) / 60);
        s.secondPrice = most + 1;
        _expectInvalid(s, "secondPrice");
        s.secondPrice = (1 << 112) + 1;
        _expectInvalid(s, "secondPrice");
        s.secondPrice = most;
        _expectValid(s);
        s = _exact(s);
        _expectValid(s);
    }

    function _withWindow(uint256 which, uint32 time) private view returns (Terms memory s) {
        s = _terms();
        if (which == 0) s.profileWindow = time;
        else if (which == 1) s.bidWindow = time;
        else if (which == 2) s.seatWindow = time;
        else if (which == 3) s.trainingWindow = time;
        else if (which == 4) s.verificationWindow = time;
        else if (which == 5) s.watchWindow = time;
        else if (which == 6) s.disclosureWindow = time;
        else s.challengeWindow = time;
    }

    function _expectInvalid(Terms memory s, string memory field) private {
        vm.prank(submitter);
        vm.expectRevert(abi.encodeWithSelector(ITaskRegistry.InvalidTerms.selector, field));
        registry.submit(s);
    }

    function _expectValid(Terms memory s) private {
        vm.prank(submitter);
        registry.submit(s);
    }
}
