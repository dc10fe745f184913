// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {MerkleBranch} from "../../../contracts/commitments/MerkleBranch.sol";
import {Descriptor} from "../../../contracts/dispute/Descriptor.sol";
import {DisputeGame, SlotProof} from "../../../contracts/dispute/DisputeGame.sol";
import {OneStep} from "../../../contracts/dispute/OneStep.sol";
import {Opening, Openings} from "../../../contracts/dispute/Opening.sol";
import {Level, Position} from "../../../contracts/dispute/Position.sol";
import {Walk} from "../../../contracts/dispute/Walk.sol";
import {StartParams} from "../../../contracts/interfaces/IDisputeGame.sol";
import {NaiveTree} from "../commitments/NaiveTree.sol";
import {GameTest} from "./GameTest.sol";

/// @notice Moves that break a rule: each reverts with its own error and leaves the dispute where it was.
contract AttacksTest is GameTest {
    uint64 private constant STEP = FIRST_STEP + 1;

    // --- openings ---

    function _refuseOpen(bytes memory payload, bytes memory reason) private {
        vm.prank(asserter);
        vm.expectRevert(reason);
        game.open(id, p, payload);
    }

    function _refusePick(uint256 index, bytes memory payload, bytes memory reason) private {
        vm.prank(challenger);
        vm.expectRevert(reason);
        game.pick(id, p, index, payload);
    }

    function _refuseLengths(uint256 expected) private {
        _refuseOpen(
            new bytes(expected + 1), abi.encodeWithSelector(Walk.WrongPayloadLength.selector, expected + 1, expected)
        );
        if (expected == 0) return;
        _refuseOpen(
            new bytes(expected - 1), abi.encodeWithSelector(Walk.WrongPayloadLength.selector, expected - 1, expected)
        );
        _refuseOpen("", abi.encodeWithSelector(Walk.WrongPayloadLength.selector, 0, expected));
    }

    function test_payload_of_another_length() public {
        _start(_replay(2));
        _refuseLengths(32);
        _open();
        _pick(1);
        _refuseLengths(160);
        _open();
        _pick(3);
        _describe();
        _refuseLengths(64);
        _open();
        _pick(1);
        _refuseLengths(256);
    }

    function test_values_of_another_length() public {
        _start(_replay(2));
        _toNode(1);
        _toElement(0);
        _refuseLengths(8);
        setUpAgain();
        _start(_replay(2));
        _toNode(2);
        _toElement(0);
        _refuseLengths(8);
    }

    function test_sums_of_another_length() public {
        _start(_distance(1, 0));
        _refuseLengths(96);
    }

    /// @dev The toy is the same; only a fresh dispute is wanted.
    function setUpAgain() private {
        game = new DisputeGame(address(resolver), game.oneStep());
    }

    function test_padding_is_not_shown() public {
        _start(_replay(2));
        _open();
        _pick(1);
        bytes memory payload = _payload(p);
        vm.assertEq(payload.length, 160);
        _refuseOpen(
            abi.encodePacked(payload, NaiveTree.PADDING),
            abi.encodeWithSelector(Walk.WrongPayloadLength.selector, 192, 160)
        );
        _open();
        _refusePick(5, opened, abi.encodeWithSelector(Walk.NoSuchPart.selector, 5, 5));
    }

    function test_garbage_in_the_padding_of_a_state() public {
        bytes32[] memory roots = new bytes32[](4);
        for (uint256 i = 0; i < 3; i++) {
            roots[i] = _slotRoots(FIRST_STEP + 2)[i];
        }
        roots[3] = keccak256("garbage");
        StartParams memory s = _replay(2);
        s.end = keccak256(abi.encodePacked(uint8(3), uint32(3), NaiveTree.tree(roots)));
        _start(s);
        _open();
        _pick(1);
        _open();
        Position memory next = walk.pickState(p);
        vm.prank(challenger);
        game.pickState(id, p);
        p = next;
        _refuseOpen(
            abi.encodePacked(_header(), roots), abi.encodeWithSelector(Walk.WrongPayloadLength.selector, 128, 96)
        );
        // And nothing else hashes to it.
        _refuseOpen(_payload(p), abi.encodeWithSelector(Walk.WrongOpening.selector));
    }

    /// @dev A subtree of a tensor of 19 leaves that holds the last three: its fourth leaf is padding.
    function test_garbage_in_the_padding_of_a_tensor() public {
        bytes32[] memory leaves = new bytes32[](3);
        for (uint256 i = 0; i < 3; i++) {
            leaves[i] = keccak256(abi.encode(i));
        }
        bytes memory row = abi.encodePacked(leaves);
        Position memory q;
        q.level = Level.LEAVES;
        q.height = 2;
        q.count = 19;
        q.lo = 16;
        q.claimed = NaiveTree.tree(leaves);
        walk.open(q, row, 0);
        vm.expectRevert(abi.encodeWithSelector(Walk.WrongPayloadLength.selector, 128, 96));
        walk.open(q, abi.encodePacked(row, NaiveTree.PADDING), 0);
        q.claimed = keccak256(
            abi.encodePacked(
                uint8(1),
                keccak256(abi.encodePacked(uint8(1), leaves[0], leaves[1])),
                keccak256(abi.encodePacked(uint8(1), leaves[2], NaiveTree.PADDING ^ bytes32(uint256(1))))
            )
        );
        vm.expectRevert(Walk.WrongOpening.selector);
        walk.open(q, row, 0);
    }

    function test_garbage_past_the_end_of_a_tensor() public {
        outputs[STEP][3].push(7);
        _advance(STEP);
        _start(_replay(2));
        _toNode(3);
        _describe();
        _open();
        _pick(1);
        _refuseOpen(_payload(p), abi.encodeWithSelector(Walk.DirtyLeaf.selector));
    }

    function testFuzz_garbage_anywhere_past_the_end_of_a_tensor(uint256 words, uint256 spoiled) public {
        words = bound(words, 1, 63);
        spoiled = bound(spoiled, 4 * words, 255);
        bytes memory leaf = new bytes(256);
        leaf[spoiled] = 0x80;
        Position memory q;
        q.level = Level.LEAF;
        q.hi = uint64(words);
        q.claimed = keccak256(abi.encodePacked(uint8(0), leaf));
        vm.expectRevert(Walk.DirtyLeaf.selector);
        walk.open(q, leaf, 0);
        // The same byte is data if the tensor reaches so far.
        q.hi = uint64(spoiled / 4 + 1);
        walk.open(q, leaf, 0);
    }

    function test_levels_that_cannot_be_entered_are_skipped() public view {
        Position memory q;
        q.level = Level.LEAF;
        q.hi = 1;
        q.terms = 2;
        q.instructions = 1;
        q.opening = keccak256(new bytes(256));
        vm.assertTrue(walk.pick(q, 0, new bytes(256)).level == Level.TERMS);
        q.terms = 1;
        vm.assertTrue(walk.pick(q, 0, new bytes(256)).level == Level.ONE_STEP);
        q.instructions = 2;
        vm.assertTrue(walk.pick(q, 0, new bytes(256)).level == Level.BODY);
    }

    function test_children_that_hash_to_something_else() public {
        _start(_replay(2));
        _toNode(3);
        _describe();
        bytes memory payload = _payload(p);
        payload[0] ^= 0x01;
        _refuseOpen(payload, abi.encodeWithSelector(Walk.WrongOpening.selector));
        _open();
        _pick(0);
        payload = _payload(p);
        payload[0] ^= 0x01;
        _refuseOpen(payload, abi.encodeWithSelector(Walk.WrongOpening.selector));
    }

    function test_body_that_ends_elsewhere() public {
        _start(_replay(2));
        _toNode(2);
        _toElement(0);
        bytes memory payload = _payload(p);
        payload[7] ^= 0x01;
        _refuseOpen(payload, abi.encodeWithSelector(Walk.WrongOpening.selector));
    }

    function test_sums_that_add_up_to_something_else() public {
        _start(_distance(1, 10));
        _refuseOpen(
            abi.encodePacked(uint256(5), uint256(4), uint256(0)), abi.encodeWithSelector(Walk.WrongOpening.selector)
        );
        // Modulo 2^256 these are 10; saturated they are infinite.
        _refuseOpen(
            abi.encodePacked(type(uint256).max, uint256(11), uint256(0)),
            abi.encodeWithSelector(Walk.WrongOpening.selector)
        );
    }

    // --- picks ---

    function test_picks_beyond_the_parts() public {
        _start(_replay(2));
        _open();
        _refusePick(2, opened, abi.encodeWithSelector(Walk.NoSuchPart.selector, 2, 2));
        _refusePick(type(uint256).max, opened, abi.encodeWithSelector(Walk.NoSuchPart.selector, type(uint256).max, 2));
        _pick(1);
        _open();
        _pick(2);
        _describe();
        _open();
        // Three elements: the fourth word of the leaf is filling.
        _refusePick(3, opened, abi.encodeWithSelector(Walk.NoSuchPart.selector, 3, 3));
        _pick(2);
        _open();
        _refusePick(2, "", abi.encodeWithSelector(Walk.NoSuchPart.selector, 2, 2));
        _refusePick(0, opened, abi.encodeWithSelector(Walk.WrongPayloadLength.selector, 8, 0));
    }

    function test_pick_that_repeats_something_else() public {
        _start(_replay(2));
        _open();
        bytes memory other = bytes.concat(opened);
        other[0] ^= 0x01;
        _refusePick(0, other, abi.encodeWithSelector(Walk.NotOpened.selector));
        _refusePick(0, "", abi.encodeWithSelector(Walk.NotOpened.selector));
        _refusePick(0, abi.encodePacked(opened, uint8(0)), abi.encodeWithSelector(Walk.NotOpened.selector));
    }

    function test_state_is_picked_from_a_trace_only() public {
        _start(_replay(2));
        _open();
        vm.prank(challenger);
        vm.expectRevert(abi.encodeWithSelector(Walk.WrongLevel.selector, Level.STEPS));
        game.pickState(id, p);
    }

    // --- descriptors and proofs ---

    function test_moves_of_another_level() public {
        _start(_replay(2));
        bytes32[] memory none = new bytes32[](0);
        Opening[] memory openings = new Opening[](1);
        bytes memory header = _header();
        bytes memory wrong = abi.encodeWithSelector(Walk.WrongLevel.selector, Level.STEPS);
        vm.startPrank(asserter);
        vm.expectRevert(wrong);
        game.describe(id, p, none, "", 0);
        vm.expectRevert(wrong);
        game.describeSlot(id, p, header, none, "");
        vm.expectRevert(wrong);
        game.proveStep(id, p, "", "", openings);
        vm.expectRevert(wrong);
        game.proveSlot(id, p, SlotProof(header, "", none, none));
        vm.expectRevert(wrong);
        game.proveSum(id, p, "", openings[0], openings[0]);
        vm.stopPrank();
        _toNode(0);
        _refuseOpen("", abi.encodeWithSelector(Walk.WrongLevel.selector, Level.NODE));
        _toElement(0);
        _refuseOpen("", abi.encodeWithSelector(Walk.WrongLevel.selector, Level.ONE_STEP));
    }

    function _refuseDescribe(bytes32[] memory branch, uint256 node, bytes32 tree, bytes memory reason) private {
        bytes memory descriptor = nodes[node];
        vm.prank(asserter);
        vm.expectRevert(reason);
        game.describe(id, p, branch, descriptor, tree);
    }

    function test_wrong_descriptor_branch_or_tree() public {
        _start(_replay(2));
        _toNode(2);
        bytes32 tree = NaiveTree.tree(NaiveTree.leafHashes(outputs[STEP][2]));
        bytes32[] memory branch = NaiveTree.branch(_nodeHashes(), 2);
        bytes32[] memory other = NaiveTree.branch(_nodeHashes(), 3);
        _refuseDescribe(branch, 3, tree, abi.encodeWithSelector(Walk.WrongDescriptor.selector));
        _refuseDescribe(other, 3, tree, abi.encodeWithSelector(Walk.WrongDescriptor.selector));
        _refuseDescribe(other, 2, tree, abi.encodeWithSelector(Walk.WrongDescriptor.selector));
        _refuseDescribe(branch, 2, keccak256("tree"), abi.encodeWithSelector(Walk.WrongOpening.selector));
        _refuseDescribe(
            new bytes32[](2), 2, tree, abi.encodeWithSelector(MerkleBranch.WrongBranchLength.selector, 2, 3)
        );
    }

    function _refuseSlot(SlotProof memory proof, bytes memory reason) private {
        vm.prank(asserter);
        vm.expectRevert(reason);
        game.proveSlot(id, p, proof);
    }

    function test_wrong_slot_proofs() public {
        _start(_replay(2));
        _toSlot(1);
        SlotProof memory proof = _slotProof(1);
        proof.descriptor = slots[0];
        _refuseSlot(proof, abi.encodeWithSelector(Walk.WrongDescriptor.selector));
        proof = _slotProof(0);
        _refuseSlot(proof, abi.encodeWithSelector(Walk.WrongDescriptor.selector));
        proof = _slotProof(1);
        proof.traceBranch[1] ^= bytes32(uint256(1));
        _refuseSlot(proof, abi.encodeWithSelector(DisputeGame.WrongSlot.selector));
        proof = _slotProof(1);
        proof.traceBranch = new bytes32[](4);
        _refuseSlot(proof, abi.encodeWithSelector(MerkleBranch.WrongBranchLength.selector, 4, 3));
        proof = _slotProof(1);
        proof.header[0] = 0x01;
        _refuseSlot(proof, abi.encodeWithSelector(Descriptor.WrongHeader.selector));
    }

    function _refuseStep(bytes memory values, Opening[] memory openings, bytes memory reason) private {
        bytes memory descriptor = nodes[p.node];
        vm.prank(asserter);
        vm.expectRevert(reason);
        game.proveStep(id, p, descriptor, values, openings);
    }

    function test_wrong_openings_of_a_step() public {
        _start(_replay(2));
        _toNode(3);
        _toElement(64);
        Opening[] memory openings = new Opening[](1);
        openings[0] = _openState(STEP, 1, 0);
        _refuseStep("", openings, abi.encodeWithSelector(Openings.WrongInclusionProof.selector));
        openings[0] = _openState(FIRST_STEP, 1, 1);
        _refuseStep("", openings, abi.encodeWithSelector(Openings.WrongInclusionProof.selector));
        openings[0] = _openState(STEP, 1, 1);
        openings[0].leaf[0] ^= 0x01;
        _refuseStep("", openings, abi.encodeWithSelector(Openings.WrongInclusionProof.selector));
        openings[0] = _openState(STEP, 1, 1);
        openings[0].leaf = new bytes(255);
        _refuseStep("", openings, abi.encodeWithSelector(Openings.WrongLeafLength.selector, 255));
        openings[0] = _openState(STEP, 1, 1);
        openings[0].listCount = 1;
        _refuseStep("", openings, abi.encodeWithSelector(MerkleBranch.IndexOutOfRange.selector, 1, 1));
        openings[0].listCount = 4;
        _refuseStep("", openings, abi.encodeWithSelector(Openings.WrongInclusionProof.selector));
        openings[0].listCount = 5;
        _refuseStep("", openings, abi.encodeWithSelector(MerkleBranch.WrongBranchLength.selector, 2, 3));
        _refuseStep("", new Opening[](0), abi.encodeWithSelector(OneStep.WrongNumberOfOpenings.selector, 0, 1));
        Opening[] memory two = new Opening[](2);
        two[0] = _openState(STEP, 1, 1);
        two[1] = two[0];
        _refuseStep("", two, abi.encodeWithSelector(OneStep.WrongNumberOfOpenings.selector, 2, 1));
        openings[0] = _openState(STEP, 1, 1);
        _refuseStep(hex"00000000", openings, abi.encodeWithSelector(OneStep.WrongValues.selector));
    }

    function test_wrong_values_or_descriptor_of_a_step() public {
        _start(_replay(2));
        _toNode(2);
        _toElement(0);
        _open();
        bytes memory values = opened;
        _pick(0);
        Opening[] memory openings = new Opening[](1);
        openings[0] = _openOutput(STEP, 1, 0);
        _refuseStep("", openings, abi.encodeWithSelector(OneStep.WrongValues.selector));
        values[7] ^= 0x01;
        _refuseStep(values, openings, abi.encodeWithSelector(OneStep.WrongValues.selector));
        values[7] ^= 0x01;
        bytes memory other = nodes[1];
        vm.prank(asserter);
        vm.expectRevert(OneStep.WrongDescriptor.selector);
        game.proveStep(id, p, other, values, openings);
    }

    function test_wrong_openings_of_a_sum() public {
        _start(_distance(1, 0));
        _open(new bytes(96));
        _pick(0);
        _describeSlot();
        Opening memory x = _openState(FIRST_STEP + 2, 0, 0);
        Opening memory y = _openState(FIRST_STEP, 0, 0);
        bytes memory descriptor = slots[0];
        bytes memory other = slots[1];
        vm.startPrank(asserter);
        vm.expectRevert(Openings.WrongInclusionProof.selector);
        game.proveSum(id, p, descriptor, y, y);
        vm.expectRevert(Openings.WrongInclusionProof.selector);
        game.proveSum(id, p, descriptor, x, x);
        vm.expectRevert(Walk.WrongDescriptor.selector);
        game.proveSum(id, p, other, x, y);
        vm.stopPrank();
    }
}
