// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {MerkleBranch} from "../commitments/MerkleBranch.sol";
import {Clocks} from "./Clock.sol";
import {Descriptor} from "./Descriptor.sol";
import {Dispute, DisputeStorage, Verb} from "./DisputeStorage.sol";
import {FrameHash} from "./FrameHash.sol";
import {MovePayload} from "./MovePayload.sol";
import {PickedPart} from "./PickedPart.sol";
import {Level, Positions, WITNESS_AT} from "./Position.sol";
import {OpeningSize} from "./OpeningSize.sol";

/// @title SubtreeMoves
/// @notice Answers with children of a subtree against children of a subtree, in NODES, LEAVES and STATE: most moves of
/// a dispute.
/// @dev The rules are those of the other moves (`PickedPart`, `MovePayload`, `Transition`), without a position in
/// memory: that halves what they cost.
abstract contract SubtreeMoves is DisputeStorage {
    /// @dev Offsets in a move: frame; range, that is count, lo and hi, 20 bytes, and the index behind them.
    uint256 internal constant FRAME_AT = 4;
    uint256 internal constant RANGE_AT = 36;
    /// @dev Lowest bits of count, lo and index in a word that begins with a range.
    uint256 internal constant COUNT_BIT = 224;
    uint256 internal constant LO_BIT = 160;
    uint256 internal constant INDEX_BIT = 88;

    /// @dev Answers below the picked child of a subtree, whose children are higher than 0.
    /// @param move From its number on.
    /// @param number The dispute's.
    /// @param clock Its clock; the move is in time.
    /// @param share Levels that lie open.
    function _answerSubtree(bytes calldata move, address mover, uint256 number, uint256 clock, uint256 share) internal {
        uint256 below = Clocks.height(clock) - share;
        bytes32 frame = _matchHead(move, mover, number, clock, share);
        bytes32 root = _open(move, number, clock, share, below);
        if (uint256(root) == _wordAt(move, WITNESS_AT)) revert MovePayload.Agreed();
        _enter(_wordAt(move, RANGE_AT), number, clock, mover, below, frame, root);
    }

    /// @dev What the move opens, in the event; its root.
    function _open(bytes calldata move, uint256 number, uint256 clock, uint256 share, uint256 below)
        private
        returns (bytes32)
    {
        bytes calldata payload = _payload(move, clock, share, below);
        _emitMoved(number, Verb.ANSWER, uint8(_wordAt(move, RANGE_AT) >> INDEX_BIT), payload);
        uint256 opened = OpeningSize.shareOf(_shares, below);
        return MerkleBranch.root(payload, opened, below - opened);
    }

    /// @dev The dispute stands at the move's position with the opening that its witness leads to. The frame of what
    /// lies below.
    function _matchHead(bytes calldata move, address mover, uint256 number, uint256 clock, uint256 share)
        private
        view
        returns (bytes32 frame)
    {
        uint256 range = _wordAt(move, RANGE_AT);
        frame = bytes32(_wordAt(move, FRAME_AT));
        bytes32 opening = MerkleBranch.climb(
            bytes32(_wordAt(move, WITNESS_AT)), uint8(range >> INDEX_BIT), _hashes(move, WITNESS_AT + 32, share)
        );
        if (Positions.headOf(frame, opening, mover, clock, range) != _at(number).head) revert WrongHead(mover);
        if (Clocks.level(clock) == Level.NODES) frame = FrameHash.pick(frame, opening, Clocks.height(clock));
    }

    /// @dev The side that waited is on turn below the picked child. `range` is that of the move.
    function _enter(
        uint256 range,
        uint256 number,
        uint256 clock,
        address mover,
        uint256 below,
        bytes32 frame,
        bytes32 opening
    ) private {
        Dispute storage d = _at(number);
        uint256 next = Clocks.press(clock, mover, Clocks.level(clock), below, moveGrace);
        unchecked {
            // `lo` moves by `index` subtrees, and stays below the number of leaves.
            range += uint256(uint8(range >> INDEX_BIT)) << (LO_BIT + below);
        }
        d.head = Positions.headOf(frame, opening, Clocks.waiting(clock), next, range);
        d.clock = next;
    }

    /// @dev What follows the witness: as many children as there are below a child that there is.
    function _payload(bytes calldata move, uint256 clock, uint256 share, uint256 below)
        private
        view
        returns (bytes calldata payload)
    {
        uint256 range = _wordAt(move, RANGE_AT);
        uint256 leaves = range >> COUNT_BIT;
        if (Clocks.level(clock) == Level.LEAVES) leaves = Descriptor.leaves(leaves);
        uint256 index = uint8(range >> INDEX_BIT);
        uint256 expected;
        unchecked {
            uint256 lo = uint256(uint64(range >> LO_BIT)) + (index << below);
            if (index >> share != 0 || lo >= leaves) revert PickedPart.NoSuchPart(index);
            uint256 opened = OpeningSize.shareOf(_shares, below);
            expected = 32 * OpeningSize.existing(lo, leaves, below - opened, 1 << opened);
        }
        payload = _behind(move, WITNESS_AT + 32 + 32 * share);
        if (payload.length != expected) revert MovePayload.WrongPayloadLength(payload.length, expected);
    }

    /// @dev All from byte `offset` on; nothing if the move is shorter.
    function _behind(bytes calldata move, uint256 offset) internal pure returns (bytes calldata rest) {
        assembly ("memory-safe") {
            rest.offset := add(move.offset, offset)
            rest.length := mul(sub(move.length, offset), gt(move.length, offset))
        }
    }

    /// @dev `count` hashes from byte `offset` on.
    function _hashes(bytes calldata move, uint256 offset, uint256 count)
        internal
        pure
        returns (bytes32[] calldata hashes)
    {
        assembly ("memory-safe") {
            hashes.offset := add(move.offset, offset)
            hashes.length := count
        }
    }

    function _wordAt(bytes calldata move, uint256 offset) internal pure returns (uint256 word) {
        assembly ("memory-safe") {
            word := calldataload(add(move.offset, offset))
        }
    }
}
