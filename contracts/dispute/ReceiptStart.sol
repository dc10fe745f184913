// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {MerkleBranch, TAG_RECEIPT} from "../commitments/MerkleBranch.sol";
import {StartParams} from "./IDisputeGame.sol";
import {Header} from "./Descriptor.sol";
import {FrameHash} from "./FrameHash.sol";
import {MovePayload} from "./MovePayload.sol";
import {Level, Position} from "./Position.sol";
import {Cursor, PackedReader} from "./PackedReader.sol";
import {Transition} from "./Transition.sol";

/// @title ReceiptStart
/// @notice Begins disputes about receipts of execution: the challenger opens its own trace of the step, which has
/// another receipt (docs/spec/dispute.md, Receipts).
library ReceiptStart {
    using PackedReader for Cursor;

    /// @notice Nodes whose outputs a receipt names.
    uint256 internal constant NODES = 4;

    /// @notice A root that is shown does not stand in the trace that is opened.
    error NotInTrace();

    /// @notice The first position: all nodes of one step, of which the asserter has to find one that is wrong.
    /// @dev The state after the step is no part of the claim. It is zero in the frame, so that `openState` is no way
    /// out: nothing hashes to zero.
    /// @param next Becomes it.
    /// @param params Of the dispute: the state before the step in `start`, the receipt in `x`, its seed in `y`.
    /// @param payload For each node that the seed draws `root || branch`, and then the children of the trace.
    function first(
        Position memory next,
        StartParams calldata params,
        Header memory counts,
        bytes32 id,
        bytes calldata payload,
        uint256 width
    ) internal pure {
        Cursor memory rest = PackedReader.over(payload);
        (bytes32 receipt, bytes32 trace) = _shown(params.y, counts.nodes, rest);
        if (receipt == params.x) revert MovePayload.Agreed();
        next.level = Level.NODES;
        next.count = counts.nodes;
        next.height = MerkleBranch.depth(counts.nodes);
        next.frame = FrameHash.replay(id, params.program, params.constants);
        next.frame = FrameHash.step(next.frame, 0, params.start, params.firstStep);
        MovePayload.openSubtree(next, Transition.remainder(rest), width);
        if (next.opening != trace) revert NotInTrace();
    }

    /// @notice Which node of `nodes` is the one at `place` of a receipt.
    function drawn(bytes32 seed, uint256 place, uint256 nodes) internal pure returns (uint256) {
        return uint256(keccak256(abi.encodePacked(seed, uint8(place)))) % nodes;
    }

    /// @dev The receipt of the roots that are shown, and the trace in which all of them stand.
    function _shown(bytes32 seed, uint256 nodes, Cursor memory rest)
        private
        pure
        returns (bytes32 receipt, bytes32 trace)
    {
        bytes memory hashed = abi.encodePacked(TAG_RECEIPT);
        for (uint256 place = 0; place < NODES; ++place) {
            bytes32 root = rest.hash();
            bytes32 above =
                MerkleBranch.climbIn(root, drawn(seed, place, nodes), rest.hashes(MerkleBranch.depth(nodes)), nodes);
            if (place == 0) trace = above;
            else if (above != trace) revert NotInTrace();
            hashed = abi.encodePacked(hashed, root);
        }
        receipt = keccak256(hashed);
    }
}
