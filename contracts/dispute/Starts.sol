// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {KIND_DISTANCE, KIND_RECEIPT, KIND_REFERENCE, KIND_REPLAY} from "./DisputeKinds.sol";
import {StartParams} from "./IDisputeGame.sol";
import {Descriptor, Header} from "./Descriptor.sol";
import {FrameHash} from "./FrameHash.sol";
import {IStarts} from "./IStarts.sol";
import {MovePayload} from "./MovePayload.sol";
import {Level, Position} from "./Position.sol";
import {ReceiptStart} from "./ReceiptStart.sol";

/// @title Starts
/// @notice First positions of disputes of every kind (docs/spec/dispute.md, `start`). They take no part in the game's
/// moves, and would not fit into its code.
contract Starts is IStarts {
    uint256 private constant COMPONENTS = 3;

    /// @inheritdoc IStarts
    function first(
        StartParams calldata params,
        bytes calldata header,
        bytes32 id,
        bytes calldata payload,
        uint256 width
    ) external pure returns (Position memory p) {
        Header memory counts = Descriptor.header(header);
        if (Descriptor.programOf(header) != params.program) revert WrongProgram();
        if (params.kind == KIND_REPLAY) {
            if (params.constants == 0 || params.start == 0 || params.end == 0) revert ZeroHash();
            if (params.steps == 0 || params.steps > type(uint32).max) revert InvalidStart();
            if (uint256(params.firstStep) + params.steps > 2 ** 32) revert InvalidStart();
            _replay(p, params, counts, id, payload, width);
            return p;
        }
        if (params.kind == KIND_RECEIPT) {
            if (params.constants == 0 || params.start == 0 || params.x == 0) revert ZeroHash();
            if (params.steps != 1 || params.end != 0 || params.firstStep >= 2 ** 32) revert InvalidStart();
            ReceiptStart.first(p, params, counts, id, payload, width);
            return p;
        }
        if (params.kind != KIND_DISTANCE && params.kind != KIND_REFERENCE) revert InvalidStart();
        if (params.component == 0 || params.component > COMPONENTS) revert InvalidStart();
        if (params.x == 0 || params.y == 0) revert ZeroHash();
        _sum(p, params, counts, id, payload, width);
    }

    /// @dev `p` becomes all steps.
    function _replay(
        Position memory p,
        StartParams calldata params,
        Header memory counts,
        bytes32 id,
        bytes calldata payload,
        uint256 width
    ) private pure {
        p.level = Level.STEPS;
        p.count = counts.nodes;
        p.lo = params.firstStep;
        p.hi = params.firstStep + params.steps;
        p.frame = FrameHash.replay(id, params.program, params.constants);
        p.opening = MovePayload.openSteps(params.steps, payload, params.start, params.end, width);
    }

    /// @dev `p` becomes all slots.
    function _sum(
        Position memory p,
        StartParams calldata params,
        Header memory counts,
        bytes32 id,
        bytes calldata payload,
        uint256 width
    ) private pure {
        p.level = Level.SUM_SLOTS;
        p.hi = counts.slots;
        p.frame = FrameHash.sum(id, params.program, params.x, params.y, params.component);
        MovePayload.openSums(p, payload, bytes32(params.sum), width);
    }
}
