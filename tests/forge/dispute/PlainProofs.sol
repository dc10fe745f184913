// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Level, NaiveTree, PlainRules} from "./PlainRules.sol";

/// @notice Facts that both sides agree on, and proofs of the toy program's instructions, slots and sums, as moves carry
/// them.
abstract contract PlainProofs is PlainRules {
    /// @dev `H(descriptor) || u32 node || u64 terms || u32 init || u8 instructions`.
    function _outline() internal view returns (bytes memory) {
        uint64 terms = facts.node == 1 || facts.node == 5 ? 3 : 1;
        uint8 instructions = facts.node == 2 || facts.node == 5 ? 2 : 1;
        return abi.encodePacked(keccak256(nodes[facts.node]), uint32(facts.node), terms, uint32(0), instructions);
    }

    function _sized(bytes memory descriptor) internal pure returns (bytes memory) {
        return abi.encodePacked(uint16(descriptor.length), descriptor);
    }

    function _stepFacts() internal view returns (bytes memory) {
        return abi.encodePacked(_header(), facts.id, params.constants, facts.end, facts.pre, uint64(facts.step));
    }

    function _proof(Level level, uint256 instruction) internal view returns (bytes memory rest) {
        rest = abi.encodePacked(
            uint8(1),
            _origin(),
            params.constants,
            facts.end,
            facts.pre,
            uint64(facts.step),
            uint8(1),
            facts.picked,
            uint8(3)
        );
        rest = abi.encodePacked(rest, uint32(facts.node), _sized(nodes[facts.node]));
        if (level != Level.LEAF) rest = abi.encodePacked(rest, uint64(facts.element));
        if (level == Level.BODY) {
            rest = abi.encodePacked(rest, uint64(facts.node == 5 ? facts.term : 0), facts.agreed);
        }
        return abi.encodePacked(rest, _openings(instruction));
    }

    /// @dev What the disputed instruction reads.
    function _openings(uint256 instruction) internal view returns (bytes memory) {
        uint256 element = facts.element;
        if (facts.node == 0) {
            bytes memory indices = _openList(_constantRoots(), 0, constants[0], 0);
            return abi.encodePacked(indices, _openList(_constantRoots(), 1, constants[1], constants[0][element] / 64));
        }
        if (facts.node == 1) {
            bytes memory gathered = facts.term < 2 ? _openOutput(0) : bytes("");
            return abi.encodePacked(_openSlot(0, 0), gathered);
        }
        if (facts.node == 2) return instruction == 0 ? _openOutput(1) : _openSlot(0, 0);
        if (facts.node == 3) return element < 65 ? _openSlot(1, (element + 1) / 64) : bytes("");
        if (facts.node == 4) return _openSlot(2, 0);
        return instruction == 0 ? _openSlot(0, 0) : bytes("");
    }

    function _openSlot(uint256 slot, uint256 leaf) internal view returns (bytes memory) {
        uint256 key = _key(facts.traceVersion, facts.step);
        return _openList(_slotRoots(key), slot, states[key][slot], leaf);
    }

    function _openList(bytes32[] memory roots, uint256 index, uint32[] memory words, uint256 leaf)
        internal
        pure
        returns (bytes memory)
    {
        return abi.encodePacked(uint32(roots.length), _openTensor(roots, index, words, leaf));
    }

    /// @dev A node before the disputed one, in the trace that lay open.
    function _openOutput(uint256 node) internal view returns (bytes memory) {
        uint256 key = _key(facts.traceVersion, facts.step);
        return _openTensor(_outputRoots(key), node, outputs[key][node], 0);
    }

    function _openTensor(bytes32[] memory roots, uint256 index, uint32[] memory words, uint256 leaf)
        internal
        pure
        returns (bytes memory)
    {
        return abi.encodePacked(
            NaiveTree.leaf(words, leaf), _branch(NaiveTree.leafHashes(words), leaf), _branch(roots, index)
        );
    }

    function _slotProof(uint256 slot) internal view returns (bytes memory) {
        bytes32[] memory roots = _outputRoots(_key(facts.traceVersion, facts.step));
        return abi.encodePacked(
            _stepFacts(),
            facts.picked,
            _branch(_slotHashes(), slot),
            _sized(slots[slot]),
            roots[slot + 2],
            _branch(roots, slot + 2)
        );
    }

    function _sumProof(uint256 leaf) internal view returns (bytes memory) {
        uint256 slot = facts.slot;
        bytes memory x = _openList(_slotRoots(FIRST_STEP + 2), slot, states[FIRST_STEP + 2][slot], leaf);
        bytes memory y = _openList(_slotRoots(FIRST_STEP), slot, states[FIRST_STEP][slot], leaf);
        bytes memory facts_ = abi.encodePacked(_origin(), params.x, params.y, params.component);
        return abi.encodePacked(facts_, uint32(slot), _sized(slots[slot]), x, y);
    }
}
