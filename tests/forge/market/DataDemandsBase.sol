// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Piece} from "../../../contracts/commitments/StateLeaf.sol";
import {NaiveTree} from "../commitments/NaiveTree.sol";
import {DataDemand, MarketBase} from "./MarketBase.sol";

/// @notice A market whose log is of states of a program: 150 numbers, one integer and 64 numbers.
abstract contract DataDemandsBase is MarketBase {
    uint256 internal constant SLOTS = 3;

    function _program() internal pure virtual override returns (bytes32) {
        return keccak256(abi.encodePacked(uint8(6), _header()));
    }

    function _entryAt(uint256 index) internal view virtual override returns (bytes32) {
        return NaiveTree.listRoot(3, _tensors(index));
    }

    function _header() internal pure returns (bytes memory) {
        bytes32 slots = NaiveTree.tree(_slotHashes());
        return
            abi.encodePacked(
                uint32(1), uint32(7), uint32(SLOTS), uint32(1), bytes32("nodes"), slots, bytes32("constants")
            );
    }

    function _type(uint256 slot) internal pure returns (bytes memory) {
        if (slot == 0) return abi.encodePacked(uint8(1), uint8(1), uint32(150));
        if (slot == 1) return abi.encodePacked(uint8(2), uint8(0));
        return abi.encodePacked(uint8(1), uint8(2), uint32(8), uint32(8));
    }

    function _slot(uint256 slot) internal pure returns (bytes memory) {
        return abi.encodePacked(slot == 1 ? uint8(3) : uint8(1), _type(slot), uint32(slot), uint8(0));
    }

    function _slotHashes() internal pure returns (bytes32[] memory hashes) {
        hashes = new bytes32[](SLOTS);
        for (uint256 i = 0; i < SLOTS; ++i) {
            hashes[i] = keccak256(abi.encodePacked(uint8(5), _slot(i)));
        }
    }

    /// @dev A leaf of a slot of the state `index`: zeros, but for the first three bytes.
    function _leaf(uint256 index, uint256 slot, uint256 place) internal pure returns (bytes memory data) {
        data = new bytes(256);
        (data[0], data[1], data[2]) = (bytes1(uint8(index + 1)), bytes1(uint8(slot)), bytes1(uint8(place)));
    }

    function _leafHashes(uint256 index, uint256 slot) internal pure returns (bytes32[] memory hashes) {
        hashes = new bytes32[](slot == 0 ? 3 : 1);
        for (uint256 i = 0; i < hashes.length; ++i) {
            hashes[i] = keccak256(abi.encodePacked(uint8(0), _leaf(index, slot, i)));
        }
    }

    function _tensors(uint256 index) internal pure returns (bytes32[] memory roots) {
        roots = new bytes32[](SLOTS);
        for (uint256 i = 0; i < SLOTS; ++i) {
            roots[i] = keccak256(abi.encodePacked(uint8(2), _type(i), NaiveTree.tree(_leafHashes(index, i))));
        }
    }

    /// @dev What the solver shows of an honest state.
    function _piece(uint64 entry, uint256 position, uint256 leaf) internal view returns (Piece memory piece) {
        uint256 slot = position % 4;
        piece.header = _header();
        piece.tensorBranch = NaiveTree.branch(_tensors(entry), slot);
        piece.logPath = _inclusion(entry);
        if (slot >= SLOTS) return piece;
        piece.slot = _slot(slot);
        piece.slotBranch = NaiveTree.branch(_slotHashes(), slot);
        bytes32[] memory hashes = _leafHashes(entry, slot);
        uint256 place = leaf % (slot == 0 ? 4 : 1);
        piece.branch = NaiveTree.branch(hashes, place);
        if (place < hashes.length) piece.leaf = _leaf(entry, slot, place);
    }

    function _demand(address who) internal returns (DataDemand memory d) {
        return _demand(who, 1, 0, 1);
    }

    function _demand(address who, uint64 entry, uint32 position, uint32 leaf) internal returns (DataDemand memory d) {
        uint64 began = registry.task(id).began;
        uint256 bond = demands.bondOf();
        d = DataDemand(id, began, entry, position, leaf, who, uint64(vm.getBlockTimestamp()) + WINDOW, bond);
        vm.prank(who);
        vm.assertEq(demands.demand(id, entry, position, leaf, bond), _key(d));
    }

    function _key(DataDemand memory d) internal pure returns (bytes32) {
        return keccak256(abi.encode(d));
    }

    function _answer(address who, DataDemand memory d) internal {
        Piece memory piece = _piece(d.entry, d.position, d.leaf);
        vm.prank(who);
        demands.answer(d, piece);
    }

    function _withhold(DataDemand memory d) internal {
        vm.warp(d.deadline + 1);
        demands.expire(d);
    }
}
