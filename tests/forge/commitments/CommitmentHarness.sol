// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {CheckpointLog} from "../../../contracts/commitments/CheckpointLog.sol";
import {LEAF_BYTES, LEAF_WORDS, MerkleBranch, PAD} from "../../../contracts/commitments/MerkleBranch.sol";
import {TAG_CONSTANTS, TAG_INNER, TAG_LEAF, TAG_NODE} from "../../../contracts/commitments/MerkleBranch.sol";
import {TAG_PROGRAM, TAG_SLOT, TAG_STATE, TAG_TENSOR} from "../../../contracts/commitments/MerkleBranch.sol";
import {TAG_TRACE} from "../../../contracts/commitments/MerkleBranch.sol";

/// @notice The functions of `MerkleBranch` and `CheckpointLog`, for tests/commitments/court_cases.py; many calls in
/// one.
contract CommitmentHarness {
    uint256 private constant GAS = 3_000_000;
    uint256 private constant USED = 8192;

    error MemoryChanged();

    /// @dev `words` words that are allocated must stay as they are, and nothing may be allocated. Memory behind them
    /// has been used, too: whoever counts on zeros there is wrong.
    modifier inMemory(uint256 words) {
        uint256[] memory guard = new uint256[](words);
        for (uint256 i = 0; i < words; ++i) {
            guard[i] = type(uint256).max;
        }
        uint256 free;
        assembly {
            free := mload(0x40)
            for { let i := 0 } lt(i, USED) { i := add(i, 32) } {
                mstore(add(free, i), not(0))
            }
        }
        _;
        uint256 free_;
        uint256 zero;
        assembly {
            free_ := mload(0x40)
            zero := mload(0x60)
        }
        if (free_ != free || zero != 0 || guard.length != words) revert MemoryChanged();
        for (uint256 i = 0; i < words; ++i) {
            if (guard[i] != type(uint256).max) revert MemoryChanged();
        }
    }

    /// @notice Calls of the functions below, each with its output or error.
    function each(bytes[] calldata calls) external view returns (bool[] memory successes, bytes[] memory outputs) {
        successes = new bool[](calls.length);
        outputs = new bytes[](calls.length);
        for (uint256 i = 0; i < calls.length; ++i) {
            (successes[i], outputs[i]) = address(this).staticcall{gas: GAS}(calls[i]);
        }
    }

    function constants() external pure returns (uint256[12] memory) {
        return [
            uint256(PAD),
            TAG_LEAF,
            TAG_INNER,
            TAG_TENSOR,
            TAG_STATE,
            TAG_NODE,
            TAG_SLOT,
            TAG_PROGRAM,
            TAG_TRACE,
            TAG_CONSTANTS,
            LEAF_BYTES,
            LEAF_WORDS
        ];
    }

    function depth(uint256 words, uint256 count) external pure inMemory(words) returns (uint256 result) {
        result = MerkleBranch.depth(count);
    }

    function inner(uint256 words, bytes32 left, bytes32 right) external pure inMemory(words) returns (bytes32 result) {
        result = MerkleBranch.inner(left, right);
    }

    function climb(uint256 words, bytes32 leaf, uint256 index, bytes32[] calldata branch)
        external
        pure
        inMemory(words)
        returns (bytes32 result)
    {
        result = MerkleBranch.climb(leaf, index, branch);
    }

    function climbIn(uint256 words, bytes32 leaf, uint256 index, bytes32[] calldata branch, uint256 count)
        external
        pure
        inMemory(words)
        returns (bytes32 result)
    {
        result = MerkleBranch.climbIn(leaf, index, branch, count);
    }

    function root(uint256 words, bytes calldata row, uint256 depth_, uint256 height)
        external
        pure
        inMemory(words)
        returns (bytes32 result)
    {
        result = MerkleBranch.root(row, depth_, height);
    }

    function treeOf(uint256 words, bytes calldata row) external pure inMemory(words) returns (bytes32 result) {
        uint256 place = MerkleBranch.freeRow();
        assembly {
            calldatacopy(place, row.offset, row.length)
        }
        result = MerkleBranch.treeOf(place, row.length / 32);
    }

    function padding(uint256 words, uint256 height) external pure inMemory(words) returns (bytes32 result) {
        result = MerkleBranch.padding(height);
    }

    function tagged(uint256 words, uint8 tag, bytes calldata content) external pure inMemory(words) returns (bytes32) {
        return MerkleBranch.tagged(tag, content);
    }

    function tensorRoot(uint256 words, bytes calldata tensorType, bytes32 tree)
        external
        pure
        inMemory(words)
        returns (bytes32 result)
    {
        result = MerkleBranch.tensorRoot(tensorType, tree);
    }

    /// @dev `count` may have bits above the 32nd, as a value has that assembly has put there.
    function listRoot(uint256 words, uint8 tag, uint256 count, bytes32 tree)
        external
        pure
        inMemory(words)
        returns (bytes32 result)
    {
        uint32 dirty;
        assembly {
            dirty := count
        }
        result = MerkleBranch.listRoot(tag, dirty, tree);
    }

    function leafHash(bytes32 entry) external pure returns (bytes32) {
        return CheckpointLog.leafHash(entry);
    }

    function nodeHash(bytes32 left, bytes32 right) external pure returns (bytes32) {
        return CheckpointLog.nodeHash(left, right);
    }

    function isIncluded(bytes32 entry, uint256 index, uint256 size, bytes32 root_, bytes32[] calldata path)
        external
        pure
        returns (bool)
    {
        return CheckpointLog.isIncluded(entry, index, size, root_, path);
    }

    function isConsistent(uint256 oldSize, bytes32 oldRoot, uint256 size, bytes32 root_, bytes32[] calldata path)
        external
        pure
        returns (bool)
    {
        return CheckpointLog.isConsistent(oldSize, oldRoot, size, root_, path);
    }
}
