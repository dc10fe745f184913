// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IStarts} from "../../../contracts/dispute/IStarts.sol";
import {KIND_REFERENCE} from "../../../contracts/dispute/DisputeKinds.sol";
import {Vm} from "../Base.sol";
import {ClockExpiry, Descriptor, DisputeGame, DisputeStorage, GameTest, IOneStep, Level} from "./GameTest.sol";
import {MovePayload, PackedReader, StartParams, Verb} from "./GameTest.sol";

/// @notice Who may start, who may move, and from where: everything else reverts, and nothing moves after the end.
contract TurnsTest is GameTest {
    function setUp() public override {
        super.setUp();
        outputs[_key(1, STEP)][5][0] ^= 1;
        states[_key(1, STEP + 1)][0][0] ^= 1;
    }

    // --- start ---

    function test_nobody_but_the_market_starts() public {
        StartParams memory s = _replay(2);
        bytes memory header = _header();
        vm.expectRevert(abi.encodeWithSelector(DisputeGame.NotMarket.selector, address(this)));
        game.start(s, header, "");
    }

    /// @dev Starts with another value of one of the parameters, which are a word each, and a payload that would fit.
    function _tryStart(StartParams memory s, uint256 word, uint256 value) private returns (bytes4 reason) {
        bytes memory data = abi.encodeCall(game.start, (s, _header(), new bytes(s.kind == 1 ? 64 : 96)));
        assembly ("memory-safe") {
            mstore(add(add(data, 36), mul(32, word)), value)
        }
        vm.prank(address(resolver));
        (bool started, bytes memory answer) = address(game).call(data);
        if (!started) reason = bytes4(answer);
    }

    function _refuseStart(StartParams memory s, uint256 word, uint256 value, bytes4 reason) private {
        bytes4 found = _tryStart(s, word, value);
        vm.assertEq(bytes32(found), bytes32(reason), string.concat("word ", vm.toString(word)));
    }

    function test_zero_hashes_mean_nothing() public {
        _sum(1);
        uint8[5] memory words = [0, 1, 3, 8, 9]; // asserter, challenger, constants, start, end
        for (uint256 i = 0; i < words.length; ++i) {
            _refuseStart(_replay(2), words[i], 0, DisputeStorage.ZeroHash.selector);
        }
        _refuseStart(_replay(2), 2, 0, IStarts.WrongProgram.selector);
        _refuseStart(_distance(1), 10, 0, DisputeStorage.ZeroHash.selector); // x
        _refuseStart(_distance(1), 11, 0, DisputeStorage.ZeroHash.selector); // y
    }

    function test_numbers_outside_of_their_range_do_not_start() public {
        _sum(1);
        bytes4 invalid = IStarts.InvalidStart.selector;
        _refuseStart(_replay(2), 7, 0, invalid); // steps
        _refuseStart(_replay(2), 6, type(uint32).max, invalid); // the first step
        _refuseStart(_replay(2), 13, 0, invalid); // clock
        _refuseStart(_replay(2), 13, 2 ** 24, invalid);
        _refuseStart(_distance(1), 5, 0, invalid); // component
        _refuseStart(_distance(1), 5, 4, invalid);
        _refuseStart(_distance(1), 4, 0, invalid); // kind
        _refuseStart(_distance(1), 4, 5, invalid);
    }

    /// @dev The last steps that have numbers, the longest clock, a distance to a reference.
    function test_the_last_numbers_start() public {
        _sum(1);
        _refuseStart(_replay(2), 6, type(uint32).max - 1, 0);
        _refuseStart(_replay(2), 13, type(uint24).max, 0);
        _refuseStart(_distance(1), 4, KIND_REFERENCE, 0);
        vm.assertEq(game.disputes(), 3);
    }

    /// @dev The id hashes the parameters as they stand in the call: bits above a number would give a claim another one.
    function test_parameters_that_are_no_encoding_do_not_start() public {
        StartParams memory s = _replay(2);
        bytes memory payload = abi.encodePacked(_stateRoot(STEP), bytes32(uint256(1)));
        bytes memory call = abi.encodeCall(game.start, (s, _header(), payload));
        // Addresses, the kind, the component, the first step, the steps and the clock: the highest byte of their words.
        uint8[7] memory numbers = [0, 1, 4, 5, 6, 7, 13];
        for (uint256 i = 0; i < numbers.length; ++i) {
            uint256 first = 4 + 32 * uint256(numbers[i]);
            call[first] = 0x01;
            vm.prank(address(resolver));
            (bool started,) = address(game).call(call);
            vm.assertFalse(started);
            call[first] = 0;
        }
        vm.prank(address(resolver));
        (bool isStarted,) = address(game).call(call);
        vm.assertTrue(isStarted);
    }

    function test_header_of_another_program_does_not_start() public {
        StartParams memory s = _replay(2);
        bytes memory payload = new bytes(64);
        bytes memory header = _header();
        header[11] = 0x01;
        vm.expectRevert(IStarts.WrongProgram.selector);
        resolver.start(game, s, header, payload);
        header = abi.encodePacked(_header(), uint8(0));
        s.program = keccak256(abi.encodePacked(uint8(6), header));
        vm.expectRevert(Descriptor.WrongHeader.selector);
        resolver.start(game, s, header, payload);
    }

    function test_deployments_that_mean_nothing() public {
        (IOneStep step, IStarts starts) = (game.oneStep(), game.starts());
        vm.expectRevert(DisputeStorage.ZeroHash.selector);
        _deployGame(address(0), step, starts, 4, 1, 1);
        vm.expectRevert(DisputeStorage.ZeroHash.selector);
        _deployGame(address(resolver), IOneStep(address(0)), starts, 4, 1, 1);
        vm.expectRevert(DisputeStorage.ZeroHash.selector);
        _deployGame(address(resolver), step, IStarts(address(0)), 4, 1, 1);
        for (uint8 width = 0; width < 7; width += 6) {
            vm.expectRevert(abi.encodeWithSelector(DisputeStorage.UnsupportedWidth.selector, width));
            _deployGame(address(resolver), step, starts, width, 1, 1);
        }
    }

    /// @dev What is the same in two disputes is another frame in each: no move of one fits the other.
    function test_moves_of_another_dispute() public {
        _start(_replay(2));
        (bytes memory call,) = _prepare();
        _start(_replay(2));
        call[7] = 0x02;
        _refuse(asserter, call, abi.encodeWithSelector(DisputeStorage.WrongHead.selector, asserter));
    }

    // --- turns ---

    function test_unknown_dispute() public {
        _start(_replay(2));
        (bytes memory call,) = _prepare();
        call[7] = 0x02;
        bytes memory unknown = abi.encodeWithSelector(DisputeStorage.UnknownDispute.selector, 2);
        _refuse(asserter, call, unknown);
        vm.expectRevert(unknown);
        game.timeout(2);
        vm.expectRevert(unknown);
        game.head(2);
        vm.expectRevert(unknown);
        game.dispute(2);
        vm.expectRevert(unknown);
        game.timeLeft(2);
        vm.expectRevert(unknown);
        game.deadline(2);
    }

    function _refuseAllBut(address mover) private {
        (bytes memory call,) = _prepare();
        address[3] memory senders = [asserter, challenger, address(this)];
        for (uint256 i = 0; i < 3; i++) {
            if (senders[i] == mover) continue;
            _refuse(senders[i], call, abi.encodeWithSelector(DisputeStorage.WrongHead.selector, senders[i]));
        }
        _agree();
    }

    function test_only_the_side_on_turn_moves() public {
        _start(_replay(2));
        for (uint256 i = 0; i < 5; i++) {
            _refuseAllBut(_onTurn());
            _move();
        }
        _expectResult(true);
    }

    function test_one_bit_of_the_position_is_wrong() public {
        _start(_replay(2));
        (bytes memory call,) = _prepare();
        // Behind the number, up to the index: frame, count, lo and hi.
        for (uint256 bit = 0; bit < 8 * 52; bit++) {
            bytes1 mask = bytes1(uint8(1 << (bit % 8)));
            call[8 + bit / 8] ^= mask;
            _refuse(asserter, call);
            call[8 + bit / 8] ^= mask;
        }
        _move();
    }

    function test_position_of_an_earlier_move() public {
        _start(_replay(2));
        (bytes memory call,) = _prepare();
        _move();
        _move();
        // The level is the chain's, so that the move may fail otherwise before its head is compared.
        _refuse(asserter, call);
        _agree();
    }

    // --- what is logged ---

    function test_a_start_is_logged() public {
        StartParams memory s = _replay(2);
        bytes memory payload = abi.encodePacked(_stateRoot(STEP), bytes32(uint256(1)));
        bytes32 id = keccak256(abi.encode(block.chainid, address(game), uint256(1), s));
        vm.expectEmit(address(game));
        emit DisputeGame.Started(1, asserter, challenger, id, s, _header(), payload);
        resolver.start(game, s, _header(), payload);
    }

    /// @dev The only log of the call is a move's: verb, index and payload.
    function _expectMoved(Verb verb, uint256 index) private {
        vm.recordLogs();
        _move();
        Vm.Log[] memory logs = vm.getRecordedLogs();
        vm.assertEq(logs.length, 1);
        vm.assertEq(logs[0].topics[0], bytes32(number));
        vm.assertEq(logs[0].data, abi.encodePacked(uint8(verb), uint8(index), p.opened));
    }

    /// @dev Down to a body, which is proved: of the last step, its last node and first term that is wrong.
    function test_moves_and_a_proof_are_logged() public {
        _start(_replay(2));
        _expectMoved(Verb.ANSWER, 1);
        _expectMoved(Verb.DESCRIBE, 5);
        _expectMoved(Verb.UNFOLD, 0);
        _expectMoved(Verb.OPEN_BODY, 2);
        vm.recordLogs();
        _move();
        Vm.Log[] memory logs = vm.getRecordedLogs();
        vm.assertEq(logs.length, 2);
        vm.assertEq(logs[0].topics[0], DisputeStorage.Refuted.selector);
        vm.assertEq(logs[0].topics[1], bytes32(number));
        (Verb verb, bytes memory detail) = abi.decode(logs[0].data, (Verb, bytes));
        vm.assertTrue(verb == Verb.PROVE_STEP);
        vm.assertEq(detail.length, 21);
        // What was computed and claimed differ in the bit that the lie is.
        vm.assertEq(uint256(_u32(_tail(detail), 0) ^ _u32(_tail(detail), 1)), 1);
    }

    /// @dev The claimed and the computed word.
    function _tail(bytes memory detail) private pure returns (bytes memory tail) {
        for (uint256 i = 13; i < 21; i++) {
            tail = abi.encodePacked(tail, detail[i]);
        }
    }

    // --- after the end ---

    function test_a_finished_dispute_accepts_nothing() public {
        _start(_replay(2));
        for (uint256 i = 0; i < 5; i++) {
            _move();
        }
        _expectResult(true);
        bytes memory finished = abi.encodeWithSelector(ClockExpiry.Finished.selector, number);
        bytes4[11] memory selectors = [
            game.answer.selector,
            game.describe.selector,
            game.openState.selector,
            game.show.selector,
            game.unfold.selector,
            game.openBody.selector,
            game.describeSlot.selector,
            game.proveStep.selector,
            game.proveSlot.selector,
            game.proveSum.selector,
            game.resign.selector
        ];
        for (uint256 i = 0; i < 11; i++) {
            _refuse(asserter, _call(selectors[i], 0, ""), finished);
            _refuse(challenger, _call(selectors[i], 0, ""), finished);
        }
        vm.warp(block.timestamp + 100 * CLOCK);
        vm.expectRevert(finished);
        game.timeout(number);
        _expectResult(true);
    }

    function test_resign() public {
        _start(_replay(2));
        bytes memory call = _call(game.resign.selector, 0, abi.encodePacked(_openingRoot()));
        _refuse(challenger, call, abi.encodeWithSelector(DisputeStorage.WrongHead.selector, challenger));
        bytes memory picking = _call(game.resign.selector, 1, abi.encodePacked(_openingRoot()));
        _refuse(asserter, picking, abi.encodeWithSelector(DisputeGame.WrongIndex.selector));
        _refuse(asserter, abi.encodePacked(call, uint8(0)), abi.encodeWithSelector(PackedReader.LeftOver.selector, 1));
        _send(asserter, call);
        _expectResult(false);
    }

    /// @dev A resolver that fails takes the move back with it: no end without the resolver knowing.
    function test_a_resolver_that_refuses_leaves_the_dispute_open() public {
        _start(_replay(2));
        resolver.refuse(true);
        vm.warp(block.timestamp + CLOCK);
        vm.expectRevert(bytes("refused"));
        game.timeout(number);
        resolver.refuse(false);
        game.timeout(number);
        _expectResult(false);
    }

    /// @dev Whatever the resolver calls when it is told, the dispute has ended.
    function test_a_resolver_that_calls_back_finds_the_dispute_finished() public {
        _start(_replay(2));
        resolver.reenter(abi.encodeCall(game.timeout, (number)));
        _runOut();
        _expectResult(false);
        vm.assertEq(resolver.answer(), abi.encodeWithSelector(ClockExpiry.Finished.selector, number));
    }

    function test_a_proof_whose_resolver_calls_back() public {
        _start(_replay(2));
        for (uint256 i = 0; i < 4; i++) {
            _move();
        }
        vm.assertTrue(p.level == Level.BODY);
        (bytes memory call,) = _prepare();
        resolver.reenter(call);
        _send(_onTurn(), call);
        _expectResult(isAsserterOnTurn);
        vm.assertEq(resolver.answer(), abi.encodeWithSelector(ClockExpiry.Finished.selector, number));
    }
}
