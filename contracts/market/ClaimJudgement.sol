// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {CheckpointLog} from "../commitments/CheckpointLog.sol";
import {Acceptance} from "./Acceptance.sol";
import {ProofOfTask} from "./IProofRegistry.sol";
import {ITaskRegistry} from "./ITaskRegistry.sol";
import {IVerdicts, Look} from "./IVerdicts.sol";
import {MarketDesk} from "./MarketDesk.sol";
import {SecondLook} from "./SecondLook.sol";
import {Claim, LogProof, Terms} from "./TaskTypes.sol";

/// @dev By which rule claims are judged, and how far that is.
struct Rule {
    bool exact;
    uint32 interval;
    uint32 seating;
    uint32 looks;
    uint32 lookMargin;
    uint64[3] thresholds;
    uint256 looked; // second looks used
    uint32 rejecting; // claims that nothing excuses
    uint32 differing; // of those, the ones whose replay does not end where the solver did
}

/// @title ClaimJudgement
/// @notice What the claims of a verdict say (docs/spec/verdict.md); `Verdicts` says what becomes of them.
abstract contract ClaimJudgement is IVerdicts, MarketDesk {
    /// @dev By which rule, how many claims reject, and the hash of all entries.
    function _judge(
        bytes32 taskId,
        uint32 number,
        Claim[] calldata claims,
        LogProof[] calldata logProofs,
        Look[] calldata looks
    ) internal returns (Rule memory rule, bytes32 hash) {
        _requireInLog(taskId, claims, logProofs);
        rule = _rule(taskId);
        rule.seating = number;
        bytes32[] memory entries = new bytes32[](claims.length);
        for (uint32 i = 0; i < entries.length; ++i) {
            entries[i] = _judgeClaim(taskId, i, rule, claims[i], looks);
        }
        if (rule.looked != looks.length) revert WrongLook(looks.length);
        hash = keccak256(abi.encodePacked(entries));
    }

    /// @dev The entry of one claim.
    function _judgeClaim(bytes32 taskId, uint32 i, Rule memory rule, Claim calldata claim, Look[] calldata looks)
        private
        returns (bytes32)
    {
        _requireReceipt(rule, i, claim);
        emit ClaimPosted(taskId, rule.seating, i, claim);
        bytes32 look;
        if (!Acceptance.accepts(rule.exact, rule.thresholds, claim)) look = _lookAt(taskId, i, rule, claim, looks);
        return _entry(claim, look);
    }

    /// @dev In exact mode the end of a segment is known to everybody; what lies before it is not.
    function _requireReceipt(Rule memory rule, uint32 i, Claim calldata claim) private pure {
        bool given = claim.before != 0 && claim.receipt != 0;
        bool none = claim.before == 0 && claim.receipt == 0;
        if (rule.exact ? !given : !none) revert WrongReceipt(i);
        // All steps of a segment but one, if there is no other; nobody executes from or to what is no state.
        bool isReplayed = claim.start != 0 && claim.end != 0;
        if (rule.exact && rule.interval == 1 && isReplayed && claim.before != claim.start) revert WrongReceipt(i);
    }

    /// @dev What a second look says about a claim that the thresholds reject.
    function _lookAt(bytes32 taskId, uint32 i, Rule memory rule, Claim calldata claim, Look[] calldata looks)
        private
        returns (bytes32 look)
    {
        bool excused = false;
        if (rule.looks > 0 && SecondLook.isDue(rule.thresholds, claim)) {
            if (rule.looked == looks.length) revert WrongLook(i);
            Look calldata l = looks[rule.looked++];
            _requireLook(rule, l, claim.segment, i);
            emit LookPosted(taskId, rule.seating, i, l.reruns);
            look = keccak256(abi.encode(l.reruns));
            excused = SecondLook.accepts(rule.thresholds, claim, l.reruns, rule.lookMargin);
        }
        if (excused) return look;
        ++rule.rejecting;
        if (!Acceptance.isRepeated(claim)) ++rule.differing;
    }

    function _requireLook(Rule memory rule, Look calldata look, uint32 segment, uint256 index) private pure {
        if (look.segment != segment || look.reruns.length != rule.looks) revert WrongLook(index);
        for (uint256 j = 0; j < look.reruns.length; ++j) {
            if (look.reruns[j].end == 0) revert ITaskRegistry.ZeroHash();
        }
    }

    /// @dev One claim for each drawn segment, between two entries of the solver's log.
    function _requireInLog(bytes32 taskId, Claim[] calldata claims, LogProof[] calldata logProofs) private view {
        uint32[] memory segments = proofs.drawnSegments(taskId);
        if (claims.length != segments.length || logProofs.length != segments.length) {
            revert WrongClaimCount(segments.length);
        }
        ProofOfTask memory p = proofs.proof(taskId);
        for (uint256 i = 0; i < segments.length; ++i) {
            Claim calldata claim = claims[i];
            uint64 entry = segments[i];
            if (claim.segment != entry) revert WrongSegment(i, segments[i]);
            if (claim.replay == 0) revert ITaskRegistry.ZeroHash();
            if (!CheckpointLog.isIncluded(claim.start, entry, p.size, p.root, logProofs[i].start)) {
                revert NotInLog(entry);
            }
            if (!CheckpointLog.isIncluded(claim.end, entry + 1, p.size, p.root, logProofs[i].end)) {
                revert NotInLog(entry + 1);
            }
        }
    }

    /// @dev By which rule claims of a task are judged.
    function _rule(bytes32 taskId) internal view returns (Rule memory rule) {
        Terms memory s = registry.terms(taskId);
        (rule.exact, rule.interval, rule.looks, rule.lookMargin) = (s.margin == 0, s.interval, s.looks, s.lookMargin);
        if (!rule.exact) rule.thresholds = profiles.thresholds(taskId);
    }

    /// @dev What `claims` hashes of a claim.
    function _entry(Claim memory claim, bytes32 look) internal pure returns (bytes32) {
        return keccak256(abi.encode(keccak256(abi.encode(claim)), look));
    }
}
