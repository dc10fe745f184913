// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {DrandBeacon} from "../../../contracts/market/DrandBeacon.sol";
import {PrevrandaoBeacon} from "../../../contracts/market/PrevrandaoBeacon.sol";
import {G1Point, Quicknet} from "../../../contracts/market/Quicknet.sol";
import {Drand} from "./Drand.sol";
import {BlockBeaconBase, IBeacon} from "./BlockBeacon.t.sol";

contract DrandBeaconTest is Drand {
    uint64 private constant DELAY = 60;
    uint64 private constant ROUND = 30_662_990;
    uint256 private constant P_LOW = 0x64774b84f38512bf6730d2a0f6b0f6241eabfffeb153ffffb9feffffffffaaab;
    uint128 private constant P_HIGH = 0x1a0111ea397fe69a4b1ba7b6434bacd7;

    DrandBeacon private drand = new DrandBeacon(DELAY);

    function setUp() public {
        vm.warp(drand.timeOf(ROUND) + 1 days);
    }

    function test_published_rounds_are_recorded_with_their_randomness() public {
        uint64[] memory rounds = publishedRounds();
        vm.assertEq(rounds.length, 10);
        for (uint256 i = 0; i < rounds.length; ++i) {
            vm.assertFalse(drand.recorded(rounds[i]));
            vm.expectEmit(address(drand));
            emit IBeacon.Recorded(rounds[i], randomnessOf(rounds[i]));
            drand.submit(rounds[i], signatureOf(rounds[i]));
            vm.assertTrue(drand.recorded(rounds[i]));
            vm.assertEq(drand.seed(rounds[i]), randomnessOf(rounds[i]));
        }
    }

    function test_a_round_is_recorded_once() public {
        drand.submit(ROUND, signatureOf(ROUND));
        vm.recordLogs();
        drand.submit(ROUND, signatureOf(1_000));
        drand.record(ROUND);
        vm.assertEq(vm.getRecordedLogs().length, 0);
        vm.assertEq(drand.seed(ROUND), randomnessOf(ROUND));
    }

    function test_only_a_signature_brings_a_seed() public {
        vm.expectRevert(abi.encodeWithSelector(IBeacon.RoundNotRecorded.selector, ROUND));
        drand.record(ROUND);
        vm.expectRevert(abi.encodeWithSelector(IBeacon.RoundNotRecorded.selector, ROUND));
        drand.seed(ROUND);
    }

    function test_no_round_before_its_time() public {
        G1Point memory signature = signatureOf(ROUND);
        vm.warp(drand.timeOf(ROUND) - 1);
        vm.expectRevert(abi.encodeWithSelector(IBeacon.RoundNotReached.selector, ROUND));
        drand.submit(ROUND, signature);
        vm.expectRevert(abi.encodeWithSelector(IBeacon.RoundNotReached.selector, ROUND));
        drand.record(ROUND);
        vm.warp(drand.timeOf(ROUND));
        drand.submit(ROUND, signature);
    }

    function test_the_signature_of_another_round_is_none() public {
        _expectInvalid(1_000, signatureOf(ROUND));
        _expectInvalid(ROUND - 1, signatureOf(ROUND));
        _expectInvalid(ROUND + 1, signatureOf(ROUND));
        _expectInvalid(0, signatureOf(1));
    }

    function test_the_negated_signature_is_none() public {
        G1Point memory s = signatureOf(ROUND);
        // 384-bit p - y in two words.
        uint128 borrow = s.yLow > P_LOW ? 1 : 0;
        unchecked {
            (s.yHigh, s.yLow) = (P_HIGH - s.yHigh - borrow, P_LOW - s.yLow);
        }
        _expectInvalid(ROUND, s);
    }

    function test_what_is_no_point_is_no_signature() public {
        G1Point memory s = signatureOf(ROUND);
        _expectInvalid(ROUND, G1Point(0, 0, 0, 0)); // infinity
        _expectInvalid(ROUND, G1Point(0, 0, 0, 2)); // on the curve, out of the subgroup
        _expectInvalid(ROUND, G1Point(s.xHigh, s.xLow, s.yHigh, s.yLow ^ 1)); // off the curve
        _expectInvalid(ROUND, G1Point(type(uint128).max, s.xLow, s.yHigh, s.yLow));
    }

    function test_coordinates_are_reduced() public {
        uint64[] memory rounds = publishedRounds();
        for (uint256 i = 0; i < rounds.length; ++i) {
            G1Point memory s = signatureOf(rounds[i]);
            unchecked {
                s.xLow += P_LOW;
                s.xHigh += P_HIGH + (s.xLow < P_LOW ? 1 : 0);
            }
            _expectInvalid(rounds[i], s);
        }
    }

    function testFuzz_no_other_point_is_a_signature(uint256 scalar) public {
        // Multiples of a signature lie in the group, so only the pairing tells them from it.
        scalar = bound(scalar, 2, type(uint128).max);
        (bool success, bytes memory product) = address(0x0c).staticcall(abi.encode(signatureOf(ROUND), scalar));
        vm.assertTrue(success);
        _expectInvalid(ROUND, abi.decode(product, (G1Point)));
    }

    function testFuzz_the_next_round_is_the_first_past_the_delay(uint256 time) public {
        time = bound(time, 0, 1 << 40);
        vm.warp(time);
        uint64 round = drand.nextRound();
        vm.assertGt(drand.timeOf(round), time + DELAY);
        vm.assertTrue(round == 1 || drand.timeOf(round - 1) <= time + DELAY);
    }

    function test_a_delay_of_two_slots_at_least() public {
        vm.expectRevert(abi.encodeWithSelector(DrandBeacon.DelayTooShort.selector, uint64(23)));
        this.newBeacon(23);
        vm.assertEq(uint256(new DrandBeacon(24).delay()), 24);
    }

    /// @dev A call of its own: a cheatcode stands in the place of `new`, and would itself be the call that has to
    /// revert.
    function newBeacon(uint64 delay) external {
        new DrandBeacon(delay);
    }

    function test_the_network_is_quicknet() public view {
        string memory info = vm.readFile("fixtures/vectors/drand.json");
        string memory hash = vm.parseJsonString(info, ".networks.quicknet.info.hash");
        vm.assertEq(drand.CHAIN_HASH(), bytes32(vm.parseBytes(string.concat("0x", hash))));
        vm.assertEq(uint256(drand.GENESIS()), vm.parseJsonUint(info, ".networks.quicknet.info.genesis_time"));
        vm.assertEq(uint256(drand.PERIOD()), vm.parseJsonUint(info, ".networks.quicknet.info.period"));
    }

    function _expectInvalid(uint64 round, G1Point memory signature) private {
        vm.expectRevert(abi.encodeWithSelector(Quicknet.InvalidSignature.selector, round));
        // A precompile that refuses its input takes all the gas that it is given.
        drand.submit{gas: 1_000_000}(round, signature);
        vm.assertFalse(drand.recorded(round));
    }
}

contract PrevrandaoBeaconTest is BlockBeaconBase {
    PrevrandaoBeacon private randao;

    function _newBeacon() internal override returns (IBeacon) {
        randao = new PrevrandaoBeacon();
        return randao;
    }

    function test_the_round_is_two_blocks_ahead_and_has_no_seed_before() public {
        uint64 round = randao.nextRound();
        vm.assertEq(uint256(round), block.number + 2);
        vm.roll(round - 1);
        vm.expectRevert(abi.encodeWithSelector(IBeacon.RoundNotReached.selector, round));
        randao.record(round);
        vm.expectRevert(abi.encodeWithSelector(IBeacon.RoundNotRecorded.selector, round));
        randao.seed(round);
    }

    function testFuzz_the_seed_is_of_the_block_that_records_and_stays(uint256 first, uint256 second) public {
        uint64 round = randao.nextRound();
        vm.roll(round);
        vm.prevrandao(first);
        bytes32 expected = keccak256(abi.encodePacked(first, round));
        vm.expectEmit(address(randao));
        emit IBeacon.Recorded(round, expected);
        randao.record(round);
        vm.roll(round + 1);
        vm.prevrandao(second);
        randao.record(round);
        vm.assertEq(randao.seed(round), expected);
    }

    function test_rounds_recorded_in_one_block_differ() public {
        vm.prevrandao(uint256(7));
        randao.record(998);
        randao.record(999);
        vm.assertNotEq(randao.seed(998), randao.seed(999));
    }

    function test_the_market_draws_by_it() public {
        _toCommitted();
        uint64 round = proofs.proof(id).round;
        vm.roll(round);
        vm.prevrandao(uint256(42));
        seats.openClaims(id);
        vm.assertEq(seats.seating(id).seed, keccak256(abi.encodePacked(uint256(42), round)));
    }

    function test_a_task_from_its_fee_to_its_settlement() public {
        _live();
    }
}
