// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IOneStep, Picked} from "../../../contracts/dispute/IOneStep.sol";
import {Openings} from "../../../contracts/dispute/Opening.sol";
import {PackedReader} from "../../../contracts/dispute/PackedReader.sol";
import {Base} from "../Base.sol";
import {NaiveTree} from "../commitments/NaiveTree.sol";

/// @notice Tensors that both sides agree on, node descriptors to taste, and the proofs of their instructions, built as
/// plainly as possible.
/// @dev The trace is opened in three versions, one for each side's root: which version a node is read from shows in its
/// words.
abstract contract StepBase is Base {
    uint8 internal constant LEAF = 4;
    uint8 internal constant TERMS = 5;
    uint8 internal constant BODY = 6;
    uint8 internal constant SUM_LEAVES = 9;

    uint8 internal constant STATE_TAG = 3;
    uint8 internal constant CONSTANTS_TAG = 8;

    uint32 internal constant NODES = 40;
    uint32 internal constant NODE = 29;
    uint64 internal constant STEP = 7;
    bytes32 internal constant PROGRAM = keccak256("id and program");
    bytes32 internal constant END = keccak256("end");

    struct Facts {
        bool hasConstants;
        bytes32 program;
        bytes32 constants;
        bytes32 end;
        bytes32 pre;
        uint64 step;
        bytes32[] roots;
        uint8[] heights;
        uint32 node;
        bytes descriptor;
        uint64 element;
        uint64 term;
        uint32 agreed;
    }

    IOneStep internal oneStep = IOneStep(vm.deployCode("OneStep.sol:OneStep"));
    uint32[][] internal state;
    uint32[][] internal constants;
    /// @dev Heights of the opened subtrees that hold NODE, outermost first.
    uint8[3] internal heights = [uint8(6), 4, 2];
    /// @dev Rows of each version's tree, from the tensors' roots up.
    bytes32[][][3] private _traces;
    /// @dev Roots of the tensors, by source.
    bytes32[][3] private _listed;

    function setUp() public virtual {
        state.push(_floats(200, 1));
        state.push(_floats(130, 1000));
        state.push([uint32(40)]);
        constants.push(_floats(70, 500));
        constants.push([uint32(3), 5]);
        _commit();
        for (uint256 version = 0; version < 3; version++) {
            bytes32[] memory roots = new bytes32[](NODES);
            for (uint256 i = 0; i < NODES; i++) {
                roots[i] = NaiveTree.tensorRoot(_type(1, 2), _output(i, version));
            }
            bytes32[][] memory rows = NaiveTree.levels(roots);
            for (uint256 d = 0; d < rows.length; d++) {
                _traces[version].push(rows[d]);
            }
        }
    }

    // --- data ---

    /// @dev `first`, `first + 1`, ... as f32.
    function _floats(uint256 count, uint256 first) internal pure returns (uint32[] memory words) {
        words = new uint32[](count);
        for (uint256 i = 0; i < count; i++) {
            words[i] = _float(first + i);
        }
    }

    /// @dev A positive integer below 2^24 as f32.
    function _float(uint256 value) internal pure returns (uint32) {
        uint256 exponent = 0;
        while (value >> (exponent + 1) != 0) exponent++;
        return uint32((exponent + 127) << 23 | (value << (23 - exponent) & 0x7fffff));
    }

    function _type(uint8 dtype, uint256 size) internal pure returns (bytes memory) {
        return abi.encodePacked(dtype, uint8(1), uint32(size));
    }

    /// @dev Slot 2 and constant 1 are integers, all else is f32.
    function _dtype(uint8 source, uint256 index) internal pure returns (uint8) {
        return (source == 1 && index == 2) || (source == 2 && index == 1) ? 2 : 1;
    }

    /// @dev To be called when a tensor has changed.
    function _commit() internal {
        for (uint8 source = 1; source < 3; source++) {
            delete _listed[source];
            uint32[][] storage list = source == 1 ? state : constants;
            for (uint256 i = 0; i < list.length; i++) {
                _listed[source].push(NaiveTree.tensorRoot(_type(_dtype(source, i), list[i].length), list[i]));
            }
        }
    }

    function _tensorRoots(uint8 source) internal view returns (bytes32[] memory) {
        return _listed[source];
    }

    function _stateRoot() internal view returns (bytes32) {
        return NaiveTree.listRoot(STATE_TAG, _tensorRoots(1));
    }

    /// @dev Output of a node in one version of the trace: two words.
    function _output(uint256 node, uint256 version) internal pure returns (uint32[] memory words) {
        return _floats(2, 10 * node + 1000 * (version + 1));
    }

    // --- facts ---

    function _facts(bytes memory descriptor) internal view returns (Facts memory f) {
        f.hasConstants = true;
        f.program = PROGRAM;
        f.constants = NaiveTree.listRoot(CONSTANTS_TAG, _tensorRoots(2));
        f.end = END;
        f.pre = _stateRoot();
        f.step = STEP;
        f.node = NODE;
        f.descriptor = descriptor;
    }

    /// @dev With the roots that the sides have opened down to NODE.
    function _withRoots(Facts memory f) internal view returns (Facts memory) {
        f.roots = new bytes32[](3);
        f.heights = new uint8[](3);
        for (uint256 i = 0; i < 3; i++) {
            f.heights[i] = heights[i];
            f.roots[i] = _traces[i][heights[i]][NODE >> heights[i]];
        }
        return f;
    }

    /// @dev The frames of docs/spec/dispute.md, one after the other. `terms`, `init` and `instructions` are the
    /// descriptor's.
    function _frame(Facts memory f, uint8 level, uint64 terms, uint32 init, uint8 instructions)
        internal
        pure
        returns (bytes32 frame)
    {
        frame = keccak256(abi.encodePacked(f.program, f.constants));
        frame = keccak256(abi.encodePacked(frame, f.end));
        frame = keccak256(abi.encodePacked(frame, f.pre, f.step));
        for (uint256 i = 0; i < f.roots.length; i++) {
            frame = keccak256(abi.encodePacked(frame, f.roots[i], f.heights[i]));
        }
        frame = keccak256(abi.encodePacked(frame, keccak256(f.descriptor), f.node, terms, init, instructions));
        if (level == TERMS || level == BODY) frame = keccak256(abi.encodePacked(frame, f.element));
        if (level == BODY) frame = keccak256(abi.encodePacked(frame, f.term, f.agreed));
    }

    function _rest(Facts memory f, uint8 level, bytes memory openings) internal pure returns (bytes memory rest) {
        rest = f.hasConstants
            ? abi.encodePacked(uint8(1), f.program, f.constants, f.end)
            : abi.encodePacked(
                uint8(0), keccak256(abi.encodePacked(keccak256(abi.encodePacked(f.program, f.constants)), f.end))
            );
        rest = abi.encodePacked(rest, f.pre, f.step, uint8(f.roots.length));
        for (uint256 i = 0; i < f.roots.length; i++) {
            rest = abi.encodePacked(rest, f.roots[i], f.heights[i]);
        }
        rest = abi.encodePacked(rest, f.node, uint16(f.descriptor.length), f.descriptor);
        if (level == TERMS || level == BODY) rest = abi.encodePacked(rest, f.element);
        if (level == BODY) rest = abi.encodePacked(rest, f.term, f.agreed);
        rest = abi.encodePacked(rest, openings);
    }

    // --- openings ---

    function _join(bytes32[] memory hashes) internal pure returns (bytes memory row) {
        for (uint256 i = 0; i < hashes.length; i++) {
            row = abi.encodePacked(row, hashes[i]);
        }
    }

    /// @dev A leaf of a slot (source 1) or a constant (source 2).
    function _open(uint8 source, uint256 index, uint256 leaf) internal view returns (bytes memory) {
        uint32[] memory words = source == 1 ? state[index] : constants[index];
        bytes32[] memory roots = _tensorRoots(source);
        return abi.encodePacked(
            uint32(roots.length),
            NaiveTree.leaf(words, leaf),
            _join(NaiveTree.branch(NaiveTree.leafHashes(words), leaf)),
            _join(NaiveTree.branch(roots, index))
        );
    }

    /// @dev Two adjacent leaves of a slot: siblings from the bottom up, for both paths until they meet.
    function _openTwo(uint256 slot, uint256 leaf) internal view returns (bytes memory opening) {
        bytes32[] memory roots = _tensorRoots(1);
        uint32[] memory words = state[slot];
        bytes32[][] memory rows = NaiveTree.levels(NaiveTree.leafHashes(words));
        opening = abi.encodePacked(uint32(roots.length), NaiveTree.leaf(words, leaf), NaiveTree.leaf(words, leaf + 1));
        (uint256 left, uint256 right) = (leaf, leaf + 1);
        for (uint256 d = 0; d + 1 < rows.length; d++) {
            if (left == right) opening = abi.encodePacked(opening, rows[d][left ^ 1]);
            else if (left ^ 1 != right) opening = abi.encodePacked(opening, rows[d][left ^ 1], rows[d][right ^ 1]);
            (left, right) = (left / 2, right / 2);
        }
        opening = abi.encodePacked(opening, _join(NaiveTree.branch(roots, slot)));
    }

    /// @dev The output of `node` in a version of the trace, with `length` siblings.
    function _openNode(uint256 node, uint256 version, uint256 length) internal view returns (bytes memory opening) {
        opening = NaiveTree.leaf(_output(node, version), 0);
        for (uint256 d = 0; d < length; d++) {
            opening = abi.encodePacked(opening, _traces[version][d][(node >> d) ^ 1]);
        }
    }

    // --- descriptors ---

    /// @dev An operand; `strides` are those of the step, the output's and the fold's dimensions, `bounds` with their
    /// count.
    function _operand(
        uint8 source,
        uint256 index,
        uint256 size,
        int64 base,
        int64[] memory strides,
        bytes memory bounds,
        bytes memory gather
    ) internal pure returns (bytes memory) {
        bytes memory tensorType = _type(_dtype(source, index), size);
        return abi.encodePacked(source, uint32(index), tensorType, uint32(9), _affine(base, strides), bounds, gather);
    }

    function _affine(int64 base, int64[] memory strides) internal pure returns (bytes memory form) {
        form = abi.encodePacked(base);
        for (uint256 i = 0; i < strides.length; i++) {
            form = abi.encodePacked(form, strides[i]);
        }
    }

    /// @dev `operands` with their count, `inputs` two bytes each, `body` from the count of constants on.
    function _describe(
        bytes memory shape,
        bytes memory fold,
        uint32 init,
        bytes memory operands,
        bytes memory inputs,
        bytes memory body
    ) internal pure returns (bytes memory) {
        uint8 count = uint8(inputs.length / 2);
        return abi.encodePacked(hex"0101", shape, fold, init, operands, count, inputs, count, body);
    }
}
