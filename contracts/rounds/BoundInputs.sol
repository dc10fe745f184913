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
    /// @notice Bytes of a source: `claim || u32 slot || root`.
    uint256 internal constant SOURCE_BYTES = 68;
    uint256 private constant ROOT_AT = 36;

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
            abi.encodePacked(
                abi.encodePacked(TAG_LEAF, p.name, p.program, p.constants, p.seats, p.steps, p.parts, p.slots),
                abi.encodePacked(p.rules, p.units, uint8(p.author), p.authorIndex)
            )
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

    /// @notice The tree over `H(00 || item)` for items of `size` bytes each, at least one.
    function leavesRoot(bytes calldata items, uint256 size) internal pure returns (bytes32) {
        uint256 row = MerkleBranch.freeRow();
        uint256 count = items.length / size;
        assembly ("memory-safe") {
            // Behind the row, in which nothing is written beyond the leaves.
            let scratch := add(row, shl(5, count))
            mstore8(scratch, TAG_LEAF)
            for { let i := 0 } lt(i, count) { i := add(i, 1) } {
                calldatacopy(add(scratch, 1), add(items.offset, mul(i, size)), size)
                mstore(add(row, shl(5, i)), keccak256(scratch, add(1, size)))
            }
        }
        return MerkleBranch.treeOf(row, count);
    }

    /// @notice The state over the roots of sources, of 68 bytes each.
    function startOf(bytes calldata sources) internal pure returns (bytes32) {
        uint256 row = MerkleBranch.freeRow();
        uint256 count = sources.length / SOURCE_BYTES;
        assembly ("memory-safe") {
            for { let i := 0 } lt(i, count) { i := add(i, 1) } {
                let root := calldataload(add(sources.offset, add(mul(i, SOURCE_BYTES), ROOT_AT)))
                mstore(add(row, shl(5, i)), root)
            }
        }
        return MerkleBranch.listRoot(TAG_STATE, uint32(count), MerkleBranch.treeOf(row, count));
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
        bytes32 leaf = keccak256(
            abi.encodePacked(TAG_LEAF, r.phase, r.slot, uint8(r.giver), r.index, r.part, r.lag, r.initial, r.inherits)
        );
        if (MerkleBranch.climbIn(leaf, slot, proof.branch, phase.slots) != phase.rules) revert NotInRules(slot);
    }

    /// @notice Can a rule give this initial value to a slot of `claim`? What the rosters decide is left open.
    function mayGiveInitial(SourceRule calldata rule, RoundClaim calldata claim, Source calldata source)
        internal
        pure
        returns (bool)
    {
        if (rule.initial == 0 || source.slot != rule.initial - 1) return false;
        if (rule.phase == 0) return true;
        // Nothing is before the first round, and nothing of one's own before the round in which one joins.
        return _lag(rule, claim) != 0 && (claim.round == 0 || (_isOwn(rule) && !rule.inherits));
    }

    /// @notice Can a rule give slot `source.slot` of the claim `named` to a slot of `claim`? What the rosters decide is
    /// left open.
    function mayGive(
        SourceRule calldata rule,
        RoundClaim calldata claim,
        Source calldata source,
        RoundClaim calldata named,
        Phase calldata namedPhase
    ) internal pure returns (bool) {
        if (rule.phase == 0 || namedPhase.name != rule.phase || source.slot != rule.slot) {
            return false;
        }
        if (named.plan != claim.plan || named.round > claim.round) return false;
        uint256 lag = _lag(rule, claim);
        uint256 back = claim.round - named.round;
        if (rule.giver == Giver.Arrival ? back == 0 || back > lag : back != lag) return false;
        bool mayJoin = lag != 0 && rule.inherits;
        if (_isOwn(rule) && named.worker != claim.worker && !mayJoin) return false;
        if (rule.giver == Giver.Route) return named.part == partOf(rule, claim);
        if (rule.giver == Giver.Part && lag == 0) return uint256(named.part) + 1 == claim.part;
        return uint256(named.part) + 1 == namedPhase.parts;
    }

    /// @notice The part of the route that gives a slot to `claim`.
    function partOf(SourceRule calldata rule, RoundClaim calldata claim) internal pure returns (uint32) {
        return rule.part == 0 ? claim.part : rule.part - 1;
    }

    function _lag(SourceRule calldata rule, RoundClaim calldata claim) private pure returns (uint256) {
        return rule.giver == Giver.Part && claim.part == 0 ? 1 : rule.lag;
    }

    function _isOwn(SourceRule calldata rule) private pure returns (bool) {
        return rule.giver == Giver.Own || rule.giver == Giver.Part;
    }
}
