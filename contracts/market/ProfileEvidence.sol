// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {CheckpointLog} from "../commitments/CheckpointLog.sol";
import {KIND_REPLAY} from "../dispute/DisputeKinds.sol";
import {StartParams} from "../dispute/IDisputeGame.sol";
import {IProfiles} from "./IProfiles.sol";
import {ITaskRegistry} from "./ITaskRegistry.sol";
import {ProfileThreshold} from "./ProfileThreshold.sol";
import {Portion, Witness} from "./ProfileTypes.sol";
import {Terms} from "./TaskTypes.sol";

/// @title ProfileEvidence
/// @notice What portions and reruns of a profile show; `Profiles` says what follows from it.
library ProfileEvidence {
    uint8 private constant COMPONENTS = 3;

    /// @dev By component, what follows from its witness.
    function thresholdsOf(Terms memory s, Portion[] calldata portions, bytes32 rerunRoot, Witness[3] calldata witnesses)
        internal
        pure
        returns (uint64[3] memory result)
    {
        for (uint8 c = 0; c < COMPONENTS; ++c) {
            Witness calldata w = witnesses[c];
            if (w.rerun.end == 0) revert ITaskRegistry.ZeroHash();
            requireRerun(s, rerunRoot, w);
            uint256 base = portions[w.index / s.rerunCount].references[c];
            result[c] = ProfileThreshold.fromRerun(w.rerun.distances[c], base, s.margin);
            if (result[c] == 0) revert IProfiles.NoThreshold(c + 1);
        }
    }

    function requirePart(uint32 segment, uint8 component, uint256 portions) internal pure {
        if (segment >= portions || component == 0 || component > COMPONENTS) {
            revert IProfiles.InvalidCharge(segment, component);
        }
    }

    function requireRerun(Terms memory s, bytes32 root, Witness calldata w) internal pure {
        bytes32 leaf = keccak256(abi.encode(w.rerun));
        uint256 size = uint256(s.profiled) * s.rerunCount;
        if (!CheckpointLog.isIncluded(leaf, w.index, size, root, w.path)) revert IProfiles.NotInReruns(w.index);
    }

    /// @dev The state before a profiled segment.
    function startOf(Terms memory s, Portion[] calldata portions, uint32 segment) internal pure returns (bytes32) {
        return segment == 0 ? s.initialState : portions[segment - 1].end;
    }

    /// @dev An execution of a profiled segment; which program's and where it ends says the caller.
    function replayOf(Terms memory s, Portion[] calldata portions, uint32 segment)
        internal
        pure
        returns (StartParams memory params)
    {
        params.kind = KIND_REPLAY;
        params.constants = s.constants;
        params.firstStep = uint64(segment) * s.interval;
        params.steps = s.interval;
        params.start = startOf(s, portions, segment);
    }
}
