// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ScalarMachine} from "../../../contracts/arithmetic/ScalarMachine.sol";
import {Opening} from "../../../contracts/dispute/Opening.sol";
import {Level, Position} from "../../../contracts/dispute/Position.sol";
import {Base} from "../Base.sol";
import {NaiveTree} from "../commitments/NaiveTree.sol";

/// @notice Five tiny nodes that need every level of the game, executed and committed to here, and an asserter that opens them.
/// ```
/// 0 map  f32[2]   gathered[e] = TABLE[INDEX[e]]
/// 1 fold f32[]    acc = fma(W[k], gathered[k], acc), k < 3; gathered[2] does not exist: fill 1.0
/// 2 map  f32[3]   W[e] - 0.5 * node1                                   -> slot 0 (parameter)
/// 3 map  f32[66]  1.0 + M[e + 1], past the edge (a bound) 1.5 + 1.0     -> slot 1 (optimizer)
/// 4 map  i32[1]   C[e] + t                                             -> slot 2 (buffer)
/// ```
abstract contract Toy is Base {
    uint64 internal constant FIRST_STEP = 5;
    uint32 internal constant ONE = 0x3f800000;
    uint32 internal constant HALF = 0x3f000000;
    uint32 internal constant FILL = 0x3fc00000;

    bytes[5] internal nodes;
    bytes[3] internal slots;
    bytes[2] internal constantTypes;
    uint32[][] internal constants;
    /// @dev By step: the state before it, and the outputs of its nodes.
    mapping(uint256 step => uint32[][]) internal states;
    mapping(uint256 step => uint32[][]) internal outputs;

    function _buildToy(uint64 steps) internal {
        constantTypes = [_type(2, 2), _type(1, 70)];
        constants.push([uint32(69), 3]);
        uint32[] memory table = new uint32[](70);
        for (uint32 i = 0; i < 70; i++) {
            table[i] = ScalarMachine.execute(ScalarMachine.I2F, i * 7 + 1, 0, 0);
        }
        constants.push(table);
        _describeNodes();
        slots = [
            abi.encodePacked(uint8(1), _type(1, 3), uint32(2), uint8(0)),
            abi.encodePacked(uint8(3), _type(1, 66), uint32(3), uint8(12)),
            abi.encodePacked(uint8(2), _type(2, 1), uint32(4), uint8(0))
        ];
        states[FIRST_STEP].push([HALF, ONE, FILL]);
        uint32[] memory moments = new uint32[](66);
        for (uint32 i = 0; i < 66; i++) {
            moments[i] = ScalarMachine.execute(ScalarMachine.I2F, i, 0, 0);
        }
        states[FIRST_STEP].push(moments);
        states[FIRST_STEP].push([uint32(40)]);
        for (uint64 s = FIRST_STEP; s < FIRST_STEP + steps; s++) {
            _execute(s);
            _advance(s);
        }
    }

    function _describeNodes() private {
        int64[] memory map = _strides(0, 1);
        bytes memory index = _operand(2, 0, _type(2, 2), 0, _affine(0, map), hex"0000");
        bytes memory table = _operand(
            2,
            1,
            _type(1, 70),
            0,
            _affine(0, _strides(0, 0)),
            abi.encodePacked(hex"0001", uint8(0), int64(1), int64(70))
        );
        nodes[0] = abi.encodePacked(
            hex"01", _type(1, 2), hex"00", uint32(0), hex"02", index, table, hex"010201", hex"010001", hex"31000000"
        );
        bytes memory w = _operand(1, 0, _type(1, 3), 0, _affine(0, map), hex"0000");
        bytes memory gathered = _operand(3, 0, _type(1, 2), ONE, _affine(0, map), hex"0000");
        nodes[1] = abi.encodePacked(
            hex"01",
            hex"0100",
            hex"0100000003",
            uint32(0),
            hex"02",
            w,
            gathered,
            hex"03",
            hex"020002010100",
            hex"030001",
            hex"05000102"
        );
        bytes memory scalar = _operand(3, 1, hex"0100", 0, _affine(0, _strides(0, 0)), hex"0000");
        nodes[2] = abi.encodePacked(
            hex"01",
            _type(1, 3),
            hex"00",
            uint32(0),
            hex"02",
            w,
            scalar,
            hex"02",
            hex"02000201",
            hex"020102",
            HALF,
            hex"03010200",
            hex"02000300"
        );
        bytes memory bound = abi.encodePacked(hex"01", _affine(1, map), int64(66), hex"00");
        bytes memory moment = _operand(1, 1, _type(1, 66), FILL, _affine(1, map), bound);
        nodes[3] = abi.encodePacked(
            hex"01", _type(1, 66), hex"00", uint32(0), hex"01", moment, hex"010200", hex"010101", ONE, hex"01000100"
        );
        bytes memory counter = _operand(1, 2, _type(2, 1), 0, _affine(0, map), hex"0000");
        nodes[4] = abi.encodePacked(
            hex"01", _type(2, 1), hex"00", uint32(0), hex"01", counter, hex"0202000300", hex"020001", hex"20000100"
        );
    }

    function _execute(uint64 step) private {
        uint32[][] storage s = states[step];
        uint32[][] storage o = outputs[step];
        delete outputs[step];
        o.push([constants[1][constants[0][0]], constants[1][constants[0][1]]]);
        uint32[] memory accumulators = _accumulators(step);
        o.push([accumulators[3]]);
        o.push([_body(step, 0)[1], _body(step, 1)[1], _body(step, 2)[1]]);
        uint32[] memory moments = new uint32[](66);
        for (uint256 e = 0; e < 66; e++) {
            moments[e] = ScalarMachine.execute(ScalarMachine.FADD, e < 65 ? s[1][e + 1] : FILL, ONE, 0);
        }
        o.push(moments);
        o.push([s[2][0] + uint32(step)]);
    }

    function _advance(uint64 step) internal {
        delete states[step + 1];
        states[step + 1].push(outputs[step][2]);
        states[step + 1].push(outputs[step][3]);
        states[step + 1].push(outputs[step][4]);
    }

    /// @dev Of node 1: before each of its three terms, and the result.
    function _accumulators(uint64 step) internal view returns (uint32[] memory accumulators) {
        accumulators = new uint32[](4);
        for (uint256 k = 0; k < 3; k++) {
            uint32 gathered = k < 2 ? outputs[step][0][k] : ONE;
            accumulators[k + 1] =
                ScalarMachine.execute(ScalarMachine.FFMA, states[step][0][k], gathered, accumulators[k]);
        }
    }

    /// @dev Of node 2: the results of both instructions.
    function _body(uint64 step, uint256 element) internal view returns (uint32[2] memory values) {
        values[0] = ScalarMachine.execute(ScalarMachine.FMUL, outputs[step][1][0], HALF, 0);
        values[1] = ScalarMachine.execute(ScalarMachine.FSUB, states[step][0][element], values[0], 0);
    }

    // --- commitments ---

    function _header() internal view returns (bytes memory) {
        return abi.encodePacked(
            uint32(1),
            uint32(5),
            uint32(3),
            uint32(2),
            NaiveTree.tree(_nodeHashes()),
            NaiveTree.tree(_slotHashes()),
            bytes32(0)
        );
    }

    function _program() internal view returns (bytes32) {
        return keccak256(abi.encodePacked(uint8(6), _header()));
    }

    function _nodeHashes() internal view returns (bytes32[] memory hashes) {
        hashes = new bytes32[](5);
        for (uint256 i = 0; i < 5; i++) {
            hashes[i] = keccak256(abi.encodePacked(uint8(4), nodes[i]));
        }
    }

    function _slotHashes() internal view returns (bytes32[] memory hashes) {
        hashes = new bytes32[](3);
        for (uint256 i = 0; i < 3; i++) {
            hashes[i] = keccak256(abi.encodePacked(uint8(5), slots[i]));
        }
    }

    function _outputType(uint256 node) internal pure returns (bytes memory) {
        return node == 0 ? _type(1, 2) : node == 1 ? bytes(hex"0100") : _slotType(node - 2);
    }

    function _slotType(uint256 slot) internal pure returns (bytes memory) {
        return slot == 0 ? _type(1, 3) : slot == 1 ? _type(1, 66) : _type(2, 1);
    }

    function _slotRoots(uint256 step) internal view returns (bytes32[] memory roots) {
        roots = new bytes32[](3);
        for (uint256 i = 0; i < 3; i++) {
            roots[i] = NaiveTree.tensorRoot(_slotType(i), states[step][i]);
        }
    }

    function _outputRoots(uint256 step) internal view returns (bytes32[] memory roots) {
        roots = new bytes32[](5);
        for (uint256 i = 0; i < 5; i++) {
            roots[i] = NaiveTree.tensorRoot(_outputType(i), outputs[step][i]);
        }
    }

    function _constantRoots() internal view returns (bytes32[] memory roots) {
        roots = new bytes32[](2);
        roots[0] = NaiveTree.tensorRoot(constantTypes[0], constants[0]);
        roots[1] = NaiveTree.tensorRoot(constantTypes[1], constants[1]);
    }

    function _stateRoot(uint256 step) internal view returns (bytes32) {
        return NaiveTree.listRoot(3, _slotRoots(step));
    }

    function _constantsRoot() internal view returns (bytes32) {
        return NaiveTree.listRoot(8, _constantRoots());
    }

    function _openLeaf(bytes32[] memory roots, uint256 index, uint32[] memory words, uint256 leaf)
        internal
        pure
        returns (Opening memory)
    {
        return Opening(
            uint32(roots.length),
            NaiveTree.leaf(words, leaf),
            NaiveTree.branch(NaiveTree.leafHashes(words), leaf),
            NaiveTree.branch(roots, index)
        );
    }

    function _openState(uint256 step, uint256 slot, uint256 leaf) internal view returns (Opening memory) {
        return _openLeaf(_slotRoots(step), slot, states[step][slot], leaf);
    }

    function _openOutput(uint256 step, uint256 node, uint256 leaf) internal view returns (Opening memory) {
        return _openLeaf(_outputRoots(step), node, outputs[step][node], leaf);
    }

    function _openConstant(uint256 index, uint256 leaf) internal view returns (Opening memory) {
        return _openLeaf(_constantRoots(), index, constants[index], leaf);
    }

    /// @dev What the asserter opens; a disputed value that it lied about stays what it claims.
    function _payload(Position memory p) internal view returns (bytes memory row) {
        if (p.level == Level.STEPS) {
            return abi.encodePacked(_stateRoot(FIRST_STEP + 1));
        } else if (p.level == Level.TRACE) {
            return NaiveTree.children(_outputRoots(p.step), 0, 3);
        } else if (p.level == Level.STATE) {
            return abi.encodePacked(_header(), NaiveTree.children(_slotRoots(p.step + 1), 0, 2));
        } else if (p.level == Level.LEAVES) {
            return NaiveTree.children(NaiveTree.leafHashes(outputs[p.step][p.node]), p.lo, p.height);
        } else if (p.level == Level.LEAF) {
            return NaiveTree.leaf(outputs[p.step][p.node], p.lo);
        } else if (p.level == Level.TERMS) {
            uint32[] memory accumulators = _accumulators(uint64(p.step));
            return abi.encodePacked(accumulators[1], accumulators[2]);
        } else if (p.level == Level.BODY) {
            return abi.encodePacked(_body(p.step, p.element)[0], uint32(uint256(p.claimed)));
        }
        revert("nothing to open");
    }

    // --- descriptors ---

    function _type(uint8 dtype, uint32 size) internal pure returns (bytes memory) {
        return abi.encodePacked(dtype, uint8(1), size);
    }

    function _strides(int64 step, int64 place) private pure returns (int64[] memory strides) {
        strides = new int64[](2);
        (strides[0], strides[1]) = (step, place);
    }

    function _affine(int64 base, int64[] memory strides) private pure returns (bytes memory form) {
        form = abi.encodePacked(base);
        for (uint256 i = 0; i < strides.length; i++) {
            form = abi.encodePacked(form, strides[i]);
        }
    }

    /// @dev `rest` holds bounds and gather.
    function _operand(
        uint8 source,
        uint32 index,
        bytes memory tensorType,
        uint32 fill,
        bytes memory affine,
        bytes memory rest
    ) private pure returns (bytes memory) {
        return abi.encodePacked(source, index, tensorType, fill, affine, rest);
    }
}
