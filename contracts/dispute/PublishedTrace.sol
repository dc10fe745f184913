// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {MerkleBranch, TAG_NODE, TAG_STATE, TAG_STEP, TAG_TRACES} from "../commitments/MerkleBranch.sol";
import {StartParams} from "./IDisputeGame.sol";
import {Descriptor, Header, NodeOutline} from "./Descriptor.sol";
import {FrameHash} from "./FrameHash.sol";
import {MovePayload} from "./MovePayload.sol";
import {Level, Position} from "./Position.sol";
import {Cursor, PackedReader} from "./PackedReader.sol";
import {Transition} from "./Transition.sol";

/// @title PublishedTrace
/// @notice Begins disputes about published traces: branches show what else would take moves (docs/spec/dispute.md,
/// Published traces). Reverts if what is shown does not stand in what was published, or if the challenger opens what it
/// shows.
library PublishedTrace {
    using PackedReader for Cursor;

    /// @notice What is shown of the claim is neither a node nor a leaf nor a state.
    error UnknownPart(uint256 what);
    /// @notice What is shown does not stand in what was published.
    error NotPublished();

    uint256 private constant NODE = 1;
    uint256 private constant LEAF = 2;
    uint256 private constant STATE = 3;

    /// @notice The first position.
    /// @param next Becomes it.
    /// @param params Of the dispute; the kind and the players are not looked at.
    /// @param counts Of the program.
    /// @param id Of the dispute.
    /// @param payload What is shown, and then what the challenger opens.
    /// @param width Levels that an opening shows at most.
    function first(
        Position memory next,
        StartParams calldata params,
        Header memory counts,
        bytes32 id,
        bytes calldata payload,
        uint256 width
    ) internal pure {
        Cursor memory rest = PackedReader.over(payload);
        uint256 what = rest.number(1);
        (bytes32 frame, bytes32 trace, bytes32 claimed) = _enterStep(params, rest, id, what == STATE);
        if (what == STATE) {
            _openState(next, FrameHash.pair(frame, trace), counts.slots, claimed, Transition.remainder(rest), width);
            return;
        }
        next.frame = frame;
        if (what == NODE) _openNode(next, rest, counts, trace, width);
        else if (what == LEAF) _openLeaf(next, rest, counts, trace);
        else revert UnknownPart(what);
    }

    /// @dev Reads `u32 s || pre || trace || branch`, and for a state the same of the next step.
    /// @return frame F1.
    /// @return trace Of the step.
    /// @return claimed The state after it, if that is disputed.
    function _enterStep(StartParams calldata params, Cursor memory rest, bytes32 id, bool isState)
        private
        pure
        returns (bytes32 frame, bytes32 trace, bytes32 claimed)
    {
        uint256 index = rest.number(4);
        bytes32 pre;
        (pre, trace) = _step(params, rest, index);
        if (index == 0) pre = params.start;
        frame = FrameHash.replay(id, params.program, params.constants);
        // The index is below the number of steps, and the last step has a number.
        frame = FrameHash.step(frame, params.end, pre, uint64(params.firstStep + index));
        claimed = params.end;
        if (isState && index + 1 < params.steps) (claimed,) = _step(params, rest, index + 1);
    }

    /// @dev Reads `pre || trace || branch` of step `index` of the segment.
    function _step(StartParams calldata params, Cursor memory rest, uint256 index)
        private
        pure
        returns (bytes32 pre, bytes32 trace)
    {
        (pre, trace) = (rest.hash(), rest.hash());
        bytes32[] calldata branch = rest.hashes(MerkleBranch.depth(params.steps));
        bytes32 leaf = keccak256(abi.encodePacked(TAG_STEP, pre, trace));
        bytes32 tree = MerkleBranch.climbIn(leaf, index, branch, params.steps);
        if (MerkleBranch.listRoot(TAG_TRACES, uint32(params.steps), tree) != params.x) revert NotPublished();
    }

    /// @dev Reads `u32 node || root || branch`: a node's root where the trace has it.
    function _readRoot(Cursor memory rest, uint256 nodes, bytes32 trace)
        private
        pure
        returns (uint256 index, bytes32 root)
    {
        index = rest.number(4);
        root = rest.hash();
        bytes32[] calldata branch = rest.hashes(MerkleBranch.depth(nodes));
        if (MerkleBranch.climbIn(root, index, branch, nodes) != trace) revert NotPublished();
    }

    /// @dev Reads `branch || u16 length || descriptor` of a node; `next.frame`, F1, becomes the node frame,
    /// `next.count` the elements.
    /// @return tensorType Of the output.
    function _readNode(Position memory next, Cursor memory rest, Header memory counts, bytes32 trace, uint256 index)
        private
        pure
        returns (bytes calldata tensorType)
    {
        next.frame = FrameHash.pick(next.frame, trace, MerkleBranch.depth(counts.nodes));
        bytes calldata descriptor = Transition.descriptorAt(rest, TAG_NODE, index, counts.nodes, counts.nodesTree);
        NodeOutline memory node = Descriptor.outline(descriptor);
        next.count = node.output.elements;
        // The casts fit: see `outline`.
        next.frame = FrameHash.node(
            next.frame, keccak256(descriptor), uint32(index), uint64(node.terms), node.init, uint8(node.instructions)
        );
        return descriptor[node.output.begin:node.output.end];
    }

    /// @dev The challenger's own output of a node: its children, or its only leaf.
    function _openNode(Position memory next, Cursor memory rest, Header memory counts, bytes32 trace, uint256 width)
        private
        pure
    {
        (uint256 index, bytes32 root) = _readRoot(rest, counts.nodes, trace);
        bytes calldata tensorType = _readNode(next, rest, counts, trace, index);
        bytes32 tree = Transition.openOutput(next, next.count, Transition.remainder(rest), width);
        if (MerkleBranch.tensorRoot(tensorType, tree) == root) revert MovePayload.Agreed();
    }

    /// @dev Reads `u64 leaf || leaf hash || branch` behind a node, and the challenger's own leaf.
    function _openLeaf(Position memory next, Cursor memory rest, Header memory counts, bytes32 trace) private pure {
        (uint256 index, bytes32 root) = _readRoot(rest, counts.nodes, trace);
        bytes calldata tensorType = _readNode(next, rest, counts, trace, index);
        next.level = Level.LEAF;
        next.lo = rest.number(8);
        bytes32 claimed = rest.hash();
        uint256 leaves = Descriptor.leaves(next.count);
        bytes32[] calldata branch = rest.hashes(MerkleBranch.depth(leaves));
        bytes32 tree = MerkleBranch.climbIn(claimed, next.lo, branch, leaves);
        if (MerkleBranch.tensorRoot(tensorType, tree) != root) revert NotPublished();
        if (MovePayload.openLeaf(next, Transition.remainder(rest)) == claimed) revert MovePayload.Agreed();
    }

    /// @dev The children of the challenger's state, which is not the one that was claimed.
    function _openState(
        Position memory next,
        bytes32 frame,
        uint32 slots,
        bytes32 claimed,
        bytes calldata payload,
        uint256 width
    ) private pure {
        next.level = Level.STATE;
        next.count = slots;
        next.height = MerkleBranch.depth(slots);
        next.frame = frame;
        MovePayload.openSubtree(next, payload, width);
        if (MerkleBranch.listRoot(TAG_STATE, slots, next.opening) == claimed) revert MovePayload.Agreed();
    }
}
