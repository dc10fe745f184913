// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Announcements} from "../../../contracts/market/Announcements.sol";
import {Standing} from "../../../contracts/rounds/IWorkerBonds.sol";
import {RoundDemands} from "../../../contracts/rounds/RoundDemands.sol";
import {RoundDesk} from "../../../contracts/rounds/RoundDesk.sol";
import {Falsehood, RosterDocument, RoundEvidence} from "../../../contracts/rounds/RoundEvidence.sol";
import {MemberProof} from "../../../contracts/rounds/RosterMembers.sol";
import {SignedClaim} from "../../../contracts/rounds/RoundTypes.sol";
import {SignedText} from "../../../contracts/rounds/SignedText.sol";
import {RoundDemand, TimedDemands} from "../../../contracts/rounds/TimedDemands.sol";
import {RoundsBase} from "./RoundsBase.sol";

/// @notice Rosters that claims name: demanded from their authors, shown with the coordinator's signature, and blamed on
/// the coordinator if a member has no stake. Workers are the parties 1 to 3; the fourth one has never joined.
contract RosterProofsTest is RoundsBase {
    uint256 private constant STRANGER = 4;
    /// @dev Where the seat of the first member stands, behind `{"members":[{"joined":0,"role":"",`.
    uint256 private constant FIRST = 34;
    /// @dev Bytes between two seats: `},{"joined":0,"role":"",`.
    uint256 private constant BETWEEN = 24;

    bytes private _text;
    bytes private _signatureOfIt;

    function setUp() public override {
        super.setUp();
        (_text, _signatureOfIt) = _roster(_workers(1), 0, 0);
    }

    function test_a_roster_is_demanded_and_shown() public {
        SignedClaim memory signed = _signedUnder(1, _text);
        RoundDemand memory d = _demanded(signed);
        vm.assertEq(bonds.bond(id, _party(1)).open, 1);
        vm.assertEq(vault.locked(address(demands), id, _party(3)), d.bond);
        (uint256 before, uint256 demander) = (vault.free(_party(1)), vault.free(_party(3)));
        vm.expectEmit(address(demands));
        emit RoundDemands.RosterShown(id, keccak256(_text), 0, _text, _signatureOfIt);
        vm.expectEmit(address(demands));
        emit TimedDemands.Answered(id, keccak256(abi.encode(d)));
        demands.answerRoster(d, signed.claim, _proof());
        // The price, and at the demand's base fee the gas for this text; the rest returns.
        uint256 owed = 0.01 ether + (400_000 + 45 * _text.length) * 1 gwei;
        vm.assertEq(d.bond, 0.01 ether + (400_000 + 45 * 124_000) * 1 gwei);
        vm.assertEq(vault.free(_party(1)), before + owed);
        vm.assertEq(vault.free(_party(3)), demander + d.bond - owed);
        vm.assertEq(bonds.bond(id, _party(1)).open, 0);
        _checkBooks();
    }

    function test_a_roster_that_nobody_shows_is_slashed() public {
        RoundDemand memory d = _demanded(_signed(1, 0, "end"));
        _pass(1 days + 1);
        demands.expire(d);
        vm.assertTrue(bonds.bond(id, _party(1)).standing == Standing.Slashed);
        _checkBooks();
    }

    function test_what_is_demanded_twice_or_of_nobody() public {
        SignedClaim memory signed = _signedUnder(1, _text);
        RoundDemand memory d = _demanded(signed);
        vm.prank(_party(3));
        vm.expectRevert(abi.encodeWithSelector(TimedDemands.AlreadyDemanded.selector, keccak256(abi.encode(d))));
        demands.demandRoster(id, signed, 1 ether);
        vm.expectRevert(abi.encodeWithSelector(RoundDesk.BondTooHigh.selector, d.bond));
        demands.demandRoster(id, signed, d.bond - 1);
        signed.claim.plan = "another plan";
        vm.expectRevert(abi.encodeWithSelector(RoundDesk.OtherPlan.selector, signed.claim.plan));
        demands.demandRoster(id, signed, 1 ether);
    }

    function test_what_is_no_answer() public {
        SignedClaim memory signed = _signedUnder(1, _text);
        RoundDemand memory d = _demanded(signed);
        MemberProof memory proof = _proof();
        proof.offset += 1;
        vm.expectRevert(abi.encodeWithSelector(SignedText.OtherText.selector, FIRST + 1));
        demands.answerRoster(d, signed.claim, proof);
        (proof.text, proof.offset) = (abi.encodePacked(_text, " "), FIRST);
        proof.signature = _signature(0, _rosterDigest(proof.text, 0));
        vm.expectRevert(abi.encodeWithSelector(RoundDemands.OtherRoster.selector, keccak256(proof.text)));
        demands.answerRoster(d, signed.claim, proof);
        (proof.text, proof.signature) = _roster(_workers(1), 0, 1);
        vm.expectRevert(abi.encodeWithSelector(RoundDesk.OtherSigner.selector, _party(1)));
        demands.answerRoster(d, signed.claim, proof);
        // Signed for another round, it is somebody else's signature under this one.
        (proof.text, proof.signature) = _roster(_workers(1), 1, 0);
        vm.expectPartialRevert(RoundDesk.OtherSigner.selector);
        demands.answerRoster(d, signed.claim, proof);
        // An answer to another demand.
        SignedClaim memory other = _signedUnder(1, _text);
        other.claim.end = "another end";
        vm.expectRevert(abi.encodeWithSelector(TimedDemands.OtherDemand.selector, d.content));
        demands.answerRoster(d, other.claim, _proof());
        _pass(1 days + 1);
        vm.expectRevert(abi.encodeWithSelector(TimedDemands.DeadlinePassed.selector, d.deadline));
        demands.answerRoster(d, signed.claim, _proof());
    }

    function test_a_member_without_a_stake_costs_the_coordinator_its_own() public {
        (_text, _signatureOfIt) = _roster(_workers(STRANGER), 0, 0);
        bytes memory data = abi.encodeCall(RoundEvidence.showUnstakedMember, (id, 0, _party(STRANGER), _proof()));
        _costsTheCoordinator(Falsehood.UnstakedMember, data);
    }

    function test_two_members_in_one_seat_cost_the_coordinator_its_stake() public {
        // Both in seat 1: the second one stands behind the first, a brace and `{"joined":0,"role":"",`.
        (bytes memory one, bytes memory other) = (_seat(1, _party(1)), _seat(1, _party(3)));
        _text = abi.encodePacked(
            "{\"members\":[{\"joined\":0,\"role\":\"\",", one, "},{\"joined\":0,\"role\":\"\",", other, "}]}"
        );
        _signatureOfIt = _signature(0, _rosterDigest(_text, 0));
        uint256 second = FIRST + one.length + BETWEEN;
        vm.expectRevert(RoundEvidence.NothingWrong.selector);
        _share(1, 1, _proof());
        MemberProof memory member = MemberProof(_text, second, _signatureOfIt);
        vm.expectPartialRevert(SignedText.OtherText.selector);
        _share(1, 2, member);
        _costsTheCoordinator(Falsehood.SharedSeat, _shared(1, 3, member));
    }

    /// @notice A provisional roster gives the seat to one key, the final one to another: both had claims to count.
    function test_a_seat_that_changes_hands_within_a_round_costs_the_coordinator_its_stake() public {
        (bytes memory text, bytes memory signature) = _roster(_workers(2), 0, 0);
        MemberProof memory other = MemberProof(text, FIRST, signature);
        bytes memory data = _shared(1, 2, other);
        // In the next round it may be anybody's.
        other.signature = _signature(0, _rosterDigest(text, 1));
        vm.expectPartialRevert(RoundDesk.OtherSigner.selector);
        _share(1, 2, other);
        _costsTheCoordinator(Falsehood.SharedSeat, data);
    }

    /// @notice A claim of a route's part is that of the member on it: what others have computed is nobody's to sign.
    function test_a_claim_that_the_roster_leaves_to_another_member_is_slashed() public {
        // Part 0 goes to the first member, the other one to the second.
        _text = abi.encodePacked(_text, ",\"routes\":[[0],[1]]");
        RosterDocument memory roster = RosterDocument(_text, 1, 0, _text.length - 18, 0);
        SignedClaim memory honest = _signedUnder(1, _text);
        vm.expectRevert(RoundEvidence.NothingWrong.selector);
        evidence.showOtherAuthor(id, honest, _phase(), roster);
        SignedClaim memory stolen = _signedUnder(3, _text);
        bytes memory data = abi.encodeCall(RoundEvidence.showOtherAuthor, (id, stolen, _phase(), roster));
        _announce(_party(2), data);
        vm.prank(_party(2));
        (bool done,) = address(evidence).call(data);
        vm.assertTrue(done);
        vm.assertTrue(bonds.bond(id, _party(3)).standing == Standing.Slashed);
        vm.assertTrue(bonds.bond(id, _party(1)).standing == Standing.Joined);
    }

    function test_two_members_in_two_seats_are_nothing_wrong() public {
        uint256 second = FIRST + _seat(0, _party(1)).length + BETWEEN;
        MemberProof memory other = MemberProof(_text, second, _signatureOfIt);
        vm.expectRevert(RoundEvidence.NothingWrong.selector);
        _share(1, 3, other);
    }

    function test_members_with_stakes_are_nothing_wrong() public {
        vm.expectRevert(RoundEvidence.NothingWrong.selector);
        evidence.showUnstakedMember(id, 0, _party(1), _proof());
        // The same document, not signed by the coordinator.
        (_text, _signatureOfIt) = _roster(_workers(STRANGER), 0, 1);
        vm.expectRevert(abi.encodeWithSelector(RoundDesk.OtherSigner.selector, _party(1)));
        evidence.showUnstakedMember(id, 0, _party(STRANGER), _proof());
        // And one without that member.
        (_text, _signatureOfIt) = _roster(_workers(1), 0, 0);
        vm.expectPartialRevert(SignedText.OtherText.selector);
        evidence.showUnstakedMember(id, 0, _party(STRANGER), _proof());
    }

    /// @notice Who reads evidence in a block's queue can announce it at best in that block, and is late.
    function test_a_copy_of_evidence_comes_too_late() public {
        bytes memory data =
            abi.encodeCall(RoundEvidence.showTwoClaims, (id, _signed(1, 0, "end"), _signed(1, 0, "another end")));
        bytes32 digest = keccak256(abi.encode(_party(3), id, keccak256(data)));
        _refused(data, abi.encodeWithSelector(Announcements.NotAnnounced.selector, digest));
        evidence.announce(digest);
        _refused(data, abi.encodeWithSelector(Announcements.NotAnnounced.selector, digest));
        vm.roll(vm.getBlockNumber() + 1);
        // Another party's announcement helps nobody.
        vm.prank(_party(2));
        (bool copied,) = address(evidence).call(data);
        vm.assertFalse(copied);
        vm.prank(_party(3));
        (bool done,) = address(evidence).call(data);
        vm.assertTrue(done);
        vm.assertTrue(bonds.bond(id, _party(1)).standing == Standing.Slashed);
    }

    /// @dev By the third worker.
    function _demanded(SignedClaim memory signed) private returns (RoundDemand memory d) {
        bytes32 content = keccak256(abi.encode("roster", _digestOf(signed.claim)));
        uint256 bond = demands.rosterBondOf(id);
        uint64 deadline = uint64(vm.getBlockTimestamp()) + 1 days;
        d = RoundDemand(id, signed.claim.worker, _party(3), deadline, bond, content);
        bytes32 key = keccak256(abi.encode(d));
        vm.expectEmit(address(demands));
        emit RoundDemands.RosterDemanded(id, content, signed);
        vm.expectEmit(address(demands));
        emit TimedDemands.Demanded(id, signed.claim.worker, key, d);
        vm.prank(_party(3));
        vm.assertEq(demands.demandRoster(id, signed, 1 ether), key);
        vm.assertTrue(demands.isOpen(key));
    }

    /// @dev The third worker announces and shows it.
    function _costsTheCoordinator(Falsehood falsehood, bytes memory data) private {
        _announce(_party(3), data);
        vm.expectEmit(address(evidence));
        emit RoundEvidence.Shown(id, _party(0), _party(3), falsehood, _rosterDigest(_text, 0));
        vm.prank(_party(3));
        (bool done,) = address(evidence).call(data);
        vm.assertTrue(done);
        vm.assertTrue(bonds.bond(id, _party(0)).standing == Standing.Slashed);
        _checkBooks();
    }

    /// @dev What shows that a party has the seat of another one, which stands in the roster at hand.
    function _shared(uint256 one, uint256 two, MemberProof memory other) private view returns (bytes memory) {
        return abi.encodeCall(RoundEvidence.showSharedSeat, (id, 0, [_party(one), _party(two)], [_proof(), other]));
    }

    /// @dev Reverts with what the contract says of it.
    function _share(uint256 one, uint256 two, MemberProof memory other) private {
        evidence.showSharedSeat(id, 0, [_party(one), _party(two)], [_proof(), other]);
    }

    function _refused(bytes memory data, bytes memory reason) private {
        vm.prank(_party(3));
        (bool done, bytes memory said) = address(evidence).call(data);
        vm.assertFalse(done);
        vm.assertEq(said, reason);
    }

    function _proof() private view returns (MemberProof memory) {
        return MemberProof(_text, FIRST, _signatureOfIt);
    }

    function _workers(uint256 first) private pure returns (address[] memory workers) {
        workers = new address[](2);
        (workers[0], workers[1]) = (_party(first), _party(3));
    }
}
