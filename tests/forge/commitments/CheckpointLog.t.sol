// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {CheckpointLog} from "../../../contracts/commitments/CheckpointLog.sol";
import {Base} from "../Base.sol";
import {NaiveLog} from "./NaiveLog.sol";

/// @notice Puts paths into calldata, where the library wants them.
contract Verifier {
    function isIncluded(bytes32 entry, uint256 index, uint256 size, bytes32 root, bytes32[] calldata path)
        external
        pure
        returns (bool)
    {
        return CheckpointLog.isIncluded(entry, index, size, root, path);
    }

    function isConsistent(uint256 oldSize, bytes32 oldRoot, uint256 size, bytes32 root, bytes32[] calldata path)
        external
        pure
        returns (bool)
    {
        return CheckpointLog.isConsistent(oldSize, oldRoot, size, root, path);
    }
}

contract CheckpointLogTest is Base {
    uint256 private constant MAX = 34;

    Verifier private verifier = new Verifier();
    bytes32[] private log;

    function setUp() public {
        for (uint256 i = 0; i < MAX; ++i) {
            log.push(keccak256(abi.encode("entry", i)));
        }
    }

    function test_leaf_and_node_hashes_follow_the_rfc() public pure {
        vm.assertEq(
            CheckpointLog.leafHash(bytes32(uint256(7))), sha256(abi.encodePacked(uint8(0), bytes32(uint256(7))))
        );
        vm.assertEq(CheckpointLog.nodeHash("l", "r"), sha256(abi.encodePacked(uint8(1), bytes32("l"), bytes32("r"))));
    }

    /// @dev Roots by an independent implementation (pymerkle), see tests/incentives/test_market_vectors.py.
    function test_inclusion_vectors() public view {
        string memory json = vm.readFile("fixtures/vectors/checkpoint_log.json");
        uint256[] memory indices = vm.parseJsonUintArray(json, ".inclusion_index");
        vm.assertGt(indices.length, 0);
        for (uint256 i = 0; i < indices.length; ++i) {
            string memory position = string.concat("[", vm.toString(i), "]");
            uint256 size = vm.parseJsonUint(json, string.concat(".inclusion_size", position));
            bytes32[] memory path = vm.parseJsonBytes32Array(json, string.concat(".inclusion_path", position));
            vm.assertTrue(
                verifier.isIncluded(_entry(json, indices[i]), indices[i], size, _root(json, size), path), position
            );
        }
    }

    function test_consistency_vectors() public view {
        string memory json = vm.readFile("fixtures/vectors/checkpoint_log.json");
        uint256[] memory sizes = vm.parseJsonUintArray(json, ".consistency_size");
        vm.assertGt(sizes.length, 0);
        for (uint256 i = 0; i < sizes.length; ++i) {
            string memory position = string.concat("[", vm.toString(i), "]");
            uint256 oldSize = vm.parseJsonUint(json, string.concat(".consistency_old_size", position));
            bytes32[] memory path = vm.parseJsonBytes32Array(json, string.concat(".consistency_path", position));
            vm.assertTrue(
                verifier.isConsistent(oldSize, _root(json, oldSize), sizes[i], _root(json, sizes[i]), path), position
            );
        }
    }

    function test_every_entry_of_every_log_up_to_17_is_included_and_only_there() public view {
        for (uint256 size = 1; size <= 17; ++size) {
            bytes32[] memory entries = log;
            bytes32 root = NaiveLog.root(entries, 0, size);
            for (uint256 index = 0; index < size; ++index) {
                bytes32[] memory path = NaiveLog.inclusionPath(entries, index, 0, size);
                vm.assertTrue(verifier.isIncluded(entries[index], index, size, root, path));
                for (uint256 other = 0; other <= size; ++other) {
                    if (other != index) vm.assertFalse(verifier.isIncluded(entries[index], other, size, root, path));
                }
            }
        }
    }

    function test_every_pair_of_logs_up_to_17_is_consistent() public view {
        bytes32[] memory entries = log;
        for (uint256 size = 1; size <= 17; ++size) {
            bytes32 root = NaiveLog.root(entries, 0, size);
            for (uint256 oldSize = 1; oldSize <= size; ++oldSize) {
                bytes32 oldRoot = NaiveLog.root(entries, 0, oldSize);
                bytes32[] memory path = NaiveLog.consistencyPath(entries, oldSize, size);
                vm.assertTrue(verifier.isConsistent(oldSize, oldRoot, size, root, path));
                vm.assertFalse(verifier.isConsistent(oldSize, ~oldRoot, size, root, path));
                vm.assertFalse(verifier.isConsistent(oldSize, oldRoot, size, ~root, path));
                if (oldSize < size) {
                    vm.assertFalse(verifier.isConsistent(oldSize, oldRoot, oldSize, oldRoot, path));
                    vm.assertFalse(verifier.isConsistent(size, root, oldSize, oldRoot, path));
                }
            }
        }
    }

    function testFuzz_inclusion_rejects_any_change(uint256 size, uint256 index, uint256 change, bytes32 noise)
        public
        view
    {
        size = bound(size, 1, MAX);
        index = bound(index, 0, size - 1);
        bytes32[] memory entries = log;
        bytes32 root = NaiveLog.root(entries, 0, size);
        bytes32[] memory path = NaiveLog.inclusionPath(entries, index, 0, size);
        vm.assertTrue(verifier.isIncluded(entries[index], index, size, root, path));
        vm.assertFalse(verifier.isIncluded(entries[index], index, size, root, NaiveLog.append(path, noise)));
        vm.assertFalse(verifier.isIncluded(noise, index, size, root, path));
        vm.assertFalse(verifier.isIncluded(entries[index], size, size, root, path));
        if (path.length == 0) return;
        change = bound(change, 0, path.length - 1);
        bytes32 honest = path[change];
        path[change] = noise;
        vm.assertEq(verifier.isIncluded(entries[index], index, size, root, path), honest == noise);
        path[change] = honest;
        vm.assertFalse(verifier.isIncluded(entries[index], index, size, root, _drop(path, change)));
    }

    function testFuzz_consistency_rejects_any_change(uint256 size, uint256 oldSize, uint256 change, bytes32 noise)
        public
        view
    {
        size = bound(size, 2, MAX);
        oldSize = bound(oldSize, 1, size - 1);
        bytes32[] memory entries = log;
        bytes32 oldRoot = NaiveLog.root(entries, 0, oldSize);
        bytes32 root = NaiveLog.root(entries, 0, size);
        bytes32[] memory path = NaiveLog.consistencyPath(entries, oldSize, size);
        vm.assertFalse(verifier.isConsistent(oldSize, oldRoot, size, root, NaiveLog.append(path, noise)));
        change = bound(change, 0, path.length - 1);
        vm.assertFalse(verifier.isConsistent(oldSize, oldRoot, size, root, _drop(path, change)));
        path[change] = ~path[change];
        vm.assertFalse(verifier.isConsistent(oldSize, oldRoot, size, root, path));
    }

    function testFuzz_a_rewritten_entry_is_no_extension(uint256 size, uint256 oldSize, uint256 index) public view {
        size = bound(size, 2, MAX);
        oldSize = bound(oldSize, 1, size - 1);
        index = bound(index, 0, oldSize - 1);
        bytes32[] memory entries = log;
        bytes32 oldRoot = NaiveLog.root(entries, 0, oldSize);
        entries[index] = ~entries[index];
        bytes32 root = NaiveLog.root(entries, 0, size);
        bytes32[] memory path = NaiveLog.consistencyPath(entries, oldSize, size);
        vm.assertFalse(verifier.isConsistent(oldSize, oldRoot, size, root, path));
    }

    function testFuzz_garbage_is_false_and_never_reverts(
        uint64 index,
        uint64 size,
        bytes32 root,
        bytes32 entry,
        bytes32[] calldata path
    ) public view {
        vm.assertFalse(verifier.isIncluded(entry, index, size, root, path));
        vm.assume(index != 0 && index != size);
        vm.assertFalse(verifier.isConsistent(index, entry, size, root, path));
    }

    /// @dev A root of a deeper tree than the size allows: every hash fits, only the length of the path is wrong.
    function testFuzz_a_tree_has_the_depth_of_its_size(uint256 size, uint256 oldSize, bytes32 top) public view {
        size = bound(size, 2, MAX);
        oldSize = bound(oldSize, 1, size - 1);
        bytes32[] memory entries = log;
        bytes32 oldRoot = CheckpointLog.nodeHash(top, NaiveLog.root(entries, 0, oldSize));
        bytes32 root = CheckpointLog.nodeHash(top, NaiveLog.root(entries, 0, size));
        bytes32[] memory path = NaiveLog.append(NaiveLog.inclusionPath(entries, oldSize, 0, size), top);
        vm.assertFalse(verifier.isIncluded(entries[oldSize], oldSize, size, root, path));
        path = NaiveLog.append(NaiveLog.consistencyPath(entries, oldSize, size), top);
        vm.assertFalse(verifier.isConsistent(oldSize, oldRoot, size, root, path));
    }

    function test_empty_and_equal_logs() public view {
        bytes32[] memory none = new bytes32[](0);
        bytes32[] memory one = new bytes32[](1);
        vm.assertTrue(verifier.isConsistent(0, 0, 3, "root", none));
        vm.assertFalse(verifier.isConsistent(0, 0, 3, "root", one));
        vm.assertTrue(verifier.isConsistent(3, "root", 3, "root", none));
        vm.assertFalse(verifier.isConsistent(3, "root", 3, "other", none));
        vm.assertFalse(verifier.isConsistent(3, "root", 3, "root", one));
        vm.assertFalse(verifier.isIncluded("entry", 0, 0, "root", none));
    }

    function _entry(string memory json, uint256 index) private pure returns (bytes32) {
        return vm.parseJsonBytes32(json, string.concat(".entries[", vm.toString(index), "]"));
    }

    function _root(string memory json, uint256 size) private pure returns (bytes32) {
        return vm.parseJsonBytes32(json, string.concat(".roots[", vm.toString(size - 1), "]"));
    }

    function _drop(bytes32[] memory path, uint256 index) private pure returns (bytes32[] memory shorter) {
        shorter = new bytes32[](path.length - 1);
        for (uint256 i = 0; i < shorter.length; ++i) {
            shorter[i] = path[i < index ? i : i + 1];
        }
    }
}
