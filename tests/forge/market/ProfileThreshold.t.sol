// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Acceptance} from "../../../contracts/market/Acceptance.sol";
import {ProfileThreshold} from "../../../contracts/market/ProfileThreshold.sol";
import {Base} from "../Base.sol";

/// @notice The threshold of one rerun, docs/spec/profile.md.
contract ProfileThresholdTest is Base {
    uint256 private constant UNEQUAL = 1 << 160;

    function _of(uint256 distance, uint256 base, uint256 margin) private pure returns (uint256) {
        return ProfileThreshold.fromRerun(distance, base, margin);
    }

    function test_the_floor() public pure {
        vm.assertEq(_of(0, 0, 1), 1 << 24);
        vm.assertEq(_of(0, 7 * UNEQUAL, 64), 1 << 24);
        vm.assertEq(_of(1, 1 << 40, 1), 1 << 24);
        vm.assertEq(_of(1, (1 << 40) - 1, 1), (1 << 24) + 1);
        vm.assertEq(_of(1, 1 << 159, 65535), 65535 * 65535);
    }

    function test_the_square_of_the_margin_times_the_ratio_rounded_up() public pure {
        vm.assertEq(_of(3, 1 << 40, 10), 300 << 24);
        vm.assertEq(_of(1, 3 << 14, 1), (uint256(1 << 50) - 1) / 3 + 1);
        vm.assertEq(_of(1, 7 * UNEQUAL + (3 << 14), 1), (uint256(1 << 50) - 1) / 3 + 1);
    }

    function test_where_there_is_none() public pure {
        vm.assertEq(_of(UNEQUAL, 1 << 100, 1), 0);
        vm.assertEq(_of(type(uint256).max, 1 << 100, 1), 0);
        vm.assertEq(_of(0, Acceptance.FINITE, 1), 0);
        vm.assertEq(_of(0, type(uint256).max, 1), 0);
        vm.assertEq(_of(1, 0, 1), 0);
        vm.assertEq(_of(1, 3 * UNEQUAL, 1), 0);
        vm.assertEq(_of(1, 1, 1), 0);
        vm.assertEq(_of(UNEQUAL - 1, 1, 65535), 0);
        vm.assertEq(_of(1 << 52, 1 << 64, 1), 1 << 52);
        vm.assertEq(_of((1 << 52) + 1, 1 << 64, 1), 0);
    }

    /// @dev What the profile has seen is accepted under its threshold, with any margin.
    function testFuzz_the_measured_rerun_is_accepted(uint256 distance, uint256 base, uint16 margin) public pure {
        distance %= UNEQUAL;
        base %= Acceptance.FINITE;
        uint256 threshold = _of(distance, base, uint256(margin) + 1 > 65535 ? 65535 : uint256(margin) + 1);
        if (threshold == 0) return;
        vm.assertTrue(threshold >= 1 << 24 && distance << 64 <= threshold * (base % UNEQUAL));
    }

    function testFuzz_as_the_specification_says(uint256 distance, uint256 base, uint16 margin) public pure {
        distance >>= distance % 256;
        base >>= base % 256;
        uint256 travelled = base % UNEQUAL;
        uint256 expected = 0;
        if (distance < UNEQUAL && base < Acceptance.FINITE && (distance == 0 || travelled > 0)) {
            uint256 ratio = distance == 0 ? 0 : (distance * 2 ** 64 + travelled - 1) / travelled;
            expected = uint256(margin) * margin * ratio;
            if (expected < 2 ** 24) expected = 2 ** 24;
            if (expected > 2 ** 52) expected = 0;
        }
        vm.assertEq(_of(distance, base, margin), expected);
    }
}
