// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Distance} from "../../../contracts/dispute/Distance.sol";
import {Level} from "../../../contracts/dispute/Position.sol";
import {StartParams} from "../../../contracts/dispute/IDisputeGame.sol";
import {NaiveTree, Toy} from "./Toy.sol";

/// @notice Where a dispute over the toy program stands and what either version would open there, by the rules of the
/// specification, written as plainly as possible.
abstract contract PlainRules is Toy {
    uint64 internal constant STEP = FIRST_STEP + 1;

    /// @dev What lies open.
    struct At {
        Level level;
        uint256 height;
        uint256 count;
        uint256 lo;
        uint256 hi;
        bytes32 frame;
        bytes32 agreed; // before the range
        bytes opened;
    }

    /// @dev What is agreed on the way down.
    struct Facts {
        bytes32 id;
        bytes32 end;
        bytes32 pre;
        uint256 step;
        uint256 traceVersion; // whose trace lies open
        bytes32 picked; // root of the trace that was picked from
        bytes32 beforeNode; // frame
        uint256 node;
        uint256 element;
        uint256 term;
        uint32 agreed;
        uint256 slot;
    }

    StartParams internal params;
    At internal p;
    Facts internal facts;
    /// @dev Version that each side stands by.
    uint256 internal asserterVersion;
    uint256 internal challengerVersion;
    /// @dev By version: of every slot, and of every leaf of the slot that is disputed.
    mapping(uint256 version => uint256[]) internal slotSums;
    mapping(uint256 version => uint256[]) internal leafSums;

    // --- what a version says ---

    /// @dev What a side would open at the position.
    function _own(uint256 version) internal view returns (bytes memory row) {
        uint256 key = _key(version, facts.step);
        if (p.level == Level.STEPS) {
            for (uint256 i = 1; i <= _parts(); i++) {
                row = abi.encodePacked(row, _stateRoot(_key(version, _bound(i))));
            }
        } else if (p.level == Level.NODES) {
            row = NaiveTree.children(_outputRoots(key), 0, 3);
        } else if (p.level == Level.STATE) {
            row = NaiveTree.children(_slotRoots(key + 1), 0, 2);
        } else if (p.level == Level.LEAVES) {
            row = NaiveTree.children(NaiveTree.leafHashes(outputs[key][facts.node]), p.lo, p.height);
        } else if (p.level == Level.LEAF) {
            row = NaiveTree.leaf(outputs[key][facts.node], p.lo);
        } else if (p.level == Level.TERMS) {
            uint32[] memory accumulators = _accumulators(key, facts.node);
            row = abi.encodePacked(accumulators[1], accumulators[2], outputs[key][facts.node][0]);
        } else if (p.level == Level.BODY) {
            row = _results(version);
        } else {
            uint256[] storage sums = p.level == Level.SUM_SLOTS ? slotSums[version] : leafSums[version];
            for (uint256 i = 0; i < _parts(); i++) {
                uint256 sum = 0;
                for (uint256 j = _bound(i); j < _bound(i + 1); j++) {
                    sum = Distance.add(sum, sums[j]);
                }
                row = abi.encodePacked(row, sum);
            }
        }
    }

    /// @dev A body ends in the value that the side has said, right or wrong.
    function _results(uint256 version) internal view returns (bytes memory) {
        uint256 key = _key(version, facts.step);
        uint32 last = facts.node == 2 ? outputs[key][2][facts.element] : _accumulators(key, 5)[facts.term + 1];
        if (facts.node == 5 && facts.term == 2) last = outputs[key][5][0];
        return abi.encodePacked(_body(key, facts.node, facts.element, facts.term, facts.agreed)[0], last);
    }

    /// @dev Sums of all slots, of which one component counts, the same for both versions.
    function _sum(uint8 component) internal {
        for (uint256 version = 0; version < 2; version++) {
            for (uint256 slot = 0; slot < 3; slot++) {
                bool counts = component == (slot == 0 ? 1 : slot == 1 ? 3 : 2);
                slotSums[version].push(counts ? _between(slot, 0, states[FIRST_STEP][slot].length) : 0);
            }
        }
    }

    /// @dev Sums of the leaves of the slot that is disputed.
    function _sumLeaves(uint256 slot) internal {
        for (uint256 version = 0; version < 2; version++) {
            uint256 length = states[FIRST_STEP][slot].length;
            for (uint256 from = 0; from < length; from += 64) {
                leafSums[version].push(_between(slot, from, from + 64 < length ? from + 64 : length));
            }
        }
    }

    function _between(uint256 slot, uint256 from, uint256 to) private view returns (uint256 sum) {
        for (uint256 i = from; i < to; i++) {
            uint32 x = states[FIRST_STEP + 2][slot][i];
            uint32 y = states[FIRST_STEP][slot][i];
            sum = Distance.add(sum, Distance.ofWords(x, y, slot == 2 ? 2 : 1, slot == 1 ? 12 : 0));
        }
    }

    // --- the rules, once more ---

    function _origin() internal view returns (bytes32) {
        return keccak256(abi.encodePacked(facts.id, params.program));
    }

    /// @dev Levels that an opening shows at most.
    function _width() internal pure virtual returns (uint8) {
        return 4;
    }

    /// @dev Parts of a range of steps, slots or leaves: up to 16 of them, if four levels are opened at most; as few
    /// openings as these allow are cut evenly.
    function _parts() internal view returns (uint256 parts) {
        uint256 depth = 0;
        while (2 ** depth < p.hi - p.lo) depth++;
        uint256 openings = (depth + _width() - 1) / _width();
        parts = 1;
        for (uint256 i = 0; openings > 0 && i < (depth + openings - 1) / openings; i++) {
            parts *= 2;
        }
        if (parts > p.hi - p.lo) parts = p.hi - p.lo;
    }

    function _bound(uint256 part) internal view returns (uint256) {
        return p.lo + part * (p.hi - p.lo) / _parts();
    }

    function _words(bytes memory row) internal pure returns (bytes32[] memory words) {
        words = new bytes32[](row.length / 32);
        for (uint256 i = 0; i < words.length; i++) {
            words[i] = _word(row, i);
        }
    }

    function _word(bytes memory row, uint256 index) internal pure returns (bytes32 word) {
        assembly {
            word := mload(add(add(row, 32), mul(32, index)))
        }
    }

    function _u32(bytes memory row, uint256 index) internal pure returns (uint32 value) {
        assembly {
            value := shr(224, mload(add(add(row, 32), mul(4, index))))
        }
    }

    /// @dev The leaves of the tree that the opening is.
    function _opening() internal view returns (bytes32[] memory leaves) {
        bytes memory row = p.opened;
        leaves = _words(row);
        if (p.level == Level.STEPS) {
            bytes32 before = p.agreed;
            for (uint256 i = 0; i < leaves.length; i++) {
                (before, leaves[i]) = (leaves[i], keccak256(abi.encodePacked(before, leaves[i])));
            }
        } else if (p.level == Level.TERMS) {
            leaves = new bytes32[](1);
            leaves[0] = keccak256(abi.encodePacked(uint8(0), _piece()));
        }
    }

    /// @dev The only piece of accumulators that three terms need.
    function _piece() internal view returns (bytes memory) {
        bytes memory padding = new bytes(32 - p.opened.length);
        return abi.encodePacked(uint32(uint256(p.agreed)), p.opened, padding);
    }

    function _openingRoot() internal view returns (bytes32) {
        return p.level == Level.BODY ? keccak256(p.opened) : NaiveTree.tree(_opening());
    }

    function _branch(bytes32[] memory leaves, uint256 index) internal pure returns (bytes memory branch) {
        bytes32[] memory siblings = NaiveTree.branch(leaves, index);
        for (uint256 i = 0; i < siblings.length; i++) {
            branch = abi.encodePacked(branch, siblings[i]);
        }
    }

    function _witness(uint256 index) internal view returns (bytes memory) {
        bytes memory row = p.opened;
        if (p.level == Level.BODY) return row;
        if (p.level == Level.TERMS) return _piece();
        if (p.level == Level.STEPS) {
            bytes32 before = index == 0 ? p.agreed : _word(row, index - 1);
            return abi.encodePacked(before, _word(row, index), _branch(_opening(), index));
        }
        if (p.level == Level.LEAF) index /= 8;
        return abi.encodePacked(_word(row, index), _branch(_opening(), index));
    }

    function _headOf(address turn) internal view returns (bytes32) {
        return keccak256(
            abi.encodePacked(
                p.frame,
                _openingRoot(),
                turn,
                uint8(p.level),
                uint8(p.height),
                uint32(p.count),
                uint64(p.lo),
                uint64(p.hi)
            )
        );
    }
}
