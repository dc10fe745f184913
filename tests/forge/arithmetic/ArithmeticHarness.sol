// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Float32} from "../../../contracts/arithmetic/Float32.sol";
import {ScalarMachine} from "../../../contracts/arithmetic/ScalarMachine.sol";

/// @notice Runs the arithmetic library on whole batches, for tests and measurements: a case is a few big-endian words.
contract ArithmeticHarness {
    uint256 private constant WORD_BYTES = 4;
    uint256 private constant CASE_BYTES = 12;

    /// @notice One primitive on one case.
    function execute(uint8 code, uint32 a, uint32 b, uint32 c) external pure returns (uint32) {
        return ScalarMachine.execute(code, a, b, c);
    }

    /// @notice One primitive on many cases of three words; the result words, joined.
    function executeBatch(uint8 code, bytes calldata cases) external pure returns (bytes memory results) {
        uint256 count = cases.length / CASE_BYTES;
        results = new bytes(WORD_BYTES * count);
        for (uint256 i = 0; i < count; ++i) {
            (uint32 a, uint32 b, uint32 c) = _case(cases, i);
            _write(results, i, ScalarMachine.execute(code, a, b, c));
        }
    }

    /// @notice Number of operands of a primitive.
    function arity(uint8 code) external pure returns (uint256) {
        return ScalarMachine.arity(code);
    }

    /// @notice A program's result.
    function run(bytes calldata program, uint32[] calldata inputs) external pure returns (uint32) {
        return ScalarMachine.run(program, inputs);
    }

    /// @notice The results of all instructions of a program.
    function values(bytes calldata program, uint32[] calldata inputs) external pure returns (uint32[] memory) {
        return ScalarMachine.values(program, inputs);
    }

    /// @notice A program on many rows of inputs; the result words, joined.
    function runBatch(bytes calldata program, bytes calldata rows) external pure returns (bytes memory results) {
        uint256 width = ScalarMachine.decode(program).inputs;
        uint256 count = rows.length / (WORD_BYTES * width);
        results = new bytes(WORD_BYTES * count);
        uint32[] memory inputs = new uint32[](width);
        for (uint256 i = 0; i < count; ++i) {
            for (uint256 j = 0; j < width; ++j) {
                inputs[j] = uint32(bytes4(rows[WORD_BYTES * (width * i + j):]));
            }
            uint256 free;
            assembly ("memory-safe") {
                free := mload(0x40)
            }
            _write(results, i, ScalarMachine.run(program, inputs));
            assembly {
                mstore(0x40, free) // nothing that `run` allocated is used any more
            }
        }
    }

    /// @notice Gas of one primitive per case, dispatch on the code included, as big-endian words.
    function gasBatch(uint8 code, bytes calldata cases) external view returns (bytes memory results) {
        uint256 count = cases.length / CASE_BYTES;
        results = new bytes(WORD_BYTES * count);
        for (uint256 i = 0; i < count; ++i) {
            (uint32 a, uint32 b, uint32 c) = _case(cases, i);
            uint256 gas = gasleft();
            _keep(ScalarMachine.execute(code, a, b, c));
            gas -= gasleft();
            _write(results, i, uint32(gas));
        }
    }

    /// @notice Gas of the function of `Float32` itself per case (codes FADD to FSQRT, FRINT, F2I and I2F).
    function floatGasBatch(uint8 code, bytes calldata cases) external view returns (bytes memory results) {
        uint256 count = cases.length / CASE_BYTES;
        results = new bytes(WORD_BYTES * count);
        for (uint256 i = 0; i < count; ++i) {
            (uint32 a, uint32 b, uint32 c) = _case(cases, i);
            _write(results, i, uint32(_floatGas(code, a, b, c)));
        }
    }

    function _floatGas(uint8 code, uint256 a, uint256 b, uint256 c) private view returns (uint256 gas) {
        uint256 result;
        gas = gasleft();
        if (code == ScalarMachine.FADD) {
            gas = gasleft();
            result = Float32.add(a, b);
        } else if (code == ScalarMachine.FSUB) {
            gas = gasleft();
            result = Float32.sub(a, b);
        } else if (code == ScalarMachine.FMUL) {
            gas = gasleft();
            result = Float32.mul(a, b);
        } else if (code == ScalarMachine.FDIV) {
            gas = gasleft();
            result = Float32.div(a, b);
        } else if (code == ScalarMachine.FFMA) {
            gas = gasleft();
            result = Float32.fma(a, b, c);
        } else if (code == ScalarMachine.FSQRT) {
            gas = gasleft();
            result = Float32.sqrt(a);
        } else if (code == ScalarMachine.FRINT) {
            gas = gasleft();
            result = Float32.rint(a);
        } else if (code == ScalarMachine.F2I) {
            gas = gasleft();
            result = Float32.toInt(a);
        } else if (code == ScalarMachine.I2F) {
            gas = gasleft();
            result = Float32.fromInt(a);
        }
        _keep(result);
        gas -= gasleft();
    }

    /// @dev Stores a result before the clock is read again, or the optimiser would leave it out, or compute it later.
    function _keep(uint256 result) private pure {
        assembly ("memory-safe") {
            mstore(0, result)
        }
    }

    function _case(bytes calldata cases, uint256 i) private pure returns (uint32 a, uint32 b, uint32 c) {
        uint256 words = uint96(bytes12(cases[CASE_BYTES * i:]));
        return (uint32(words >> 64), uint32(words >> 32), uint32(words));
    }

    function _write(bytes memory results, uint256 i, uint32 word) private pure {
        assembly ("memory-safe") {
            let place := add(add(results, 32), mul(4, i))
            // Keeps the bytes behind the word. Past the last word of the array they are its padding.
            mstore(place, or(shl(224, word), and(mload(place), shr(32, not(0)))))
        }
    }
}
