// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ScalarMachine} from "../../../contracts/arithmetic/ScalarMachine.sol";
import {Base} from "../Base.sol";
import {NaiveTree} from "../commitments/NaiveTree.sol";

/// @notice Six tiny nodes that need every level of the game, executed and committed to here, in two versions: one may
/// lie. ``` 0 map  f32[2]   gathered[e] = TABLE[INDEX[e]] 1 fold f32[]    acc = fma(W[k], gathered[k], acc), k < 3;
/// gathered[2] does not exist: fill 1.0 2 map  f32[3]   W[e] - 0.5 * node1                                   -> slot 0
/// (parameter) 3 map  f32[66]  1.0 + M[e + 1], past the edge (a bound) 1.5 + 1.0     -> slot 1 (optimizer) 4 map
/// i32[1]   C[e] + t                                             -> slot 2 (buffer) 5 fold f32[]    acc = W[k] * W[k] +
/// acc, k < 3, in two instructions ```
abstract contract Toy is Base {
    uint64 internal constant FIRST_STEP = 5;
    uint32 internal constant ONE = 0x3f800000;
    uint32 internal constant HALF = 0x3f000000;
    uint32 internal constant FILL = 0x3fc00000;

    bytes[6] internal nodes;
    bytes[3] internal slots;
    bytes[2] internal constantTypes;
    uint32[][] internal constants;
    /// @dev By version and step, `_key`: the state before it, and the outputs of its nodes.
    mapping(uint256 key => uint32[][]) internal states;
    mapping(uint256 key => uint32[][]) internal outputs;

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
        for (uint256 version = 0; version < 2; version++) {
            uint256 first = _key(version, FIRST_STEP);
            states[first].push([HALF, ONE, FILL]);
            uint32[] memory moments = new uint32[](66);
            for (uint32 i = 0; i < 66; i++) {
                moments[i] = ScalarMachine.execute(ScalarMachine.I2F, i, 0, 0);
            }
            states[first].push(moments);
            states[first].push([uint32(40)]);
            for (uint256 key = first; key < first + steps; key++) {
                _execute(key);
                _advance(key);
            }
        }
    }

    function _key(uint256 version, uint256 step) internal pure returns (uint256) {
        return (version << 64) | step;
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
        nodes[5] = abi.encodePacked(
            hex"01",
            hex"0100",
            hex"0100000003",
            uint32(0),
            hex"01",
            w,
            hex"02",
            hex"02000100",
            hex"020002",
            hex"03000000",
            hex"01020100"
        );
    }

    /// @dev The outputs of all nodes, from what the nodes before them have put out.
    function _execute(uint256 key) internal {
        uint32[][] storage s = states[key];
        uint32[][] storage o = outputs[key];
        delete outputs[key];
        o.push([constants[1][constants[0][0]], constants[1][constants[0][1]]]);
        o.push([_accumulators(key, 1)[3]]);
        o.push([_body(key, 2, 0, 0, 0)[1], _body(key, 2, 1, 0, 0)[1], _body(key, 2, 2, 0, 0)[1]]);
        uint32[] memory moments = new uint32[](66);
        for (uint256 e = 0; e < 66; e++) {
            moments[e] = ScalarMachine.execute(ScalarMachine.FADD, e < 65 ? s[1][e + 1] : FILL, ONE, 0);
        }
        o.push(moments);
        o.push([s[2][0] + uint32(key)]);
        o.push([_accumulators(key, 5)[3]]);
    }

    function _advance(uint256 key) internal {
        delete states[key + 1];
        states[key + 1].push(outputs[key][2]);
        states[key + 1].push(outputs[key][3]);
        states[key + 1].push(outputs[key][4]);
    }

    /// @dev Of node 1 or 5: before each of its three terms, and the result.
    function _accumulators(uint256 key, uint256 node) internal view returns (uint32[] memory accumulators) {
        accumulators = new uint32[](4);
        for (uint256 k = 0; k < 3; k++) {
            if (node == 5) {
                accumulators[k + 1] = _body(key, 5, 0, k, accumulators[k])[1];
            } else {
                uint32 gathered = k < 2 ? outputs[key][0][k] : ONE;
                accumulators[k + 1] =
                    ScalarMachine.execute(ScalarMachine.FFMA, states[key][0][k], gathered, accumulators[k]);
            }
        }
    }

    /// @dev Of node 2 or 5: the results of both instructions.
    function _body(uint256 key, uint256 node, uint256 element, uint256 term, uint32 accumulator)
        internal
        view
        returns (uint32[2] memory values)
    {
        if (node == 5) {
            uint32 w = states[key][0][term];
            values[0] = ScalarMachine.execute(ScalarMachine.FMUL, w, w, 0);
            values[1] = ScalarMachine.execute(ScalarMachine.FADD, values[0], accumulator, 0);
        } else {
            values[0] = ScalarMachine.execute(ScalarMachine.FMUL, outputs[key][1][0], HALF, 0);
            values[1] = ScalarMachine.execute(ScalarMachine.FSUB, states[key][0][element], values[0], 0);
        }
    }

    // --- commitments ---

    function _header() internal view returns (bytes memory) {
        return abi.encodePacked(
            uint32(1),
            uint32(6),
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
        hashes = new bytes32[](6);
        for (uint256 i = 0; i < 6; i++) {
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
        return node == 0 ? _type(1, 2) : node == 1 || node == 5 ? bytes(hex"0100") : _slotType(node - 2);
    }

    function _slotType(uint256 slot) internal pure returns (bytes memory) {
        return slot == 0 ? _type(1, 3) : slot == 1 ? _type(1, 66) : _type(2, 1);
    }

    function _slotRoots(uint256 key) internal view returns (bytes32[] memory roots) {
        roots = new bytes32[](3);
        for (uint256 i = 0; i < 3; i++) {
            roots[i] = NaiveTree.tensorRoot(_slotType(i), states[key][i]);
        }
    }

    function _outputRoots(uint256 key) internal view returns (bytes32[] memory roots) {
        roots = new bytes32[](6);
        for (uint256 i = 0; i < 6; i++) {
            roots[i] = NaiveTree.tensorRoot(_outputType(i), outputs[key][i]);
        }
    }

    function _constantRoots() internal view returns (bytes32[] memory roots) {
        roots = new bytes32[](2);
        roots[0] = NaiveTree.tensorRoot(constantTypes[0], constants[0]);
        roots[1] = NaiveTree.tensorRoot(constantTypes[1], constants[1]);
    }

    function _stateRoot(uint256 key) internal view returns (bytes32) {
        return NaiveTree.listRoot(3, _slotRoots(key));
    }

    function _constantsRoot() internal view returns (bytes32) {
        return NaiveTree.listRoot(8, _constantRoots());
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
