// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {MerkleBranch} from "../commitments/MerkleBranch.sol";
import {Clocks} from "./Clock.sol";
import {Dispute, Verb} from "./DisputeStorage.sol";
import {FrameHash} from "./FrameHash.sol";
import {MovePayload} from "./MovePayload.sol";
import {PickedPart} from "./PickedPart.sol";
import {Level, Positions} from "./Position.sol";
import {OpeningSize} from "./OpeningSize.sol";
import {SubtreeMoves} from "./SubtreeMoves.sol";

/// @title StepMoves
/// @notice Answers in STEPS: the states of the picked part of a segment, or the trace of the picked step.
/// @dev Without a position in memory, as `SubtreeMoves`.
abstract contract StepMoves is SubtreeMoves {
    /// @dev Offsets in a move: the state roots before and after the part, and its siblings.
    uint256 private constant AGREED_AT = 57;
    uint256 private constant CLAIMED_AT = 89;
    uint256 private constant SIBLINGS_AT = 121;
    /// @dev Lowest bit of `hi` in a word that begins with a range.
    uint256 private constant HI_BIT = 96;
    uint256 private constant COUNT_MASK = 0xffffffff << COUNT_BIT;

    /// @dev Answers the picked part.
    /// @param move From its number on.
    /// @param number The dispute's.
    /// @param clock Its clock, in STEPS; the move is in time.
    function _answerSteps(bytes calldata move, address mover, uint256 number, uint256 clock) internal {
        (uint256 next, uint256 share) = _part(_wordAt(move, RANGE_AT));
        _requireHead(move, mover, number, clock, share);
        bytes32 opening = _open(move, number, next, share);
        bytes32 frame = bytes32(_wordAt(move, FRAME_AT));
        Level level = Level.STEPS;
        uint256 height = 0;
        if (_size(next) == 1) {
            frame = _frameOf(move, uint64(next >> LO_BIT));
            level = Level.NODES;
            height = MerkleBranch.depth(next >> COUNT_BIT);
            next &= COUNT_MASK;
        }
        uint256 pressed = Clocks.press(clock, mover, level, height, replayGrace);
        Dispute storage d = _at(number);
        d.head = Positions.headOf(frame, opening, Clocks.waiting(clock), pressed, next);
        d.clock = pressed;
    }

    /// @dev What the move opens of the part `next`, in the event; its commitment.
    function _open(bytes calldata move, uint256 number, uint256 next, uint256 share) private returns (bytes32) {
        bytes calldata payload = _behind(move, SIBLINGS_AT + 32 * share);
        _emitMoved(number, Verb.ANSWER, uint8(_wordAt(move, RANGE_AT) >> INDEX_BIT), payload);
        uint256 steps = _size(next);
        if (steps == 1) {
            uint256 nodes = next >> COUNT_BIT;
            uint256 height = MerkleBranch.depth(nodes);
            return MovePayload.subtree(payload, height, 0, nodes, OpeningSize.shareOf(_shares, height));
        }
        bytes32 claimed = bytes32(_wordAt(move, CLAIMED_AT));
        return MovePayload.openSteps(steps, payload, bytes32(_wordAt(move, AGREED_AT)), claimed, width);
    }

    /// @dev Steps in a range.
    function _size(uint256 range) private pure returns (uint256) {
        unchecked {
            // It ends behind its begin.
            return uint64(uint64(range >> HI_BIT) - uint64(range >> LO_BIT));
        }
    }

    /// @dev The range of the part that a move picks from `range`, and the number of its siblings. Neither is looked at
    /// unless the dispute stands at `range`.
    function _part(uint256 range) private view returns (uint256 next, uint256 share) {
        uint256 index = uint8(range >> INDEX_BIT);
        unchecked {
            // A range of 64 bits, at most 64 times.
            uint256 lo = uint64(range >> LO_BIT);
            uint256 steps = _size(range);
            share = OpeningSize.of_(MerkleBranch.depth(steps), width);
            // A range that has fewer steps than parts has 2^share leaves all the same.
            uint256 parts = steps >> share == 0 ? steps : 1 << share;
            if (index >= parts) revert PickedPart.NoSuchPart(index);
            next = (range & COUNT_MASK) | ((lo + index * steps / parts) << LO_BIT)
                | ((lo + (index + 1) * steps / parts) << HI_BIT);
        }
    }

    /// @dev The dispute stands at the move's position, with the opening that its witness leads to.
    function _requireHead(bytes calldata move, address mover, uint256 number, uint256 clock, uint256 share)
        private
        view
    {
        uint256 range = _wordAt(move, RANGE_AT);
        bytes32 leaf = FrameHash.pair(bytes32(_wordAt(move, AGREED_AT)), bytes32(_wordAt(move, CLAIMED_AT)));
        bytes32 opening = MerkleBranch.climb(leaf, uint8(range >> INDEX_BIT), _hashes(move, SIBLINGS_AT, share));
        bytes32 head_ = Positions.headOf(bytes32(_wordAt(move, FRAME_AT)), opening, mover, clock, range);
        if (head_ != _at(number).head) revert WrongHead(mover);
    }

    /// @dev F1 of the picked step.
    function _frameOf(bytes calldata move, uint64 step) private pure returns (bytes32) {
        bytes32 base = bytes32(_wordAt(move, FRAME_AT));
        return FrameHash.step(base, bytes32(_wordAt(move, CLAIMED_AT)), bytes32(_wordAt(move, AGREED_AT)), step);
    }
}
