// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ISettlement} from "../../../contracts/market/ISettlement.sol";
import {ITaskRegistry} from "../../../contracts/market/ITaskRegistry.sol";
import {Terms} from "../../../contracts/market/TaskTypes.sol";
import {MarketBase} from "./MarketBase.sol";

/// @notice What the terms of a task may say: the first field that breaks a bound is named. A row is one value of one
/// field, refused (`_no`) or taken (`_ok`); what is refused is changed back, what is taken stays for the next rows.
contract TermsTest is MarketBase {
    /// @dev The fields in their order: every one is a word.
    string private constant NAMES = "program constants initialState document reruns steps interval draws workUnits unitPrice "
        "secondPrice solverStake verifierStake bond verifierFee jackpot rerunCount profiled margin looks lookMargin "
        "profileWindow bidWindow seatWindow trainingWindow verificationWindow watchWindow disclosureWindow challengeWindow "
        "clock";
    uint256 private constant MOST = 1 << 112;

    string[] private names;
    Terms private s;

    function setUp() public override {
        super.setUp();
        (names, s) = (vm.split(NAMES, " "), _terms());
    }

    function test_work_costs_something_and_not_more_than_there_can_be() public {
        (s.workUnits, s.unitPrice, s.secondPrice) = (uint128(MOST), uint128(MOST), 0);
        vm.prank(submitter);
        vm.expectRevert(abi.encodeWithSelector(ISettlement.PriceTooHigh.selector, MOST));
        registry.submit(s);
        s.unitPrice = 1;
        _no("workUnits", MOST + 1);
        _no("workUnits", 0);
        _ok("workUnits", 1);
        _no("unitPrice", MOST + 1);
        _no("unitPrice", 0);
    }

    function test_zero_hashes_mean_nothing() public {
        for (uint256 i = 0; i < 5; ++i) {
            _no(names[i], 0);
        }
    }

    function test_steps_are_whole_segments() public {
        _no("interval", 0);
        _no("steps", 0);
        _no("steps", 41);
        s.interval = 1;
        _no("steps", type(uint32).max);
        _ok("steps", type(uint32).max - 1);
        s.interval = 3;
        _ok("steps", type(uint32).max);
        s.interval = 4;
        _no("steps", 1 << 32);
    }

    function test_draws_fit_the_segments_and_the_gas() public {
        _no("draws", 0);
        _no("draws", 5);
        _ok("draws", 4);
        s.steps = 400;
        _no("draws", 33);
        _ok("draws", 32);
    }

    function test_a_profile_has_bounds() public {
        _no("margin", 1 << 16);
        _ok("margin", (1 << 16) - 1);
        _no("rerunCount", 0);
        _no("rerunCount", (1 << 16) + 1);
        _no("rerunCount", type(uint32).max);
        _ok("rerunCount", 1 << 16);
        _no("profiled", 0);
        _no("profiled", _segments() + 1);
        _no("profiled", type(uint32).max);
        _ok("profiled", _segments());
        s.steps = 400;
        _no("profiled", 17);
        _ok("profiled", 16);
    }

    function test_a_second_look_has_bounds() public {
        (s.solverStake, s.lookMargin) = (80 ether, (1 << 16) - 1);
        _no("looks", 65);
        _ok("looks", 64);
        (s.steps, s.interval, s.profiled, s.draws) = (32, 1, 1, 32);
        _no("looks", 17);
        _ok("looks", 16);
        s.draws = 8;
        _ok("looks", 64);
        // Each drawn segment may need one, and what they leave covers as much as before.
        _no("solverStake", 66 ether - 1);
        _no("solverStake", 64 ether);
        _ok("solverStake", 66 ether);
        s.looks = 1;
        _no("lookMargin", 1 << 16);
        _no("lookMargin", 0);
        s.looks = 0;
        _no("lookMargin", 1);
    }

    function test_exact_mode_has_no_profile() public {
        s = _exact(s);
        _no("reruns", 1);
        _no("rerunCount", 1);
        _no("profiled", 1);
        _no("profileWindow", 60);
        s.lookMargin = 1;
        _no("looks", 1);
        _ok("lookMargin", 0);
    }

    /// @dev The watch is longer than the window of commitments, a training may be long.
    function test_a_window_gives_time_to_be_heard_and_ends() public {
        for (uint256 i = 21; i < 29; ++i) {
            _bounds(names[i], i == 26 ? COMMIT_WINDOW + 1 : 60, i == 24 ? 365 days : 90 days);
            _no(names[i], 0);
            _no(names[i], 59);
            _no(names[i], type(uint32).max);
        }
    }

    /// @dev A second is lost by the honest side, 2^32 seconds hold every stake to ransom.
    function test_a_clock_is_long_enough_to_move_and_short_enough_to_end() public {
        _bounds("clock", 10 minutes, 14 days);
        _no("clock", 0);
        _no("clock", type(uint32).max);
    }

    /// @dev A wei makes delays free, a fortune makes challenges impossible.
    function test_the_bond_is_in_proportion_to_what_a_challenge_can_win() public {
        (s.solverStake, s.verifierStake, s.jackpot) = (20 ether, 3200, 4);
        _bounds("bond", 200, 1600);
        _no("bond", 0);
        _no("bond", type(uint128).max);
        s.bond = 1 << 111;
        _ok("verifierStake", MOST);
        _no("verifierStake", MOST + 1);
        s.bond = 0;
        _no("verifierStake", 0);
        s.verifierStake = 1;
        _no("bond", 1);
    }

    /// @dev 88 hundredths of a word's bond, which ends at the verifier's stake, or follows stake and price; and the tax.
    function test_the_solver_stake_pays_the_shares_of_two_words() public {
        _no("solverStake", 3.8325 ether - 1);
        _ok("solverStake", 3.8325 ether);
        (s.verifierStake, s.bond) = (100 ether, 10 ether);
        _no("solverStake", 13.647135416666666663 ether);
        _ok("solverStake", 13.647135416666666664 ether);
    }

    function test_the_solver_stake_covers_the_verifier_fee() public {
        (s.verifierStake, s.bond, s.jackpot) = (3200, 400, SHARES);
        _no("solverStake", 2 ether - 1);
        _ok("solverStake", 2 ether);
        _no("solverStake", MOST + 1);
        s.verifierFee = 0;
        _no("solverStake", 0);
        (s.workUnits, s.unitPrice) = (1, 1);
        _ok("solverStake", 1);
        _no("verifierFee", MOST + 1);
    }

    /// @dev Seven sixteenths of what second looks leave of the stake go to the fund; the tax is 0.3125 ether.
    function test_what_withheld_data_leave_to_the_fund_covers_the_tax() public {
        (s.verifierFee, s.looks, s.lookMargin, s.unitPrice) = (0.1 ether, 8, 1, 1);
        _ok("solverStake", 0.8 ether + 714285714285714283);
        _no("solverStake", 0.8 ether + 714285714285714282);
    }

    /// @dev The jackpot refuses less than one unit a share: nobody could ever take the verifier's seat. With more than
    /// half of the stake somebody would lie in tasks of its own to catch itself: docs/spec/incentives.md, "The jackpot".
    function test_a_jackpot_can_be_reserved_and_a_lie_costs_more_than_its_catches_pay() public {
        _no("jackpot", SHARES - 1);
        _no("jackpot", 0);
        _ok("jackpot", SHARES);
        (s.verifierStake, s.bond) = (3200, 400);
        _ok("jackpot", 1600);
        _no("jackpot", 1601);
        _no("jackpot", MOST + 1);
    }

    /// @dev The auction refuses them: a profile could never be concluded, and its profiler's stake would stay.
    function test_a_second_price_that_leaves_no_bid_makes_no_task() public {
        uint256 most = uint256(8 ether) / 60;
        _no("secondPrice", MOST + 1);
        _no("secondPrice", most + 1);
        _ok("secondPrice", most);
        s = _exact(s);
        _ok("secondPrice", most);
    }

    function _bounds(string memory field, uint256 least, uint256 most) private {
        _no(field, least - 1);
        _ok(field, least);
        _no(field, most + 1);
        _ok(field, most);
    }

    /// @dev What the registry answers to the terms with another value of one field.
    function _submit(string memory field, uint256 value) private returns (Terms memory changed, bytes memory answer) {
        changed = s;
        uint256 i = 0;
        while (keccak256(bytes(names[i])) != keccak256(bytes(field))) ++i;
        assembly ("memory-safe") {
            mstore(add(changed, mul(32, i)), value)
        }
        vm.prank(submitter);
        (, answer) = address(registry).call(abi.encodeCall(registry.submit, (changed)));
    }

    function _no(string memory field, uint256 value) private {
        (, bytes memory answer) = _submit(field, value);
        bytes memory reason = abi.encodeWithSelector(ITaskRegistry.InvalidTerms.selector, field);
        vm.assertEq(answer, reason, string.concat(field, " ", vm.toString(value)));
    }

    function _ok(string memory field, uint256 value) private {
        bytes memory answer;
        (s, answer) = _submit(field, value);
        vm.assertEq(answer.length, 32, string.concat(field, " ", vm.toString(value)));
    }
}
