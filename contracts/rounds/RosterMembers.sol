// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Giver, Phase, PlanTerms} from "./PlanTypes.sol";
import {RoundDesk} from "./RoundDesk.sol";
import {RoundSignatures} from "./RoundSignatures.sol";
import {Roster, RoundClaim} from "./RoundTypes.sol";
import {SignedText} from "./SignedText.sol";

/// @notice A roster's document, its coordinator's signature, and the byte at which the seat of a member stands
/// (`SignedText.seatOf`).
struct MemberProof {
    bytes text;
    uint256 offset;
    bytes signature;
}

/// @notice The bytes of a roster at which stands what makes a member the author of a claim.
struct AuthorPlaces {
    uint256 provisional; // of `"provisional":`
    uint256 members; // of `"members":[`
    uint256 routes; // of `"routes":[[`
}

/// @notice Which of a round's rosters it is. Zero: that isn't read.
enum RosterKind {
    Unread,
    Provisional,
    Final
}

/// @notice What a roster says of a worker.
struct RosterFact {
    bytes32 document;
    RosterKind kind;
    address worker;
    uint256 seat; // + 1; zero if it isn't a member
}

/// @notice A roster's document, its coordinator's signature, and the bytes at which stands what is read of it.
struct SignedRoster {
    bytes text;
    uint256 provisional; // of `"provisional":`; zero: it isn't read
    bool isMember;
    uint256 place; // of the seat of a member (`SignedText.seatOf`), or else of `"members":[`
    bytes signature;
}

/// @title RosterMembers
/// @notice Who is in a roster is the coordinator's word, by its signature (docs/spec/rounds.md, "On a chain").
library RosterMembers {
    using RoundSignatures for Roster;

    /// @notice Another roster than the claim names, or than was signed.
    error OtherRoster(bytes32 document);

    /// @notice A roster that the coordinator has signed for a round, and the seat of a member; reverts if it isn't one.
    function requireMember(bytes32 id, PlanTerms memory t, uint64 round, address worker, MemberProof calldata proof)
        internal
        pure
        returns (bytes32 document, uint256 seat)
    {
        document = keccak256(proof.text);
        requireCoordinator(t, Roster(id, round, document), proof.signature);
        seat = SignedText.seatOf(proof.text, proof.offset, worker);
    }

    /// @notice What a roster that the coordinator has signed for a round says of a worker; reverts if it doesn't.
    function factOf(bytes32 id, PlanTerms memory t, uint64 round, address worker, SignedRoster calldata signed)
        internal
        pure
        returns (RosterFact memory fact)
    {
        (fact.document, fact.worker) = (keccak256(signed.text), worker);
        requireCoordinator(t, Roster(id, round, fact.document), signed.signature);
        if (signed.provisional != 0) {
            bool isProvisional = SignedText.isProvisional(signed.text, signed.provisional);
            fact.kind = isProvisional ? RosterKind.Provisional : RosterKind.Final;
        }
        if (signed.isMember) {
            fact.seat = SignedText.seatOf(signed.text, signed.place, worker) + 1;
        } else if (SignedText.placeOf(signed.text, signed.place, worker) != SignedText.NOWHERE) {
            revert SignedText.OtherText(signed.place);
        }
    }

    /// @notice Does the plan leave a claim to its author, by the roster that it names? A place that a phase leaves to one
    /// member has one by the final roster: by the provisional one of the round as well, it would have two.
    function isAuthor(
        Phase calldata phase,
        RoundClaim calldata claim,
        bytes calldata roster,
        AuthorPlaces calldata places
    ) internal pure returns (bool) {
        if (phase.author != Giver.Member && phase.author != Giver.Route) return true;
        if (SignedText.isProvisional(roster, places.provisional)) return false;
        uint256 place = phase.authorIndex;
        if (phase.author == Giver.Route) place = SignedText.routeOf(roster, places.routes, claim.part, place);
        return SignedText.isMember(roster, places.members, place, claim.worker);
    }

    /// @notice Reverts unless the coordinator has signed a roster.
    function requireCoordinator(PlanTerms memory t, Roster memory roster, bytes calldata signature) internal pure {
        address signer = RoundSignatures.signer(roster.digest(), signature);
        if (signer != t.coordinator) revert RoundDesk.OtherSigner(signer);
    }
}
