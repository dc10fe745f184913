// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Chunk, Demand, Run} from "../../../contracts/commitments/ILearningLog.sol";
import {LearningLog} from "../../../contracts/commitments/LearningLog.sol";
import {Base} from "../Base.sol";
import {NaiveLog} from "./NaiveLog.sol";
import {NaiveTree} from "./NaiveTree.sol";

/// @notice A learning log with one run, and docs/spec/complete_state.md once more as plainly as possible: states, roots
/// and chunks.
abstract contract LearningLogBase is Base {
    struct Entry {
        bytes name;
        bytes form;
        bytes data;
    }

    uint256 internal constant PUBLISHER_KEY = 0xb0b;
    bytes32 internal constant RUN = keccak256("run");
    uint32 internal constant WINDOW = 1 days;
    uint32 internal constant EXIT_DELAY = 30 days;
    uint128 internal constant PRICE = 0.001 ether;
    uint256 internal constant STAKE = 10 ether;
    uint256 internal constant BASE_FEE = 20 gwei;
    uint256 internal constant BOND = PRICE + 200_000 * BASE_FEE;
    uint256 internal constant START = 1_800_000_000;

    LearningLog internal logs;
    address internal publisher;
    address internal demander;
    address internal stranger;
    bytes32 internal id;

    function setUp() public virtual {
        vm.warp(START);
        vm.fee(BASE_FEE);
        logs = new LearningLog();
        publisher = vm.addr(PUBLISHER_KEY);
        demander = account("demander");
        stranger = account("stranger");
        vm.deal(publisher, 100 ether);
        vm.deal(demander, 100 ether);
        vm.deal(stranger, 100 ether);
    }

    function _open() internal {
        vm.prank(publisher);
        id = logs.open{value: STAKE}(RUN, WINDOW, EXIT_DELAY, PRICE);
    }

    /// @dev Posts the log over the first `size` states, on top of what is posted.
    function _post(uint64 size) internal {
        bytes32[] memory path = NaiveLog.consistencyPath(_roots(size), logs.runOf(id).size, size);
        bytes32 root = _logRoot(size);
        vm.prank(publisher);
        logs.post(id, size, root, path);
    }

    function _demand(uint64 index, uint32 position, uint64 leaf) internal returns (Demand memory d) {
        Run memory r = logs.runOf(id);
        uint64 deadline = uint64(vm.getBlockTimestamp()) + r.window;
        d = Demand(id, r.logRoot, r.size, index, position, leaf, demander, deadline, BOND);
        vm.prank(demander);
        bytes32 key = logs.demand{value: BOND}(id, index, position, leaf);
        vm.assertEq(key, keccak256(abi.encode(d)));
        vm.assertTrue(logs.isOpen(key));
    }

    /// @dev Documents and arrays, of no leaf, one and several.
    function _entries(uint256 i) internal pure returns (Entry[] memory found) {
        found = new Entry[](5);
        found[0] = Entry("a", _document(10 + i), _bytes(i, 10 + i));
        found[1] = Entry("a/empty", hex"0201020000000000000007", "");
        found[2] = Entry("a/w", abi.encodePacked(hex"020102", uint32(13), uint32(10 + i)), _bytes(i, 52 * (10 + i)));
        found[3] = Entry("b", hex"02090100000100", _bytes(i, 256));
        found[4] = Entry("long name", _document(600), _bytes(i, 600));
    }

    function _document(uint256 length) internal pure returns (bytes memory) {
        return abi.encodePacked(uint8(14), uint64(length));
    }

    function _bytes(uint256 seed, uint256 length) internal pure returns (bytes memory data) {
        data = new bytes(length);
        for (uint256 i = 0; i < length / 32; ++i) {
            bytes32 word = keccak256(abi.encode(seed, i));
            assembly ("memory-safe") {
                mstore(add(data, mul(32, add(i, 1))), word)
            }
        }
        for (uint256 i = length & ~uint256(31); i < length; ++i) {
            data[i] = bytes1(uint8(7 * i + 11 * seed + 1));
        }
    }

    function _leaf(bytes memory data, uint256 index) internal pure returns (bytes memory leaf) {
        leaf = new bytes(256);
        uint256 rest = data.length - 256 * index;
        if (rest > 256) rest = 256;
        assembly ("memory-safe") {
            mcopy(add(leaf, 32), add(add(data, 32), mul(256, index)), rest)
        }
    }

    function _leafHashes(bytes memory data) internal pure returns (bytes32[] memory hashes) {
        if (data.length == 0) {
            hashes = new bytes32[](1);
            hashes[0] = NaiveTree.PADDING;
            return hashes;
        }
        hashes = new bytes32[]((data.length + 255) / 256);
        for (uint256 i = 0; i < hashes.length; ++i) {
            hashes[i] = keccak256(abi.encodePacked(uint8(0), _leaf(data, i)));
        }
    }

    function _entryHashes(Entry[] memory entries) internal pure returns (bytes32[] memory hashes) {
        hashes = new bytes32[](entries.length);
        for (uint256 i = 0; i < hashes.length; ++i) {
            bytes32 content = keccak256(abi.encodePacked(entries[i].form, NaiveTree.tree(_leafHashes(entries[i].data))));
            hashes[i] = keccak256(abi.encodePacked(uint8(13), uint16(entries[i].name.length), entries[i].name, content));
        }
    }

    function _completeRoot(Entry[] memory entries) internal pure returns (bytes32) {
        return keccak256(abi.encodePacked(uint8(12), uint32(entries.length), NaiveTree.tree(_entryHashes(entries))));
    }

    /// @dev The log's entries: those past the third are no roots of anything.
    function _roots(uint256 size) internal view virtual returns (bytes32[] memory roots) {
        roots = new bytes32[](size);
        for (uint256 i = 0; i < size; ++i) {
            roots[i] = i < 3 ? _completeRoot(_entries(i)) : keccak256(abi.encode("entry", i));
        }
    }

    function _logRoot(uint256 size) internal view returns (bytes32) {
        return NaiveLog.root(_roots(size), 0, size);
    }

    /// @dev What answers a demand, whatever its numbers.
    function _chunk(Demand memory d) internal view returns (Chunk memory chunk) {
        Entry[] memory entries = _entries(d.index);
        uint256 position = d.position % entries.length;
        Entry memory entry = entries[position];
        bytes32[] memory hashes = _leafHashes(entry.data);
        uint256 leaf = d.leaf % hashes.length;
        chunk.name = entry.name;
        chunk.form = entry.form;
        chunk.leaf = entry.data.length == 0 ? bytes("") : _leaf(entry.data, leaf);
        chunk.branch = NaiveTree.branch(hashes, leaf);
        chunk.count = uint32(entries.length);
        chunk.entryBranch = NaiveTree.branch(_entryHashes(entries), position);
        chunk.logPath = NaiveLog.inclusionPath(_roots(d.size), d.index, 0, d.size);
    }
}
