// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {BlockBeacon} from "../../../contracts/market/BlockBeacon.sol";
import {SegmentDraw} from "../../../contracts/market/SegmentDraw.sol";
import {Base, ForcedErrors, IBeacon, MarketBase, Outcome} from "./MarketBase.sol";

contract BlockBeaconTest is Base {
    BlockBeacon private beacon = new BlockBeacon();

    function setUp() public {
        vm.roll(1_000);
    }

    function test_a_future_round_has_no_seed() public {
        uint64 round = beacon.nextRound();
        vm.assertEq(round, block.number + 2);
        for (uint256 number = block.number; number <= round; ++number) {
            vm.roll(number);
            vm.expectRevert(abi.encodeWithSelector(IBeacon.RoundNotReached.selector, round));
            beacon.record(round);
        }
        vm.expectRevert(abi.encodeWithSelector(IBeacon.RoundNotRecorded.selector, round));
        beacon.seed(round);
        vm.assertFalse(beacon.recorded(round));
    }

    function test_the_seed_is_the_hash_of_the_block_and_stays() public {
        uint64 round = beacon.nextRound();
        vm.roll(round + 1);
        bytes32 expected = blockhash(round);
        vm.expectEmit(address(beacon));
        emit IBeacon.Recorded(round, expected);
        beacon.record(round);
        vm.assertEq(beacon.seed(round), expected);
        vm.assertNotEq(expected, 0);
        vm.roll(round + 600);
        beacon.record(round);
        vm.assertEq(beacon.seed(round), expected);
    }

    function test_a_missed_round_falls_to_the_one_admissible_block() public {
        uint64 round = beacon.nextRound();
        vm.roll(round + 256);
        vm.assertEq(beacon.admissibleBlock(round), round);
        vm.roll(round + 257);
        vm.assertEq(beacon.admissibleBlock(round), round + 256);
        beacon.record(round);
        vm.assertEq(beacon.seed(round), blockhash(round + 256));
    }

    function test_a_round_to_come_waits_for_its_own_block() public view {
        vm.assertEq(beacon.admissibleBlock(uint64(block.number)), block.number);
        vm.assertEq(beacon.admissibleBlock(beacon.nextRound()), block.number + 2);
    }

    function test_a_hash_that_the_chain_does_not_tell_is_no_seed() public {
        uint64 round = beacon.nextRound();
        vm.roll(round + 1);
        (bool success,) = address(vm).call(abi.encodeWithSignature("setBlockhash(uint256,bytes32)", round, bytes32(0)));
        vm.assertTrue(success);
        vm.expectRevert(abi.encodeWithSelector(IBeacon.RoundNotRecorded.selector, round));
        beacon.record(round);
        vm.assertFalse(beacon.recorded(round));
    }

    function testFuzz_the_admissible_block_is_known_and_does_not_move_within_a_window(uint64 round, uint64 age) public {
        round = uint64(bound(round, 1, 1 << 40));
        age = uint64(bound(age, 1, 1 << 40));
        vm.roll(uint256(round) + age);
        uint256 admissible = beacon.admissibleBlock(round);
        vm.assertTrue(admissible < block.number && admissible + 256 >= block.number);
        vm.assertEq((admissible - round) % 256, 0);
    }
}

contract SegmentDrawTest is Base {
    /// @dev Python's `pol.claims.sampling.draw` wrote the file, see tests/incentives/test_market_vectors.py.
    function test_vectors() public view {
        string memory json = vm.readFile("fixtures/vectors/draws.json");
        bytes32[] memory seeds = vm.parseJsonBytes32Array(json, ".seed");
        uint256[] memory segments = vm.parseJsonUintArray(json, ".segments");
        vm.assertGt(seeds.length, 0);
        for (uint256 i = 0; i < seeds.length; ++i) {
            uint256[] memory expected = vm.parseJsonUintArray(json, string.concat(".drawn[", vm.toString(i), "]"));
            uint32[] memory drawn = SegmentDraw.draw(seeds[i], segments[i], expected.length);
            vm.assertEq(drawn.length, expected.length);
            for (uint256 k = 0; k < drawn.length; ++k) {
                vm.assertEq(uint256(drawn[k]), expected[k]);
            }
        }
    }

    function testFuzz_drawn_segments_are_distinct_and_exist(bytes32 seed, uint256 segments, uint256 draws) public pure {
        segments = bound(segments, 1, type(uint32).max - 1);
        draws = bound(draws, 1, segments < 32 ? segments : 32);
        _expectDistinct(SegmentDraw.draw(seed, segments, draws), segments);
    }

    function testFuzz_every_segment_is_drawn_when_all_are(bytes32 seed, uint256 segments) public pure {
        segments = bound(segments, 1, 32);
        _expectDistinct(SegmentDraw.draw(seed, segments, segments), segments);
    }

    function _expectDistinct(uint32[] memory drawn, uint256 segments) private pure {
        for (uint256 i = 0; i < drawn.length; ++i) {
            vm.assertLt(drawn[i], segments);
            for (uint256 k = 0; k < i; ++k) {
                vm.assertNotEq(uint256(drawn[i]), drawn[k]);
            }
        }
    }
}

/// @notice A market of a beacon of blocks: rounds come with blocks, and nobody names a seed.
abstract contract BlockBeaconBase is MarketBase {
    /// @dev One task to its end, whatever is drawn.
    function _live() internal {
        _toCommitted();
        _give(proofs.proof(id).round, 0);
        _seat(verifier, ForcedErrors.commitment(verifier, id, secret));
        _give(seats.seating(id).dutyRound, 0);
        _verdict(verifier, true);
        _give(verdicts.verdict(id).watchRound, 0);
        verdicts.openWatch(id);
        _disclose(verifier, true);
        _settle();
        vm.assertEq(uint256(registry.task(id).outcome), uint256(Outcome.Accepted));
        vm.assertEq(_gain(verifier), 2 ether);
    }

    function _give(uint64 round, bytes32) internal override {
        vm.roll(round + 1);
        beacon.record(round);
    }
}
