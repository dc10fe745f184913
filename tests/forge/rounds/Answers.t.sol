// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {CheckpointLog} from "../../../contracts/commitments/CheckpointLog.sol";
import {Falsehood, RoundEvidence} from "../../../contracts/rounds/RoundEvidence.sol";
import {RosterFact, RosterPlaces, SignedRoster} from "../../../contracts/rounds/RosterMembers.sol";
import {SignedText} from "../../../contracts/rounds/SignedText.sol";
import {SignedClaim, SignedHead} from "../../../contracts/rounds/RoundTypes.sol";
import {LoggedEntry, RoundDemand, RoundsBase, Standing, TimedDemands} from "./RoundsBase.sol";

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

    /// @notice Else it could be noted with places that make nobody the author of anything, or by a text of no kind.
    function test_where_lists_stand_is_read_wherever_a_roster_is_shown() public {
        (bytes memory text,) = _text("", "\"provisional\":false");
        SignedRoster memory one = _read(text, _end(text) - 20, _end(text));
        evidence.noteRoster(id, 0, _party(WORKER), one);
        one.places.members += 1;
        _isNoRoster(one);
        one.places.members -= 1;
        one.places.routes -= 1;
        _isNoRoster(one);
        (text,) = _text("", "\"provisional\":7");
        _isNoRoster(_read(text, _end(text) - 16, _end(text)));
    }

    /// @notice Who is in the final roster alone, of the round that the other one begins, has done the work of others.
    function test_a_late_member_is_one_of_the_round_that_the_roster_begins() public {
        (bytes memory begun,) = _text("", "\"provisional\":true");
        SignedRoster memory first = _read(begun, _end(begun) - 19, _end(begun));
        (first.isMember, first.seat) = (false, 0);
        RosterFact memory fact = RosterFact(keccak256(begun), first.places, SignedText.ITSELF, _party(2), 0);
        SignedRoster memory last = _final(begun);
        // Who has fallen out of the round is no member of the final one, by right.
        (last.isMember, last.seat) = (false, 0);
        _refuseTwo(_read(begun, _end(begun) - 19, _end(begun)), last);
        last = _final(begun);
        bytes memory data = abi.encodeCall(RoundEvidence.showRosters, (id, 0, fact, _party(2), last));
        _announce(_party(DEMANDER), data);
        vm.prank(_party(DEMANDER));
        evidence.noteRoster(id, 0, _party(2), first);
        vm.roll(vm.getBlockNumber() + 1);
        vm.expectEmit(address(evidence));
        emit RoundEvidence.Shown(id, _party(KEEPER), _party(DEMANDER), Falsehood.LateMember, _rosterDigest(begun, 0));
        vm.prank(_party(DEMANDER));
        evidence.showRosters(id, 0, fact, _party(2), last);
    }

    /// @dev A final roster that names this one as its round's beginning, and has another member alone.
    function _final(bytes memory begun) private view returns (SignedRoster memory last) {
        bytes memory member = abi.encodePacked("{\"joined\":0,\"role\":\"\",", _seat(1, _party(2)), "}");
        bytes memory kind = abi.encodePacked("\"provisional\":\"", _digits(keccak256(begun)), "\"");
        last.text = abi.encodePacked("\"members\":[", member, "],\"partners\":[],", kind, ",\"routes\":[]}");
        last.places = RosterPlaces(_end(last.text) - 81, 0, _end(last.text));
        (last.isMember, last.seat) = (true, _seatIn(last.text));
        last.signature = _signature(KEEPER, _rosterDigest(last.text, 0));
    }

    function _isNoRoster(SignedRoster memory shown) private {
        vm.expectPartialRevert(SignedText.OtherText.selector);
        evidence.noteRoster(id, 0, _party(WORKER), shown);
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
        (bytes memory text, bytes memory signature, SignedClaim memory claim) = _counted();
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

    /// @notice For a bond in each window, which the worker earned, somebody delayed its pay and its stake for ever.
    function test_a_demand_in_each_window_delays_nobody_for_ever() public {
        (bytes memory text, bytes memory signature, SignedClaim memory claim) = _counted();
        // What is asked in the end of the window for it is answered in time, and refuted.
        (uint64 closes, uint64 until) = (shares.settlementOf(id, 0).closes, bonds.bond(id, _party(WORKER)).until);
        uint64 last = closes + 4 days;
        for (uint256 day = 0; day < 6; ++day) {
            _answer(_demandRoster(claim), claim, text, signature);
            _pass(1 days);
        }
        vm.expectRevert(abi.encodeWithSelector(TimedDemands.DeadlineNotPassed.selector, last));
        shares.settle(id, 0, _party(WORKER));
        vm.expectRevert(abi.encodeWithSignature("TooEarly(uint256)", until + 2 days));
        bonds.depart(id, _party(WORKER));
        vm.warp(last);
        _answer(_demandRoster(claim), claim, text, signature);
        _pass(1);
        shares.settle(id, 0, _party(WORKER));
        bonds.depart(id, _party(WORKER));
        _checkBooks();
    }

    /// @notice In a roster that the log doesn't have, a worker that had gone signed on, and its keeper went free.
    function test_the_entry_of_a_roster_is_demanded_from_its_keeper() public {
        bytes32 before = "an entry of before";
        SignedHead memory head = _gone(before);
        (bytes memory text, bytes memory signature) = _text("", "\"provisional\":false");
        SignedRoster memory shown = _read(text, _end(text) - 20, _end(text));
        (bytes32 document, uint256 bond) = (keccak256(text), demands.bondOf(id));
        LoggedEntry memory none;
        vm.expectRevert(RoundEvidence.NothingWrong.selector);
        evidence.showUnstakedMember(id, 0, _party(WORKER), shown, none);
        vm.expectPartialRevert(bytes4(keccak256("OtherSigner(address)")));
        demands.demandRosterEntry(id, 1, document, signature, bond);
        uint64 deadline = uint64(vm.getBlockTimestamp()) + 1 days;
        bytes32 content = keccak256(abi.encode("entry", _rosterDigest(text, 0), _party(KEEPER)));
        RoundDemand memory d = RoundDemand(id, _party(KEEPER), _party(DEMANDER), deadline, bond, content);
        vm.prank(_party(DEMANDER));
        demands.demandRosterEntry(id, 0, document, signature, bond);
        // With an entry of it, behind the length that the keeper has named, it is evidence; one of another isn't taken.
        LoggedEntry memory logged = _logged(_entry(document, signature), 1, CheckpointLog.leafHash(before), head);
        vm.expectPartialRevert(bytes4(keccak256("OtherRoster(bytes32)")));
        demands.answerRosterEntry(d, 0, before, logged);
        uint256 snapshot = vm.snapshotState();
        _showUnstaked(shown, logged);
        vm.revertToState(snapshot);
        logged.index = 0;
        vm.expectRevert(TimedDemands.NotLogged.selector);
        demands.answerRosterEntry(d, 0, document, logged);
        logged.index = 1;
        demands.answerRosterEntry(d, 0, document, logged);
        vm.assertEq(vault.free(_party(KEEPER)), BROUGHT - 2 * STAKE + 2 * bond);
        vm.revertToState(snapshot);
        _pass(1 days + 1);
        demands.expire(d);
        vm.assertTrue(bonds.bond(id, _party(KEEPER)).standing == Standing.Slashed);
        _checkBooks();
    }

    /// @notice Each of these would blame a keeper that has done nothing, or by what it hasn't signed.
    function test_who_has_gone_is_evidence_by_the_log_behind_the_word_alone() public {
        bytes32 before = "an entry of before";
        (bytes memory text, bytes memory signature) = _text("", "\"provisional\":false");
        SignedRoster memory shown = _read(text, _end(text) - 20, _end(text));
        bytes memory entry = _entry(keccak256(text), signature);
        (bytes32 one, bytes32 other) = (CheckpointLog.leafHash(before), CheckpointLog.leafHash(keccak256(entry)));
        uint256 there = vm.snapshotState();
        _nothingWrong(shown, _logged(entry, 1, one, _signedHead(id, KEEPER, one, other)));
        _leave();
        _nothingWrong(shown, _logged(entry, 1, one, _signedHead(id, KEEPER, one, other)));
        vm.revertToState(there);
        _gone(before);
        _nothingWrong(shown, _logged(entry, 0, one, _signedHead(id, KEEPER, other, one)));
        _nothingWrong(shown, _logged(entry, 1, one, _signedHead("plan", KEEPER, one, other)));
        _refused(
            shown,
            _logged(entry, 1, one, _signedHead(id, WORKER, one, other)),
            bytes4(keccak256("OtherSigner(address)"))
        );
        _nothingWrong(shown, _logged(entry, 1, other, _signedHead(id, KEEPER, one, other)));
        bytes memory another = _entry("another roster", signature);
        SignedHead memory head = _signedHead(id, KEEPER, one, CheckpointLog.leafHash(keccak256(another)));
        _refused(shown, _logged(another, 1, one, head), bytes4(keccak256("OtherRoster(bytes32)")));
        _showUnstaked(shown, _logged(entry, 1, one, _signedHead(id, KEEPER, one, other)));
    }

    /// @notice The first word counts, about who has gone by then: a later one could be any, and who has joined again
    /// answers for itself.
    function test_a_word_is_said_once_about_who_has_gone() public {
        _leave();
        RoundDemand memory first = _demandLength();
        _pass(1);
        (RoundDemand memory second, uint256 there) = (_demandLength(), vm.snapshotState());
        _tell(first, 7);
        _tell(second, 9);
        vm.assertEq(bonds.bond(id, _party(WORKER)).entries, 7);
        vm.revertToState(there);
        vm.prank(_party(WORKER));
        bonds.join(id);
        _tell(first, 7);
        vm.assertEq(bonds.bond(id, _party(WORKER)).entries, 0);
    }

    /// @dev A worker's line is posted, and it leaves; a claim of it under a roster, and that roster.
    function _counted() private returns (bytes memory text, bytes memory signature, SignedClaim memory claim) {
        _pass(3 days);
        shares.open(id);
        _post(WORKER, 0, 0, 1);
        (text, signature) = _text("", "\"provisional\":false");
        claim = _signedUnder(WORKER, text);
        vm.prank(_party(WORKER));
        bonds.startLeaving(id);
    }

    function _nothingWrong(SignedRoster memory shown, LoggedEntry memory logged) private {
        _refused(shown, logged, RoundEvidence.NothingWrong.selector);
    }

    function _refused(SignedRoster memory shown, LoggedEntry memory logged, bytes4 selector) private {
        vm.expectPartialRevert(selector);
        evidence.showUnstakedMember(id, 0, _party(WORKER), shown, logged);
    }

    /// @dev An entry beside another one, of which this is the leaf.
    function _logged(bytes memory entry, uint64 index, bytes32 leaf, SignedHead memory head)
        private
        pure
        returns (LoggedEntry memory logged)
    {
        logged = LoggedEntry(entry, 112, index, head, new bytes32[](1));
        logged.path[0] = leaf;
    }

    function _signedHead(bytes32 plan, uint256 party, bytes32 left, bytes32 right)
        private
        pure
        returns (SignedHead memory head)
    {
        (head.head.plan, head.head.size, head.head.root) = (plan, 2, CheckpointLog.nodeHash(left, right));
        head.signature = _signature(party, _headDigest(head));
    }

    function _leave() private {
        vm.prank(_party(WORKER));
        bonds.startLeaving(id);
        _pass(4 days + 1);
        bonds.depart(id, _party(WORKER));
    }

    function _demandLength() private returns (RoundDemand memory d) {
        bytes32 content = keccak256(abi.encode("length", _party(WORKER)));
        uint64 deadline = uint64(vm.getBlockTimestamp()) + 1 days;
        d = RoundDemand(id, _party(KEEPER), _party(DEMANDER), deadline, demands.bondOf(id), content);
        vm.prank(_party(DEMANDER));
        demands.demandLength(id, _party(WORKER), d.bond);
    }

    function _tell(RoundDemand memory d, uint64 size) private returns (SignedHead memory head) {
        head = _head(size);
        vm.prank(_party(KEEPER));
        demands.answerLength(d, _party(WORKER), head);
    }

    /// @dev A worker has left, by the keeper's word behind the first entry; the head of the log that has a roster then.
    function _gone(bytes32 before) private returns (SignedHead memory head) {
        _leave();
        _tell(_demandLength(), 1);
        (bytes memory text, bytes memory signature) = _text("", "\"provisional\":false");
        bytes32 leaf = CheckpointLog.leafHash(keccak256(_entry(keccak256(text), signature)));
        return _signedHead(id, KEEPER, CheckpointLog.leafHash(before), leaf);
    }

    function _showUnstaked(SignedRoster memory shown, LoggedEntry memory logged) private {
        bytes memory data = abi.encodeCall(RoundEvidence.showUnstakedMember, (id, 0, _party(WORKER), shown, logged));
        _announce(_party(DEMANDER), data);
        vm.prank(_party(DEMANDER));
        (bool done,) = address(evidence).call(data);
        vm.assertTrue(done);
        vm.assertTrue(bonds.bond(id, _party(KEEPER)).standing == Standing.Slashed);
    }

    /// @dev A roster's entry in the log; its signature stands at byte 112.
    function _entry(bytes32 document, bytes memory signature) private pure returns (bytes memory) {
        (bytes32 r, bytes32 s) = abi.decode(signature, (bytes32, bytes32));
        bytes memory digits = abi.encodePacked(_digits(r), _digits(s), signature[64] == bytes1(uint8(27)) ? "1b" : "1c");
        return abi.encodePacked(
            "{\"document\":\"", _digits(document), "\",\"kind\":\"pol/roster\",\"signature\":\"", digits, "\"}"
        );
    }

    function _digits(bytes32 word) private pure returns (string memory) {
        return vm.split(vm.toString(word), "0x")[1];
    }

    /// @notice Who asks what else a liar has signed paid the liar's friend for each answer.
    function test_whose_stake_is_lost_earns_nothing() public {
        (bytes memory text, bytes memory signature) = _text("", "\"provisional\":false");
        SignedClaim memory claim = _signedUnder(WORKER, text);
        RoundDemand memory d = _demandRoster(claim);
        _show(_party(2), _twoClaims(WORKER, 0));
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

    /// @notice A longer roster than a bond pays for is no more than the bond: else nobody could show it, for its stake.
    function test_a_roster_that_is_longer_than_its_bond_earns_all_of_it() public {
        bytes memory filler = new bytes(124_500);
        for (uint256 i = 0; i < filler.length; ++i) {
            filler[i] = "a";
        }
        (bytes memory text, bytes memory signature) = _text(string(filler), "\"provisional\":false");
        SignedClaim memory claim = _signedUnder(WORKER, text);
        uint256 before = vault.free(_party(WORKER));
        RoundDemand memory d = _demandRoster(claim);
        _answer(d, claim, text, signature);
        vm.assertEq(vault.free(_party(WORKER)) - before, d.bond);
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
        vm.expectPartialRevert(bytes4(keccak256("WrongStanding(address,uint8)")));
        demands.demandLength(id, _party(WORKER), 1 ether);
        _leave();
        RoundDemand memory d = _demandLength();
        SignedHead memory head = _head(7);
        vm.expectPartialRevert(bytes4(keccak256("OtherSigner(address)")));
        demands.answerLength(d, _party(WORKER), head);
        // Nor does it say that of another plan, or by what somebody else has signed.
        vm.startPrank(_party(KEEPER));
        head.head.plan = "another plan";
        vm.expectPartialRevert(bytes4(keccak256("OtherPlan(bytes32)")));
        demands.answerLength(d, _party(WORKER), head);
        head.head.plan = id;
        head.signature = _signature(WORKER, _headDigest(head));
        vm.expectPartialRevert(bytes4(keccak256("OtherSigner(address)")));
        demands.answerLength(d, _party(WORKER), head);
        vm.stopPrank();
        _tell(d, 7);
        vm.assertEq(bonds.bond(id, _party(WORKER)).entries, 7);
        vm.expectPartialRevert(bytes4(keccak256("WrongStanding(address,uint8)")));
        demands.demandLength(id, _party(WORKER), d.bond);
        // Who joins again answers for itself.
        vm.prank(_party(WORKER));
        bonds.join(id);
        vm.assertEq(bonds.bond(id, _party(WORKER)).entries, 0);
    }

    /// @notice Who was slashed has gone as well, and the keeper earns the bond for its word.
    function test_the_length_is_said_of_a_slashed_worker() public {
        _show(_party(2), _twoClaims(WORKER, 0));
        uint256 before = vault.free(_party(KEEPER));
        RoundDemand memory d = _demandLength();
        _tell(d, 7);
        vm.assertEq(bonds.bond(id, _party(WORKER)).entries, 7);
        vm.assertEq(vault.free(_party(KEEPER)) - before, d.bond);
    }

    /// @notice A head over nothing, which every log extends, was no word at all: each demand paid the keeper for one.
    function test_an_empty_log_is_a_length() public {
        _leave();
        RoundDemand memory d = _demandLength();
        _tell(d, 0);
        vm.assertEq(bonds.bond(id, _party(WORKER)).entries, 1);
        vm.expectPartialRevert(bytes4(keccak256("WrongStanding(address,uint8)")));
        demands.demandLength(id, _party(WORKER), d.bond);
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
