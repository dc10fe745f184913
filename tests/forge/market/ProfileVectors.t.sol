// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Acceptance} from "../../../contracts/market/Acceptance.sol";
import {ProfileThreshold} from "../../../contracts/market/ProfileThreshold.sol";
import {Base, IProfiles, MarketBase, NaiveLog, Portion, Rerun, Terms, Witness} from "./MarketBase.sol";

/// @notice What `pol.verification.profile.profile_claim` computes is what the contract computes, for the vectors of the
/// specification.
contract ProfileVectorsTest is MarketBase {
    string private constant FILE = "fixtures/vectors/profile.json";

    struct Ratio {
        uint256 distance;
        uint256 base;
        bool exists;
        uint256 ratio;
    }

    struct Threshold {
        uint256 distance;
        uint256 base;
        uint256 margin;
        bool exists;
        uint256 threshold;
    }

    Terms private custom;

    function setUp() public override {
        super.setUp();
        custom = super._terms();
    }

    function _segments() internal pure override returns (uint32) {
        return 16;
    }

    function _terms() internal view override returns (Terms memory) {
        return custom.program == 0 ? super._terms() : custom;
    }

    function test_ratios() public view {
        string memory form = "Row(uint256 distance,uint256 reference,bool exists,uint256 ratio)";
        Ratio[] memory rows = abi.decode(vm.parseJsonTypeArray(vm.readFile(FILE), ".ratios", form), (Ratio[]));
        vm.assertEq(rows.length, 154);
        for (uint256 i = 0; i < rows.length; ++i) {
            uint256 expected = rows[i].ratio < 1 << 24 ? 1 << 24 : rows[i].ratio;
            if (!rows[i].exists || expected > 1 << 52) expected = 0;
            vm.assertEq(ProfileThreshold.fromRerun(rows[i].distance, rows[i].base, 1), expected);
        }
    }

    function test_thresholds() public view {
        string memory form = "Row(uint256 distance,uint256 reference,uint256 margin,bool exists,uint256 threshold)";
        bytes memory decoded = vm.parseJsonTypeArray(vm.readFile(FILE), ".thresholds", form);
        Threshold[] memory rows = abi.decode(decoded, (Threshold[]));
        vm.assertEq(rows.length, 92);
        for (uint256 i = 0; i < rows.length; ++i) {
            uint256 expected = rows[i].exists ? rows[i].threshold : 0;
            vm.assertEq(ProfileThreshold.fromRerun(rows[i].distance, rows[i].base, rows[i].margin), expected);
        }
    }

    function test_whole_profiles() public {
        for (uint256 i = 0; i < 17; ++i) {
            // A call of its own: what it reads is long, and memory is not given back within a call.
            this.check(string.concat(".profiles[", vm.toString(i), "]"));
        }
    }

    function check(string calldata row) external {
        string memory json = vm.readFile(FILE);
        bytes32[] memory leaves = vm.parseJsonBytes32Array(json, string.concat(row, ".leaves"));
        Portion[] memory portions = _portionsOf(json, row);
        Rerun[] memory reruns = _rerunsOf(json, row);
        vm.assertEq(reruns.length, leaves.length);
        for (uint256 index = 0; index < leaves.length; ++index) {
            vm.assertEq(keccak256(abi.encode(reruns[index])), leaves[index]);
        }
        _open(json, row, uint32(portions.length));
        bytes32 root = vm.parseJsonBytes32(json, string.concat(row, ".root"));
        bool exists = abi.decode(vm.parseJson(json, string.concat(row, ".exists")), (bool));
        Witness[3] memory witnesses = _witnessesOf(json, row, reruns);
        vm.prank(verifier);
        if (!exists) vm.expectPartialRevert(IProfiles.NoThreshold.selector);
        profiles.post(id, portions, root, witnesses, "profile");
        if (!exists) return;
        uint256[] memory expected = vm.parseJsonUintArray(json, string.concat(row, ".thresholds"));
        for (uint256 c = 0; c < 3; ++c) {
            vm.assertEq(profiles.profile(id).thresholds[c], expected[c]);
        }
        _expectNotUnderstated(portions, reruns, leaves);
    }

    /// @dev No rerun demands more than the witness.
    function _expectNotUnderstated(Portion[] memory portions, Rerun[] memory reruns, bytes32[] memory leaves) private {
        uint64[3] memory posted = profiles.profile(id).thresholds;
        for (uint256 index = 0; index < leaves.length; ++index) {
            bytes32[] memory path = NaiveLog.inclusionPath(leaves, index, 0, leaves.length);
            Witness memory rerun = Witness(uint32(index), reruns[index], path);
            for (uint8 c = 0; c < 3; ++c) {
                _expectRefusal(challenger, abi.encodeWithSelector(IProfiles.NotUnderstated.selector, posted[c]));
                profiles.convict(id, portions, rerun, c + 1);
            }
        }
    }

    function _open(string memory json, string memory row, uint32 profiled) private {
        custom.rerunCount = uint32(vm.parseJsonUint(json, string.concat(row, ".rerunCount")));
        custom.margin = uint32(vm.parseJsonUint(json, string.concat(row, ".margin")));
        custom.profiled = profiled;
        id = registry.computeTaskId(submitter, registry.nonces(submitter), custom);
        _submit();
        _seat(verifier);
    }

    function _portionsOf(string memory json, string memory row) private pure returns (Portion[] memory) {
        string memory form = "Portion(bytes32 end,uint256[3] references)";
        return abi.decode(vm.parseJsonTypeArray(json, string.concat(row, ".portions"), form), (Portion[]));
    }

    function _rerunsOf(string memory json, string memory row) private pure returns (Rerun[] memory) {
        string memory form = "Rerun(bytes32 end,uint256[3] distances)";
        return abi.decode(vm.parseJsonTypeArray(json, string.concat(row, ".reruns"), form), (Rerun[]));
    }

    /// @dev With the paths that Python makes.
    function _witnessesOf(string memory json, string memory row, Rerun[] memory reruns)
        private
        pure
        returns (Witness[3] memory witnesses)
    {
        uint256[] memory indices = vm.parseJsonUintArray(json, string.concat(row, ".witnesses"));
        for (uint256 c = 0; c < 3; ++c) {
            string memory key = string.concat(row, ".paths[", vm.toString(c), "]");
            witnesses[c] = Witness(uint32(indices[c]), reruns[indices[c]], vm.parseJsonBytes32Array(json, key));
        }
    }
}

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
