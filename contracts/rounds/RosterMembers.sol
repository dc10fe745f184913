// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {PlanTerms} from "./PlanTypes.sol";
import {RoundDesk} from "./RoundDesk.sol";
import {RoundSignatures} from "./RoundSignatures.sol";
import {Roster} from "./RoundTypes.sol";
import {SignedText} from "./SignedText.sol";

/// @notice A roster's document, its coordinator's signature, and the byte at which the seat of a member stands
/// (`SignedText.seatOf`).
struct MemberProof {
    bytes text;
    uint256 offset;
    bytes signature;
}

/// @title RosterMembers
/// @notice Who is in a roster is the coordinator's word, by its signature (docs/spec/rounds.md, "On a chain").
library RosterMembers {
    using RoundSignatures for Roster;

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

    /// @notice Reverts unless the coordinator has signed a roster.
    function requireCoordinator(PlanTerms memory t, Roster memory roster, bytes calldata signature) internal pure {
        address signer = RoundSignatures.signer(roster.digest(), signature);
        if (signer != t.coordinator) revert RoundDesk.OtherSigner(signer);
    }
}
