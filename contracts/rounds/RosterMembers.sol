// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Giver, Phase, PlanTerms} from "./PlanTypes.sol";
import {RoundDesk} from "./RoundDesk.sol";
import {RoundSignatures} from "./RoundSignatures.sol";
import {Roster, RoundClaim} from "./RoundTypes.sol";
import {SignedText} from "./SignedText.sol";

/// @notice The bytes of a roster at which stands what decides who may make a claim.
struct RosterPlaces {
    uint256 provisional; // of `"provisional":`
    uint256 members; // of `"members":[`
    uint256 routes; // of `"routes":[`
}

/// @notice A roster's document, its coordinator's signature, and the bytes at which stands what is read of it.
struct SignedRoster {
    bytes text;
    RosterPlaces places;
    bool isMember;
    uint256 seat; // of a member (`SignedText.seatOf`)
    bytes signature;
}

/// @notice What a roster says of a worker.
struct RosterFact {
    bytes32 document;
    RosterPlaces places; // a text with two of one kind says two things
    bytes32 begun; // see `SignedText.beginOf`
    address worker;
    uint256 seat; // + 1; zero if it isn't a member
}

/// @title RosterMembers
/// @notice Who is in a roster is the coordinator's word, by its signature (docs/spec/rounds.md, "On a chain").
library RosterMembers {
    using RoundSignatures for Roster;

    /// @notice Another roster than the claim names, or than was signed.
    error OtherRoster(bytes32 document);

    /// @notice What a roster that the coordinator has signed for a round says of a worker; reverts if it doesn't, or if
    /// it doesn't say which of the round's rosters it is: what it makes a member's can be shown to be another's.
    function factOf(bytes32 id, PlanTerms memory t, uint64 round, address worker, SignedRoster calldata signed)
        internal
        pure
        returns (RosterFact memory fact)
    {
        (fact.document, fact.begun) = _read(id, t, round, signed);
        (fact.places, fact.worker) = (signed.places, worker);
        if (signed.isMember) {
            fact.seat = SignedText.seatOf(signed.text, signed.seat, worker) + 1;
        } else if (SignedText.placeOf(signed.text, signed.places.members, worker) != SignedText.NOWHERE) {
            revert SignedText.OtherText(signed.places.members);
        }
    }

    /// @notice The document of such a roster; reverts unless the worker is a member, in any seat.
    function requireMember(bytes32 id, PlanTerms memory t, uint64 round, address worker, SignedRoster calldata signed)
        internal
        pure
        returns (bytes32 document)
    {
        // slither-disable-next-line unused-return
        (document,) = _read(id, t, round, signed);
        // slither-disable-next-line unused-return
        SignedText.seatOf(signed.text, signed.seat, worker);
    }

    /// @notice Does the plan leave a claim to its author, by the roster that it names? A place that a phase leaves to
    /// one member has one by the final roster: by the provisional one of the round as well, it would have two.
    function isAuthor(
        Phase calldata phase,
        RoundClaim calldata claim,
        bytes calldata roster,
        RosterPlaces calldata places
    ) internal pure returns (bool) {
        if (phase.author != Giver.Member && phase.author != Giver.Route) return true;
        if (SignedText.beginOf(roster, places.provisional) == SignedText.ITSELF) return false;
        uint256 place = phase.authorIndex;
        if (phase.author == Giver.Route) place = SignedText.routeOf(roster, places.routes, claim.part, place);
        return SignedText.isMember(roster, places.members, place, claim.worker);
    }

    function _read(bytes32 id, PlanTerms memory t, uint64 round, SignedRoster calldata signed)
        private
        pure
        returns (bytes32 document, bytes32 begun)
    {
        document = keccak256(signed.text);
        address signer = RoundSignatures.signer(Roster(id, round, document).digest(), signed.signature);
        if (signer != t.coordinator) revert RoundDesk.OtherSigner(signer);
        begun = SignedText.beginOf(signed.text, signed.places.provisional);
        SignedText.requireLists(signed.text, signed.places.members, signed.places.routes);
    }
}
