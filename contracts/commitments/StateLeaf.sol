// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Descriptor, Header, SlotView} from "../dispute/Descriptor.sol";
import {LEAF_BYTES, MerkleBranch, PAD, TAG_LEAF, TAG_SLOT, TAG_STATE} from "./MerkleBranch.sol";

/// @notice A leaf of a state and the way from it to the root of a checkpoint log. What stands past the end of a list is
/// padding: there `slot`, `slotBranch`, `leaf` and `branch` are empty, or `leaf` alone past the end of a tensor.
/// @param header Of the task's program.
/// @param slot Descriptor of the slot.
/// @param slotBranch Of that descriptor.
/// @param leaf 256 bytes.
/// @param branch Of the leaf in its tensor.
/// @param tensorBranch Of the tensor in the state.
/// @param logPath Inclusion path of the state root.
struct Piece {
    bytes header;
    bytes slot;
    bytes32[] slotBranch;
    bytes leaf;
    bytes32[] branch;
    bytes32[] tensorBranch;
    bytes32[] logPath;
}

/// @title StateLeaf
/// @notice The state root that follows from one place of a state of a program.
/// @dev Any two numbers name a place: they wrap around at the width of the trees, so padding has places too. A root has
/// an answer for all places only if it is that of a state of the program: the right slots, their types, zeros after the
/// last element, padding.
library StateLeaf {
    uint256 private constant WORD_BYTES = 4;

    /// @notice The bytes are not the header of the task's program.
    error WrongProgram();
    /// @notice The descriptor isn't that of slot `slot` of the program.
    error WrongSlot(uint256 slot);
    /// @notice The leaf has `length` bytes, not `expected`.
    error InvalidLeaf(uint256 length, uint256 expected);
    /// @notice After the last element, from byte `offset` of the leaf on, there are zeros only.
    error NotZero(uint256 offset);

    /// @notice The state root. Reverts if the piece can't be part of a state of the program; whoever asks compares the
    /// root.
    /// @param position Of the slot, counted on from 0 past the width of the tree.
    /// @param leaf Of the leaf in the slot's tensor, counted in the same way.
    function root(Piece calldata piece, bytes32 program, uint256 position, uint256 leaf)
        internal
        pure
        returns (bytes32)
    {
        Header memory header = Descriptor.header(piece.header);
        if (Descriptor.programOf(piece.header) != program) revert WrongProgram();
        uint256 width = 1 << MerkleBranch.depth(header.slots);
        uint256 slot = position % width;
        bytes32 tensor = PAD;
        if (slot < header.slots) tensor = _tensor(piece, header, slot, leaf);
        else if (piece.leaf.length != 0) revert InvalidLeaf(piece.leaf.length, 0);
        bytes32 tree = MerkleBranch.climbIn(tensor, slot, piece.tensorBranch, width);
        return MerkleBranch.listRoot(TAG_STATE, header.slots, tree);
    }

    function _tensor(Piece calldata piece, Header memory header, uint256 slot, uint256 leaf)
        private
        pure
        returns (bytes32)
    {
        bytes32 descriptor = MerkleBranch.tagged(TAG_SLOT, piece.slot);
        if (MerkleBranch.climbIn(descriptor, slot, piece.slotBranch, header.slots) != header.slotsTree) {
            revert WrongSlot(slot);
        }
        SlotView memory s = Descriptor.slot(piece.slot);
        uint256 leaves = Descriptor.leaves(s.tensor.elements);
        uint256 width = 1 << MerkleBranch.depth(leaves);
        uint256 place = leaf % width;
        uint256 expected = place < leaves ? LEAF_BYTES : 0;
        if (piece.leaf.length != expected) revert InvalidLeaf(piece.leaf.length, expected);
        bytes32 hash = PAD;
        if (place < leaves) {
            if (place == leaves - 1) _requireZeros(piece.leaf, s.tensor.elements * WORD_BYTES - place * LEAF_BYTES);
            hash = MerkleBranch.tagged(TAG_LEAF, piece.leaf);
        }
        bytes32 tree = MerkleBranch.climbIn(hash, place, piece.branch, width);
        return MerkleBranch.tensorRoot(piece.slot[s.tensor.begin:s.tensor.end], tree);
    }

    function _requireZeros(bytes calldata leaf, uint256 from) private pure {
        for (uint256 i = from; i < LEAF_BYTES; i += WORD_BYTES) {
            if (bytes4(leaf[i:]) != 0) revert NotZero(i);
        }
    }
}
