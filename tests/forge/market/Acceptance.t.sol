// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Acceptance} from "../../../contracts/market/Acceptance.sol";
import {Claim} from "../../../contracts/market/TaskTypes.sol";
import {Base} from "../Base.sol";

/// @notice Accept if and only if everything is finite and within its threshold.
contract AcceptanceTest is Base {
    uint256 private constant INFINITE = type(uint256).max;
    uint256 private constant LIMIT = 1 << 191;
    uint256 private constant UNEQUAL = 1 << 160;

    struct ClaimRow {
        bytes32 start;
        bytes32 end;
        bytes32 replay;
        uint256[3] distances;
        uint256[3] references;
        bool exact;
        bool tolerant;
    }

    function isAccepted(uint64[3] calldata thresholds, uint256[3] calldata distances, uint256[3] calldata references)
        external
        pure
        returns (bool)
    {
        return Acceptance.isAccepted(thresholds, distances, references);
    }

    function accepts(bool exact, uint64[3] calldata thresholds, Claim calldata claim) external pure returns (bool) {
        return Acceptance.accepts(exact, thresholds, claim);
    }

    function test_claims() public view {
        string memory json = vm.readFile("fixtures/vectors/verdicts.json");
        string memory form =
            "Decided(bytes32 start,bytes32 end,bytes32 replay,uint256[3] distances,uint256[3] references,bool exact,bool tolerant)";
        ClaimRow[] memory rows = abi.decode(vm.parseJsonTypeArray(json, ".rows", form), (ClaimRow[]));
        uint256[] memory some = vm.parseJsonUintArray(json, ".tolerance");
        uint64[3] memory tolerance = [uint64(some[0]), uint64(some[1]), uint64(some[2])];
        vm.assertGt(rows.length, 40);
        for (uint256 i = 0; i < rows.length; ++i) {
            ClaimRow memory row = rows[i];
            Claim memory claim = Claim(7, row.start, row.end, row.replay, row.distances, row.references, 0, 0);
            vm.assertEq(this.accepts(true, [uint64(0), 0, 0], claim), row.exact);
            vm.assertEq(this.accepts(false, tolerance, claim), row.tolerant);
        }
    }

    function test_the_bound_is_included() public view {
        for (uint256 c = 0; c < 3; ++c) {
            vm.assertTrue(_one(c, 1 << 40, 1, 1 << 24));
            vm.assertFalse(_one(c, (1 << 40) - 1, 1, 1 << 24));
            vm.assertFalse(_one(c, 1 << 40, 1, (1 << 24) - 1));
            vm.assertFalse(_one(c, 1 << 40, 2, 1 << 24));
        }
    }

    function test_infinite_sums_are_rejected_at_any_threshold() public view {
        for (uint256 c = 0; c < 3; ++c) {
            vm.assertTrue(_one(c, type(uint64).max, 0, LIMIT - 1));
            vm.assertTrue(_one(c, type(uint64).max, UNEQUAL / 2, LIMIT - 1));
            vm.assertFalse(_one(c, type(uint64).max, LIMIT, LIMIT - 1));
            vm.assertFalse(_one(c, type(uint64).max, 0, LIMIT));
            vm.assertFalse(_one(c, type(uint64).max, INFINITE, INFINITE));
            vm.assertFalse(_one(c, type(uint64).max, 0, INFINITE));
            vm.assertFalse(_one(c, type(uint64).max, INFINITE, 0));
            // 2^256 - 1 shifted by 64 would wrap into something small.
            vm.assertFalse(_one(c, type(uint64).max, 1 << 192, 1));
        }
    }

    function test_integers_have_to_be_equal_whatever_way_they_went() public view {
        for (uint256 c = 0; c < 3; ++c) {
            vm.assertTrue(_one(c, 1 << 40, 0, 7 * UNEQUAL));
            vm.assertTrue(_one(c, 1 << 40, 1, 7 * UNEQUAL + (1 << 24)));
            vm.assertFalse(_one(c, 1 << 40, 1, 7 * UNEQUAL + (1 << 24) - 1));
            vm.assertFalse(_one(c, type(uint64).max, UNEQUAL, LIMIT - 1));
            vm.assertFalse(_one(c, type(uint64).max, UNEQUAL, UNEQUAL));
            vm.assertFalse(_one(c, type(uint64).max, UNEQUAL, 0));
        }
    }

    function test_a_threshold_of_zero_admits_no_distance() public view {
        vm.assertTrue(_one(0, 0, 0, 1 << 100));
        vm.assertFalse(_one(0, 0, 1, LIMIT - 1));
    }

    function test_a_component_that_does_not_exist_passes_and_one_that_did_not_move_is_exact() public view {
        vm.assertTrue(_one(1, 1 << 40, 0, 0));
        vm.assertFalse(_one(1, type(uint64).max, 1, 0));
    }

    function testFuzz_never_reverts_and_means_what_it_says(uint64 threshold, uint256 distance, uint256 base, uint8 c)
        public
        view
    {
        if (distance & 1 == 1) distance %= UNEQUAL;
        if (base & 1 == 1) base %= LIMIT;
        bool finite = distance < UNEQUAL && base < LIMIT;
        bool within = finite && distance * (1 << 64) <= uint256(threshold) * uint160(base);
        vm.assertEq(_one(c % 3, threshold, distance, base), within);
    }

    /// @dev All components but `c` are perfect.
    function _one(uint256 c, uint64 threshold, uint256 distance, uint256 base) private view returns (bool) {
        uint64[3] memory thresholds;
        uint256[3] memory distances;
        uint256[3] memory references;
        (thresholds[c], distances[c], references[c]) = (threshold, distance, base);
        return this.isAccepted(thresholds, distances, references);
    }
}
