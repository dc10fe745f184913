// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {RoundEvidence} from "../../../contracts/rounds/RoundEvidence.sol";
import {RosterFact, RosterPlaces, SignedRoster} from "../../../contracts/rounds/RosterMembers.sol";
import {SignedText} from "../../../contracts/rounds/SignedText.sol";
import {SignedClaim, SignedHead} from "../../../contracts/rounds/RoundTypes.sol";
import {RoundDemand, TimedDemands} from "../../../contracts/rounds/TimedDemands.sol";
import {Standing} from "../../../contracts/rounds/IWorkerBonds.sol";
import {RoundsBase} from "./RoundsBase.sol";

/// @notice Attacks by what is shown in an answer: texts that are no rosters, shown too late to refute, for a stake that
/// is lost, or of bytes that cost next to nothing. Parties 1 and 2 are workers, 3 demands.
contract AnswersTest is RoundsBase {
    uint256 private constant KEEPER = 0;
    uint256 private constant WORKER = 1;
    uint256 private constant DEMANDER = 3;

    /// @notice A text whose kind stood at byte 0 was taken for the final roster, and could be shown to be none.
    function test_two_texts_of_one_kind_are_two_rosters_wherever_it_stands() public {
        (bytes memory one,) = _text("\"provisional\":false", "");
        (bytes memory other,) = _text("\"provisional\":false", "another");
        _showTwo(_read(one, 0, _end(one)), _read(other, 0, _end(other)));
        vm.assertTrue(bonds.bond(id, _party(KEEPER)).standing == Standing.Slashed);
    }

    /// @notice What says neither was shown for a claim that anybody of the roster makes.
    function test_a_text_of_no_kind_is_no_answer() public {
        (bytes memory text, bytes memory signature) = _text("", "\"temporary\":false");
        RoundDemand memory d = _demandRoster(_signedUnder(WORKER, text));
        SignedRoster memory shown = SignedRoster(text, RosterPlaces(0, 1, _end(text)), true, _seatIn(text), signature);
        SignedClaim memory claim = _signedUnder(WORKER, text);
        vm.expectPartialRevert(SignedText.OtherText.selector);
        demands.answerRoster(d, claim.claim, shown);
    }

    /// @notice One text with two kinds, or two lists of members, has two authors for one place.
    function test_a_text_that_says_a_thing_twice_is_two_rosters() public {
        (bytes memory text,) = _text("\"provisional\":true", "\"provisional\":false");
        uint256 second = _end(text) - 20;
        _showTwo(_read(text, 0, _end(text)), _read(text, second, _end(text)));
        vm.assertTrue(bonds.bond(id, _party(KEEPER)).standing == Standing.Slashed);
    }

    /// @notice Its pay was out, and its stake, before anybody could refute what a worker had shown about a claim's source
    /// or roster: of counted claims alone the answer left time.
    function test_an_answer_leaves_time_to_refute_it() public {
        _pass(3 days);
        shares.open(id);
        _post(WORKER, 0, 0, 1);
        (bytes memory text, bytes memory signature) = _text("", "\"provisional\":false");
        SignedClaim memory claim = _signedUnder(WORKER, text);
        vm.prank(_party(WORKER));
        bonds.startLeaving(id);
        _pass(4 days);
        RoundDemand memory d = _demandRoster(claim);
        _pass(1 hours);
        _answer(d, claim, text, signature);
        uint64 quiet = uint64(vm.getBlockTimestamp()) + 1 days;
        _pass(1 days);
        vm.expectRevert(abi.encodeWithSelector(TimedDemands.DeadlineNotPassed.selector, quiet));
        shares.settle(id, 0, _party(WORKER));
        vm.expectRevert(abi.encodeWithSignature("TooEarly(uint256)", quiet));
        bonds.depart(id, _party(WORKER));
        bonds.requireAccusable(id, _party(WORKER));
        _pass(1);
        shares.settle(id, 0, _party(WORKER));
        bonds.depart(id, _party(WORKER));
        _checkBooks();
    }

    /// @notice Who asks what else a liar has signed paid the liar's friend for each answer.
    function test_whose_stake_is_lost_earns_nothing() public {
        (bytes memory text, bytes memory signature) = _text("", "\"provisional\":false");
        SignedClaim memory claim = _signedUnder(WORKER, text);
        RoundDemand memory d = _demandRoster(claim);
        bytes memory data = abi.encodeCall(
            RoundEvidence.showTwoClaims, (id, _signed(WORKER, 0, "end"), _signed(WORKER, 0, "another end"))
        );
        _announce(_party(2), data);
        vm.prank(_party(2));
        (bool done,) = address(evidence).call(data);
        vm.assertTrue(done);
        uint256 before = vault.free(_party(DEMANDER));
        _answer(d, claim, text, signature);
        vm.assertEq(vault.free(_party(DEMANDER)) - before, d.bond);
        vm.assertEq(vault.free(_party(WORKER)), BROUGHT - STAKE);
        _checkBooks();
    }

    /// @notice A byte of a roster earns 47 gas, and a zero costs 10: with the coordinator, its author lived on who asks.
    function test_zeros_earn_nothing() public {
        (bytes memory text, bytes memory signature) = _text(string(new bytes(100_000)), "\"provisional\":false");
        SignedClaim memory claim = _signedUnder(WORKER, text);
        uint256 before = vault.free(_party(WORKER));
        RoundDemand memory d = _demandRoster(claim);
        _answer(d, claim, text, signature);
        uint256 owed = 0.01 ether + (d.bond - 0.01 ether) * 400_000 / (400_000 + 47 * 124_000);
        vm.assertEq(vault.free(_party(WORKER)) - before, owed);
    }

    /// @dev Whatever stands behind the text.
    function testFuzz_a_zero_is_seen_wherever_it_stands(bytes memory text, uint256 at, bool isThere) public view {
        for (uint256 i = 0; i < text.length; ++i) {
            if (text[i] == 0) text[i] = bytes1(uint8(1 + i % 255));
        }
        if (isThere && text.length != 0) text[at % text.length] = 0;
        vm.assertEq(this.hasZero(abi.encodePacked(text, bytes32(0)), text.length), isThere && text.length != 0);
    }

    function hasZero(bytes calldata text, uint256 end) external pure returns (bool) {
        return SignedText.hasZero(text[:end]);
    }

    /// @notice Behind the round its coordinator lets a friend make claims of it, by a provisional roster that it signs
    /// then: the final one names none.
    function test_a_provisional_roster_that_the_final_one_does_not_name() public {
        (bytes memory last,) = _text("", "\"provisional\":false");
        (bytes memory since,) = _text("", "\"provisional\":true");
        _showTwo(_read(last, _end(last) - 20, _end(last)), _read(since, _end(since) - 19, _end(since)));
        vm.assertTrue(bonds.bond(id, _party(KEEPER)).standing == Standing.Slashed);
    }

    function test_a_provisional_roster_that_the_final_one_names_is_right() public {
        (bytes memory begun,) = _text("", "\"provisional\":true");
        string memory name = vm.split(vm.toString(keccak256(begun)), "0x")[1];
        (bytes memory last,) = _text("", string.concat("\"provisional\":\"", name, "\""));
        (SignedRoster memory one, SignedRoster memory other) =
            (_read(last, _end(last) - 81, _end(last)), _read(begun, _end(begun) - 19, _end(begun)));
        _refuseTwo(one, other);
        _refuseTwo(other, one);
    }

    /// @notice Who has gone signs on, in rosters of its keeper's, and nobody answers for it: the keeper does.
    function test_only_the_keeper_says_how_long_its_log_is() public {
        vm.prank(_party(WORKER));
        bonds.startLeaving(id);
        vm.expectPartialRevert(bytes4(keccak256("WrongStanding(address,uint8)")));
        demands.demandLength(id, _party(WORKER), 1 ether);
        RoundDemand memory d = _demandLength();
        SignedHead memory head = _head(7);
        vm.expectPartialRevert(bytes4(keccak256("OtherSigner(address)")));
        demands.answerLength(d, _party(WORKER), head);
        vm.prank(_party(KEEPER));
        demands.answerLength(d, _party(WORKER), head);
        vm.assertEq(bonds.bond(id, _party(WORKER)).entries, 7);
        vm.expectPartialRevert(bytes4(keccak256("WrongStanding(address,uint8)")));
        demands.demandLength(id, _party(WORKER), d.bond);
        // Who joins again answers for itself.
        vm.prank(_party(WORKER));
        bonds.join(id);
        vm.assertEq(bonds.bond(id, _party(WORKER)).entries, 0);
    }

    /// @notice A head over nothing, which every log extends, was no word at all: each demand paid the keeper for one.
    function test_an_empty_log_is_a_length() public {
        vm.prank(_party(WORKER));
        bonds.startLeaving(id);
        RoundDemand memory d = _demandLength();
        SignedHead memory head = _head(0);
        vm.prank(_party(KEEPER));
        demands.answerLength(d, _party(WORKER), head);
        vm.assertEq(bonds.bond(id, _party(WORKER)).entries, 1);
        vm.expectPartialRevert(bytes4(keccak256("WrongStanding(address,uint8)")));
        demands.demandLength(id, _party(WORKER), d.bond);
    }

    /// @dev Of the keeper, when a worker that leaves has gone.
    function _demandLength() private returns (RoundDemand memory d) {
        _pass(4 days + 1);
        bonds.depart(id, _party(WORKER));
        bytes32 content = keccak256(abi.encode("length", _party(WORKER)));
        uint256 bond = demands.bondOf(id);
        uint64 deadline = uint64(vm.getBlockTimestamp()) + 1 days;
        d = RoundDemand(id, _party(KEEPER), _party(DEMANDER), deadline, bond, content);
        vm.prank(_party(DEMANDER));
        demands.demandLength(id, _party(WORKER), bond);
    }

    function _head(uint64 size) private view returns (SignedHead memory head) {
        (head.head.plan, head.head.size) = (id, size);
        head.signature = _signature(KEEPER, _headDigest(head));
    }

    /// @dev A text with these pieces before the members and behind them, and the keeper's signature.
    function _text(string memory before, string memory behind)
        private
        view
        returns (bytes memory text, bytes memory signature)
    {
        bytes memory member = abi.encodePacked("{\"joined\":0,\"role\":\"\",", _seat(0, _party(WORKER)), "}");
        text = abi.encodePacked(before, "\"members\":[", member, "],\"partners\":[],", behind, ",\"routes\":[]}");
        signature = _signature(KEEPER, _rosterDigest(text, 0));
    }

    function _read(bytes memory text, uint256 kind, uint256 routes) private view returns (SignedRoster memory) {
        uint256 members = _seatIn(text) - 33;
        bytes memory signature = _signature(KEEPER, _rosterDigest(text, 0));
        return SignedRoster(text, RosterPlaces(kind, members, routes), true, _seatIn(text), signature);
    }

    /// @dev Where the routes stand.
    function _end(bytes memory text) private pure returns (uint256) {
        return text.length - 12;
    }

    /// @dev Where the seat of the member stands.
    function _seatIn(bytes memory text) private pure returns (uint256) {
        return bytes(vm.split(string(text), "\"seat\":")[0]).length;
    }

    function _demandRoster(SignedClaim memory claim) private returns (RoundDemand memory d) {
        uint256 bond = demands.rosterBondOf(id);
        bytes32 content = keccak256(abi.encode("roster", _digestOf(claim.claim)));
        uint64 deadline = uint64(vm.getBlockTimestamp()) + 1 days;
        d = RoundDemand(id, _party(WORKER), _party(DEMANDER), deadline, bond, content);
        vm.prank(_party(DEMANDER));
        demands.demandRoster(id, claim, bond);
    }

    function _answer(RoundDemand memory d, SignedClaim memory claim, bytes memory text, bytes memory signature)
        private
    {
        RosterPlaces memory places = RosterPlaces(_end(text) - 20, _seatIn(text) - 33, _end(text));
        demands.answerRoster(d, claim.claim, SignedRoster(text, places, true, _seatIn(text), signature));
    }

    function _factOf(SignedRoster memory r) private view returns (RosterFact memory) {
        bytes32 begun = this.begunOf(r.text, r.places.provisional);
        return RosterFact(keccak256(r.text), r.places, begun, _party(WORKER), 1);
    }

    function begunOf(bytes calldata text, uint256 offset) external pure returns (bytes32) {
        return SignedText.beginOf(text, offset);
    }

    function _showTwo(SignedRoster memory one, SignedRoster memory other) private {
        bytes memory data = abi.encodeCall(RoundEvidence.showRosters, (id, 0, _factOf(one), _party(WORKER), other));
        _announce(_party(DEMANDER), data);
        vm.prank(_party(DEMANDER));
        evidence.noteRoster(id, 0, _party(WORKER), one);
        vm.roll(vm.getBlockNumber() + 1);
        vm.prank(_party(DEMANDER));
        (bool done,) = address(evidence).call(data);
        vm.assertTrue(done);
    }

    function _refuseTwo(SignedRoster memory one, SignedRoster memory other) private {
        RosterFact memory fact = _factOf(one);
        vm.expectRevert(RoundEvidence.NothingWrong.selector);
        evidence.showRosters(id, 0, fact, _party(WORKER), other);
    }

    function _headDigest(SignedHead memory head) private pure returns (bytes32) {
        bytes32 kind = keccak256("LogHead(bytes32 plan,uint64 size,bytes32 root)");
        return _typed(keccak256(abi.encode(kind, head.head)));
    }
}
