// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {MerkleBranch, TAG_LEAF, TAG_STATE} from "../commitments/MerkleBranch.sol";
import {Giver, Phase, PhaseProof, PlanTerms, SourceRule} from "./PlanTypes.sol";
import {RoundClaim, Source} from "./RoundTypes.sol";

/// @notice A source of a claim, where it stands in the claim's `sources`.
struct SourceProof {
    uint32 slot; // of the claim's start
    Source source;
    bytes32[] branch;
}

/// @notice A tensor's root, where it stands in a state or among the initial values.
struct TensorProof {
    bytes32 root;
    bytes32[] branch;
}

/// @notice The rule of a slot, where it stands in its phase.
struct RuleProof {
    SourceRule rule;
    bytes32[] branch;
}

/// @title BoundInputs
/// @notice What follows from roots alone: a plan's phases, a claim's sources, and where these lead
/// (docs/spec/rounds.md, "Sources", "On a chain").
library BoundInputs {
    /// @notice The phase isn't the plan's at this index.
    error NotInPlan(uint32 phase);
    /// @notice The source isn't the claim's for this slot.
    error NotInSources(uint32 slot);
    /// @notice The tensor isn't the one at this place.
    error NotAtPlace(uint32 place);
    /// @notice The rule isn't the phase's for this slot.
    error NotInRules(uint32 slot);

    /// @notice Reverts unless the phase of a claim is this one.
    function requirePhase(PlanTerms memory t, uint32 index, PhaseProof calldata proof) internal pure {
        Phase calldata p = proof.phase;
        bytes32 leaf = keccak256(
            abi.encodePacked(TAG_LEAF, p.program, p.constants, p.seats, p.steps, p.parts, p.slots, p.rules, p.units)
        );
        if (MerkleBranch.climbIn(leaf, index, proof.branch, t.phaseCount) != t.phases) revert NotInPlan(index);
    }

    /// @notice Reverts unless this is the source of a slot of the claim.
    function requireSource(RoundClaim calldata claim, uint32 slots, SourceProof calldata proof) internal pure {
        Source calldata s = proof.source;
        bytes32 leaf = keccak256(abi.encodePacked(TAG_LEAF, s.claim, s.slot, s.root));
        if (MerkleBranch.climbIn(leaf, proof.slot, proof.branch, slots) != claim.sources) {
            revert NotInSources(proof.slot);
        }
    }

    /// @notice Reverts unless this is the tensor in a slot of a state.
    function requireTensor(bytes32 state, uint32 slots, uint32 slot, bytes32 root, bytes32[] calldata branch)
        internal
        pure
    {
        bytes32 tree = MerkleBranch.climbIn(root, slot, branch, slots);
        if (MerkleBranch.listRoot(TAG_STATE, slots, tree) != state) revert NotAtPlace(slot);
    }

    /// @notice Reverts unless this is an initial value of the plan.
    function requireInitial(PlanTerms memory t, uint32 index, bytes32 root, bytes32[] calldata branch) internal pure {
        if (MerkleBranch.climbIn(root, index, branch, t.initialCount) != t.initial) {
            revert NotAtPlace(index);
        }
    }

    /// @notice Reverts unless this is the rule of a slot of the phase.
    function requireRule(Phase calldata phase, uint32 slot, RuleProof calldata proof) internal pure {
        SourceRule calldata r = proof.rule;
        bytes32 leaf =
            keccak256(abi.encodePacked(TAG_LEAF, r.phase, r.slot, uint8(r.giver), r.member, r.lag, r.initial));
        if (MerkleBranch.climbIn(leaf, slot, proof.branch, phase.slots) != phase.rules) revert NotInRules(slot);
    }

    /// @notice Can a rule give an initial value to a slot of `claim`? What the rosters decide is left open.
    function mayGiveInitial(SourceRule calldata rule, RoundClaim calldata claim, Source calldata source)
        internal
        pure
        returns (bool)
    {
        if (rule.initial == 0 || source.slot != rule.initial - 1) return false;
        if (rule.phase == 0) return true;
        // In the first round nothing is before it; later only those that have joined have nothing before.
        bool isBefore = rule.giver == Giver.Part ? claim.part == 0 : rule.lag == 1;
        return isBefore && (claim.round == 0 || _isOwn(rule.giver));
    }

    /// @notice Can a rule give the slot `source.slot` of the claim `named` to a slot of `claim`? What the rosters
    /// decide is left open.
    /// @param namedParts Parts of the phase of `named`.
    function mayGive(
        SourceRule calldata rule,
        RoundClaim calldata claim,
        Source calldata source,
        RoundClaim calldata named,
        uint32 namedParts
    ) internal pure returns (bool) {
        if (rule.phase == 0 || named.plan != claim.plan) return false;
        if (named.phase != rule.phase - 1 || source.slot != rule.slot) return false;
        bool isBefore = rule.giver == Giver.Part ? claim.part == 0 : rule.lag == 1;
        if (uint256(named.round) + (isBefore ? 1 : 0) != claim.round) return false;
        if (rule.giver == Giver.Own) return named.part + 1 == namedParts;
        if (rule.giver == Giver.Part) return named.part + 1 == (isBefore ? namedParts : claim.part);
        return rule.giver != Giver.Route || named.part == claim.part;
    }

    /// @notice Has the author of `claim` to be the author of what this rule names? Not if it may have joined in this
    /// round, and takes the slot from another member.
    function isOwn(SourceRule calldata rule, RoundClaim calldata claim) internal pure returns (bool) {
        bool isBefore = rule.giver == Giver.Part ? claim.part == 0 : rule.lag == 1;
        return _isOwn(rule.giver) && !(isBefore && rule.initial == 0);
    }

    function _isOwn(Giver giver) private pure returns (bool) {
        return giver == Giver.Own || giver == Giver.Part;
    }
}
