// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Descriptor} from "../../../contracts/dispute/Descriptor.sol";
import {DisputeGame, SlotProof} from "../../../contracts/dispute/DisputeGame.sol";
import {IOneStep} from "../../../contracts/dispute/IOneStep.sol";
import {Opening} from "../../../contracts/dispute/Opening.sol";
import {Position} from "../../../contracts/dispute/Position.sol";
import {StartParams} from "../../../contracts/interfaces/IDisputeGame.sol";
import {GameTest} from "./GameTest.sol";

/// @notice Who may start, who may move, and from where: everything else reverts, and nothing moves after the end.
contract TurnsTest is GameTest {
    uint64 private constant STEP = FIRST_STEP + 1;

    // --- start ---

    function test_nobody_but_the_market_starts() public {
        StartParams memory s = _replay(2);
        bytes memory header = _header();
        vm.expectRevert(abi.encodeWithSelector(DisputeGame.NotMarket.selector, address(this)));
        game.start(s, header);
    }

    function _refuseStart(StartParams memory s, bytes4 selector) private {
        bytes memory header = _header();
        vm.expectPartialRevert(selector);
        resolver.start(game, s, header);
    }

    function test_zero_hashes_mean_nothing() public {
        StartParams memory s = _replay(2);
        s.start = 0;
        _refuseStart(s, DisputeGame.ZeroHash.selector);
        s = _replay(2);
        s.end = 0;
        _refuseStart(s, DisputeGame.ZeroHash.selector);
        s = _replay(2);
        s.constants = 0;
        _refuseStart(s, DisputeGame.ZeroHash.selector);
        s = _replay(2);
        s.program = 0;
        _refuseStart(s, Descriptor.WrongHeader.selector);
        s = _replay(2);
        s.asserter = address(0);
        _refuseStart(s, DisputeGame.ZeroHash.selector);
        s = _replay(2);
        s.challenger = address(0);
        _refuseStart(s, DisputeGame.ZeroHash.selector);
        s = _distance(1, 0);
        s.x = 0;
        _refuseStart(s, DisputeGame.ZeroHash.selector);
        s = _distance(1, 0);
        s.y = 0;
        _refuseStart(s, DisputeGame.ZeroHash.selector);
    }

    function test_numbers_outside_of_their_range_do_not_start() public {
        StartParams memory s = _replay(2);
        s.steps = 0;
        _refuseStart(s, DisputeGame.InvalidStart.selector);
        s = _replay(2);
        s.clock = 0;
        _refuseStart(s, DisputeGame.InvalidStart.selector);
        s = _replay(2);
        s.kind = 0;
        _refuseStart(s, DisputeGame.InvalidStart.selector);
        s.kind = 4;
        _refuseStart(s, DisputeGame.InvalidStart.selector);
        s = _distance(0, 0);
        _refuseStart(s, DisputeGame.InvalidStart.selector);
        s = _distance(4, 0);
        _refuseStart(s, DisputeGame.InvalidStart.selector);
    }

    function test_header_of_another_program_does_not_start() public {
        StartParams memory s = _distance(1, 0);
        bytes memory header = _header();
        header[11] = 0x01;
        vm.expectPartialRevert(Descriptor.WrongHeader.selector);
        resolver.start(game, s, header);
        header = abi.encodePacked(_header(), uint8(0));
        s.program = keccak256(abi.encodePacked(uint8(6), header));
        vm.expectPartialRevert(Descriptor.WrongHeader.selector);
        resolver.start(game, s, header);
    }

    function test_zero_addresses_do_not_deploy() public {
        IOneStep step = game.oneStep();
        vm.expectRevert(DisputeGame.ZeroHash.selector);
        new DisputeGame(address(0), step);
        vm.expectRevert(DisputeGame.ZeroHash.selector);
        new DisputeGame(address(resolver), IOneStep(address(0)));
    }

    function test_ids_count_from_one() public {
        StartParams memory s = _replay(2);
        bytes memory header = _header();
        for (uint256 expected = 1; expected < 4; expected++) {
            vm.assertEq(resolver.start(game, s, header), expected);
            vm.assertEq(game.count(), expected);
        }
    }

    // --- turns ---

    function test_unknown_dispute() public {
        _start(_replay(2));
        bytes memory payload = _payload(p);
        vm.prank(asserter);
        vm.expectRevert(abi.encodeWithSelector(DisputeGame.UnknownDispute.selector, id + 1));
        game.open(id + 1, p, payload);
        vm.expectRevert(abi.encodeWithSelector(DisputeGame.UnknownDispute.selector, 0));
        game.timeout(0);
        vm.expectRevert(abi.encodeWithSelector(DisputeGame.UnknownDispute.selector, 0));
        game.positionHash(0);
        vm.expectRevert(abi.encodeWithSelector(DisputeGame.UnknownDispute.selector, 0));
        game.timeLeft(0);
    }

    function test_only_the_player_on_turn_moves() public {
        _start(_replay(2));
        bytes memory payload = _payload(p);
        vm.prank(challenger);
        vm.expectRevert(abi.encodeWithSelector(DisputeGame.NotOnTurn.selector, challenger));
        game.open(id, p, payload);
        vm.expectRevert(abi.encodeWithSelector(DisputeGame.NotOnTurn.selector, address(this)));
        game.open(id, p, payload);
        vm.prank(challenger);
        vm.expectRevert(abi.encodeWithSelector(DisputeGame.NotOnTurn.selector, challenger));
        game.pick(id, p, 0, "");
        _open();
        vm.prank(asserter);
        vm.expectRevert(abi.encodeWithSelector(DisputeGame.NotOnTurn.selector, asserter));
        game.open(id, p, payload);
        vm.prank(asserter);
        vm.expectRevert(abi.encodeWithSelector(DisputeGame.NotOnTurn.selector, asserter));
        game.pick(id, p, 0, payload);
        vm.expectRevert(abi.encodeWithSelector(DisputeGame.NotOnTurn.selector, address(this)));
        game.pick(id, p, 0, payload);
    }

    function testFuzz_stale_or_forged_position(uint256 field, uint256 bit) public {
        _start(_replay(2));
        Position memory other = p;
        bytes memory payload = _payload(p);
        // 18 fields after the level, none of which may differ in any of its bits.
        uint8[19] memory bits = [8, 8, 32, 64, 64, 255, 255, 255, 255, 255, 255, 64, 32, 64, 64, 64, 32, 8, 8];
        field = bound(field, 1, 18);
        bit = bound(bit, 0, bits[field] - 1);
        assembly {
            let place := add(other, mul(32, field))
            mstore(place, xor(mload(place), shl(bit, 1)))
        }
        vm.prank(asserter);
        vm.expectRevert(abi.encodeWithSelector(DisputeGame.StalePosition.selector, keccak256(abi.encode(other))));
        game.open(id, other, payload);
    }

    function test_position_of_an_earlier_move() public {
        _start(_replay(2));
        Position memory before = p;
        _open();
        _pick(1);
        bytes memory payload = _payload(before);
        vm.prank(asserter);
        vm.expectPartialRevert(DisputeGame.StalePosition.selector);
        game.open(id, before, payload);
    }

    /// @dev Bits that the ABI would cut off are part of the bytes that are hashed.
    function test_dirty_upper_bits_of_a_field() public {
        _start(_replay(2));
        bytes memory data = abi.encodeCall(DisputeGame.open, (id, p, _payload(p)));
        data[4 + 32 + 32 + 5] = 0x01;
        vm.prank(asserter);
        (bool success, bytes memory reason) = address(game).call(data);
        vm.assertFalse(success);
        vm.assertEq(bytes32(bytes4(reason)), bytes32(DisputeGame.StalePosition.selector));
    }

    // --- after the end ---

    function test_a_finished_dispute_accepts_nothing() public {
        _start(_replay(2));
        _toNode(4);
        _toElement(0);
        Opening[] memory openings = new Opening[](1);
        openings[0] = _openState(STEP, 2, 0);
        _prove("", openings);
        _expectAnswer(true);
        bytes memory finished = abi.encodeWithSelector(DisputeGame.Finished.selector, id);
        bytes32[] memory none = new bytes32[](0);
        vm.startPrank(asserter);
        vm.expectRevert(finished);
        game.proveStep(id, p, nodes[4], "", openings);
        vm.expectRevert(finished);
        game.open(id, p, "");
        vm.expectRevert(finished);
        game.describe(id, p, none, "", 0);
        vm.expectRevert(finished);
        game.describeSlot(id, p, "", none, "");
        vm.expectRevert(finished);
        game.proveSlot(id, p, SlotProof("", "", none, none));
        vm.expectRevert(finished);
        game.proveSum(id, p, "", openings[0], openings[0]);
        vm.stopPrank();
        vm.startPrank(challenger);
        vm.expectRevert(finished);
        game.pick(id, p, 0, "");
        vm.expectRevert(finished);
        game.pickState(id, p);
        vm.stopPrank();
        vm.warp(block.timestamp + 100 * CLOCK);
        vm.expectRevert(finished);
        game.timeout(id);
        _expectAnswer(true);
    }

    /// @dev A resolver that fails takes the move back with it: no end without the resolver knowing.
    function test_resolver_that_refuses_leaves_the_dispute_open() public {
        _start(_replay(2));
        resolver.refuse(true);
        vm.warp(block.timestamp + CLOCK);
        vm.expectRevert(bytes("refused"));
        game.timeout(id);
        resolver.refuse(false);
        game.timeout(id);
        _expectAnswer(false);
    }
}
