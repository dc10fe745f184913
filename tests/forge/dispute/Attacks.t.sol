// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Transition} from "../../../contracts/dispute/Transition.sol";
import {Descriptor, DisputeGame, DisputeStorage, GameTest, IOneStep, Level, MovePayload} from "./GameTest.sol";
import {NaiveTree, PackedReader, StartParams, Verb} from "./GameTest.sol";

/// @notice Moves that break a rule: each reverts with its own error and leaves the dispute where it was.
contract AttacksTest is GameTest {
    function _lie(uint256 node, uint256 element) private {
        outputs[_key(1, STEP)][node][element] ^= 1;
        _advance(_key(1, STEP));
        if (node == 0 || node == 1 || node == 5) states[_key(1, STEP + 1)][0][0] ^= 1;
        _start(_replay(2));
    }

    function _lieInState() private {
        states[_key(1, STEP + 1)][1][0] ^= 1;
        _start(_replay(2));
    }

    /// @dev About a leaf of the second slot.
    function _lieInSum() private {
        delete slotSums[0];
        delete slotSums[1];
        _sum(3);
        _sumLeaves(1);
        (slotSums[1][1], leafSums[1][1]) = (slotSums[1][1] + 1, leafSums[1][1] + 1);
        _start(_distance(3));
    }

    function _moves(uint256 count) private {
        for (uint256 i = 0; i < count; i++) {
            _move();
        }
    }

    function _error(bytes4 selector) private pure returns (bytes memory) {
        return abi.encodeWithSelector(selector);
    }

    function _error(bytes4 selector, uint256 argument) private pure returns (bytes memory) {
        return abi.encodeWithSelector(selector, argument);
    }

    function _length(uint256 actual, uint256 expected) private pure returns (bytes memory) {
        return abi.encodeWithSelector(MovePayload.WrongPayloadLength.selector, actual, expected);
    }

    function _cut(bytes memory data, uint256 bytes_) private pure returns (bytes memory result) {
        result = new bytes(data.length - bytes_);
        for (uint256 i = 0; i < result.length; i++) {
            result[i] = data[i];
        }
    }

    // --- lengths ---

    function test_a_slot_of_another_component_opens_nothing() public {
        _lieInSum();
        (bytes memory call,) = _describeSlot(0);
        _refuse(asserter, abi.encodePacked(call, bytes32(0)), _error(PackedReader.LeftOver.selector, 32));
    }

    function test_a_move_that_ends_early() public {
        _lie(3, 65);
        _moves(1);
        (bytes memory call,) = _prepare();
        for (uint256 length = 4; length < 300; length += 37) {
            bytes memory short = _cut(call, call.length - length);
            _refuse(challenger, short);
        }
        _agree();
    }

    // --- what is opened ---

    /// @dev Whoever opens what the other side has said would agree.
    function test_what_the_other_side_said_is_no_opening() public {
        _lie(2, 0);
        _moves(1);
        // The asserter's trace lies open; the challenger describes node 2 with the asserter's words.
        challengerVersion = 0;
        (bytes memory call,) = _describe(2);
        challengerVersion = 1;
        _refuse(challenger, call, _error(MovePayload.Agreed.selector));
        _move();
        // The challenger's leaf lies open; the asserter's body ends in the challenger's word.
        (call,) = _prepare();
        _endIn(call, outputs[_key(1, STEP)][2][0]);
        _refuse(asserter, call, _error(MovePayload.Agreed.selector));
    }

    function _endIn(bytes memory call, uint32 word) private pure {
        for (uint256 i = 0; i < 4; i++) {
            call[call.length - 4 + i] = bytes1(uint8(word >> (24 - 8 * i)));
        }
    }

    function test_children_that_the_other_side_said() public {
        _lie(3, 65);
        _moves(1);
        challengerVersion = 0;
        (bytes memory call,) = _describe(3);
        challengerVersion = 1;
        _refuse(challenger, call, _error(MovePayload.Agreed.selector));
        _move();
        asserterVersion = 1;
        (call,) = _answerLeaf(1);
        asserterVersion = 0;
        _refuse(asserter, call, _error(MovePayload.Agreed.selector));
    }

    function test_accumulators_that_end_where_the_other_side_said() public {
        _lie(1, 0);
        _moves(2);
        (bytes memory call,) = _prepare();
        _endIn(call, outputs[_key(1, STEP)][1][0]);
        _refuse(asserter, call, _error(MovePayload.Agreed.selector));
    }

    function test_sums_that_add_up_to_what_the_other_side_said() public {
        _lieInSum();
        leafSums[0][0] += 1;
        (bytes memory call,) = _prepare();
        _refuse(asserter, call, _error(MovePayload.Agreed.selector));
    }

    function test_a_state_that_does_not_lead_to_the_own_root() public {
        _lieInState();
        _move();
        (bytes memory call,) = _prepare();
        call[call.length - 1] ^= 0x01;
        _refuse(challenger, call, _error(Transition.WrongOpening.selector));
    }

    function test_garbage_in_the_padding_of_a_state() public {
        bytes32[] memory roots = new bytes32[](4);
        for (uint256 i = 0; i < 3; i++) {
            roots[i] = _slotRoots(_key(1, STEP + 1))[i];
        }
        roots[3] = keccak256("garbage");
        StartParams memory s = _replay(2);
        bytes32 root = keccak256(abi.encodePacked(uint8(3), uint32(3), NaiveTree.tree(roots)));
        params = s;
        // The challenger claims a state with a fourth slot.
        p = At(Level.STEPS, 0, 6, FIRST_STEP, STEP + 1, 0, s.start, abi.encodePacked(_stateRoot(STEP), root));
        number = resolver.start(game, s, _header(), p.opened);
        isAsserterOnTurn = true;
        facts.id = keccak256(abi.encode(block.chainid, address(game), number, s));
        p.frame = keccak256(abi.encodePacked(_origin(), s.constants));
        _agree();
        _move();
        (bytes memory call,) = _prepare();
        // Its fourth slot cannot be shown, and nothing else hashes to it.
        _refuse(challenger, abi.encodePacked(call, roots[3]), _length(128, 96));
        _refuse(challenger, call, _error(Transition.WrongOpening.selector));
    }

    function test_a_witness_of_something_else() public {
        _lie(5, 0);
        for (uint256 i = 0; i < 5; i++) {
            (bytes memory call,) = _prepare();
            call[4 + 57] ^= 0x01;
            _refuse(_onTurn(), call);
            _agree();
            _move();
        }
        _expectResult(true);
    }

    // --- moves of another level ---

    function _refuseVerbs(bytes4[] memory selectors) private {
        bytes memory wrong = abi.encodeWithSelector(Transition.WrongLevel.selector, p.level);
        for (uint256 i = 0; i < selectors.length; i++) {
            bytes memory rest =
                _isWhole(selectors[i]) ? abi.encodePacked(_openingRoot(), new bytes(400)) : new bytes(400);
            _refuse(_onTurn(), _call(selectors[i], 0, rest), wrong);
        }
    }

    /// @dev All functions but those named, from the highest bit on as in `all`.
    function _allBut(uint256 allowed) private view returns (bytes4[] memory selectors) {
        bytes4[10] memory all = [
            game.answer.selector,
            game.describe.selector,
            game.openState.selector,
            game.unfold.selector,
            game.openBody.selector,
            game.describeSlot.selector,
            game.proveStep.selector,
            game.proveSlot.selector,
            game.proveSum.selector,
            game.show.selector
        ];
        selectors = new bytes4[](10);
        uint256 count = 0;
        for (uint256 i = 0; i < 10; i++) {
            if ((allowed >> (9 - i)) & 1 == 0) selectors[count++] = all[i];
        }
        assembly {
            mstore(selectors, count)
        }
    }

    function test_moves_of_another_level() public {
        _lie(5, 0);
        _refuseVerbs(_allBut(0x200)); // steps: answer
        _moves(1);
        _refuseVerbs(_allBut(0x181)); // nodes: describe, openState, show
        _moves(1);
        _refuseVerbs(_allBut(0x048)); // leaf: unfold, proveStep
        _moves(1);
        _refuseVerbs(_allBut(0x028)); // terms: openBody, proveStep; nothing lies below a part of one
        _moves(1);
        _refuseVerbs(_allBut(0x008)); // body: proveStep
        setUp();
        _lie(3, 65);
        _moves(2);
        _refuseVerbs(_allBut(0x200)); // leaves: answer
        setUp();
        _lieInState();
        _moves(2);
        _refuseVerbs(_allBut(0x004)); // state: proveSlot
    }

    function test_moves_of_another_level_of_a_sum() public {
        _lieInSum();
        _refuseVerbs(_allBut(0x010)); // slots: describeSlot
        _moves(1);
        _refuseVerbs(_allBut(0x002)); // leaves: proveSum
    }

    /// @dev A fold of one instruction has no body to be opened.
    function test_a_body_of_one_instruction_is_not_opened() public {
        _lie(1, 0);
        _moves(3);
        (bytes memory call,) = _openBody(2);
        _refuse(challenger, call, abi.encodeWithSelector(Transition.WrongLevel.selector, Level.BODY));
    }

    function test_an_element_of_one_instruction_is_not_unfolded() public {
        _lie(4, 0);
        _moves(2);
        bytes memory rest = abi.encodePacked(facts.beforeNode, _outline(), new bytes(4));
        _refuse(
            asserter,
            _call(game.unfold.selector, 0, rest),
            abi.encodeWithSelector(Transition.WrongLevel.selector, Level.BODY)
        );
    }

    // --- facts, descriptors and proofs ---

    /// @dev Every byte of what a move says about the past, and of the branch and the descriptor, is bound.
    function _refuseChanges(bytes memory call, uint256 from, uint256 to) private {
        for (uint256 offset = from; offset < to; offset += 7) {
            call[offset] ^= 0x01;
            _refuse(_onTurn(), call);
            call[offset] ^= 0x01;
        }
        _agree();
    }

    function test_wrong_facts_branch_or_descriptor() public {
        _lie(2, 0);
        _moves(1);
        (bytes memory call, At memory next) = _prepare();
        _refuseChanges(call, 4 + 57, call.length - next.opened.length);
        call[4 + 57 + 32 * 4 + 40] ^= 0x01;
        _refuse(challenger, call, _error(Transition.WrongFrame.selector));
        call[4 + 57 + 32 * 4 + 40] ^= 0x01;
        call[call.length - 257] ^= 0x01;
        _refuse(challenger, call, _error(Transition.WrongDescriptor.selector));
        _move();
        (call, next) = _prepare();
        _refuseChanges(call, 4 + 57 + 32 * 4, call.length - next.opened.length);
    }

    /// @dev A bit of the facts from byte `offset` of the move on; with the right ones the move is made.
    function _refuseFacts(uint256 offset) private {
        (bytes memory call,) = _prepare();
        call[offset] ^= 0x01;
        _refuse(_onTurn(), call, _error(Transition.WrongFrame.selector));
        _move();
    }

    function test_other_facts_than_the_agreed_ones() public {
        _lieInState();
        _moves(1);
        _refuseFacts(4 + 57 + 32 + 112); // openState: opening, header
        vm.assertTrue(p.level == Level.STATE);
        setUp();
        _lie(5, 0);
        _moves(3);
        _refuseFacts(4 + 57 + 36); // openBody: piece
        vm.assertTrue(p.level == Level.BODY);
        setUp();
        _lieInSum();
        _refuseFacts(4 + 57 + 3 * 32 + 112); // describeSlot: sum and its branch, header
        vm.assertTrue(p.level == Level.SUM_LEAVES);
    }

    function test_descriptor_of_another_node() public {
        _lie(2, 0);
        _moves(1);
        (bytes memory call,) = _describe(3);
        // Node 3's branch and descriptor for node 2.
        bytes memory rest = abi.encodePacked(_stepFacts(), _branch(_nodeHashes(), 3), _sized(nodes[3]), new bytes(256));
        _refuse(challenger, _call(game.describe.selector, 2, rest), _error(Transition.WrongDescriptor.selector));
        rest = abi.encodePacked(_stepFacts(), _branch(_nodeHashes(), 2), _sized(nodes[3]), new bytes(256));
        _refuse(challenger, _call(game.describe.selector, 2, rest), _error(Transition.WrongDescriptor.selector));
        call = abi.encodePacked(_stepFacts(), _branch(_nodeHashes(), 2), uint16(60000), nodes[2], new bytes(256));
        _refuse(challenger, _call(game.describe.selector, 2, call));
    }

    function test_an_index_where_nothing_is_picked() public {
        _lieInState();
        _move();
        (bytes memory call,) = _prepare();
        call[4 + 56] = 0x01;
        _refuse(challenger, call, _error(DisputeGame.WrongIndex.selector));
    }

    function test_wrong_slot_proofs() public {
        _lieInState();
        _moves(2);
        (bytes memory call,) = _prepare();
        // All behind the witness is bound: facts, descriptor, root and branch.
        _refuseChanges(call, 4 + 57 + 3 * 32, call.length);
        _refuse(asserter, abi.encodePacked(call, uint8(0)), _error(PackedReader.LeftOver.selector, 1));
        _refuse(asserter, _cut(call, 32), _error(PackedReader.MissingBytes.selector, 32));
        call[call.length - 1] ^= 0x01;
        _refuse(asserter, call, _error(Transition.WrongTrace.selector));
        call[call.length - 1] ^= 0x01;
        // A slot about which both sides agree: what was produced is what stands there.
        bytes memory other = _call(game.proveSlot.selector, 0, _slotProof(0));
        _refuse(asserter, other, _error(DisputeGame.Upheld.selector));
        _send(asserter, call);
        _expectResult(true);
    }

    function test_wrong_step_proofs() public {
        _lie(3, 3);
        _moves(3);
        (bytes memory call,) = _prepare();
        vm.assertTrue(p.level == Level.LEAF && !isAsserterOnTurn);
        // The liar's own word: executed it is what the other side said.
        _refuse(challenger, call, _error(DisputeGame.Upheld.selector));
        _refuse(challenger, abi.encodePacked(call, uint8(0)), _error(PackedReader.LeftOver.selector, 1));
        call[call.length - 1] ^= 0x01;
        _refuse(challenger, call);
        _agree();
    }

    function test_step_proof_of_other_facts() public {
        _lie(5, 0);
        _moves(4);
        (bytes memory call,) = _prepare();
        // Behind the results that lie open.
        call[4 + 57 + 8 + 1 + 32 * 3 + 2] ^= 0x01;
        vm.prank(asserter);
        (bool success, bytes memory reason) = address(game).call(call);
        vm.assertFalse(success);
        vm.assertEq(bytes32(bytes4(reason)), bytes32(IOneStep.WrongFacts.selector));
    }

    function test_wrong_sum_proofs() public {
        _sum(1);
        _sumLeaves(0);
        (slotSums[1][0], leafSums[1][0]) = (slotSums[1][0] + 1, leafSums[1][0] + 1);
        (asserterVersion, challengerVersion) = (1, 0);
        _start(_distance(1));
        _moves(1);
        (bytes memory call,) = _prepare();
        _refuseChanges(call, 4 + 57 + 32, call.length);
        vm.expectEmit(address(game));
        emit DisputeStorage.Refuted(number, Verb.PROVE_SUM, abi.encodePacked(leafSums[1][0], leafSums[0][0]));
        _send(challenger, call);
        _expectResult(false);
    }
}
