// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ScalarMachine} from "../../../contracts/arithmetic/ScalarMachine.sol";

/// @notice As Float32.sol beside this file, for `ScalarMachine`; its other functions by name.
contract Batch {
    function arity(uint8 code) external pure returns (uint256) {
        return ScalarMachine.arity(code);
    }

    function codes() external pure returns (uint8[38] memory) {
        return [
            ScalarMachine.FADD,
            ScalarMachine.FSUB,
            ScalarMachine.FMUL,
            ScalarMachine.FDIV,
            ScalarMachine.FFMA,
            ScalarMachine.FSQRT,
            ScalarMachine.FMIN,
            ScalarMachine.FMAX,
            ScalarMachine.FEQ,
            ScalarMachine.FLT,
            ScalarMachine.FLE,
            ScalarMachine.FNEG,
            ScalarMachine.FABS,
            ScalarMachine.FRINT,
            ScalarMachine.F2I,
            ScalarMachine.I2F,
            ScalarMachine.F2U,
            ScalarMachine.U2F,
            ScalarMachine.F2LHI,
            ScalarMachine.F2LLO,
            ScalarMachine.L2F,
            ScalarMachine.RBF16,
            ScalarMachine.RF16,
            ScalarMachine.ADD,
            ScalarMachine.SUB,
            ScalarMachine.MUL,
            ScalarMachine.MULHI,
            ScalarMachine.AND,
            ScalarMachine.OR,
            ScalarMachine.XOR,
            ScalarMachine.SHL,
            ScalarMachine.SHR,
            ScalarMachine.SAR,
            ScalarMachine.EQ,
            ScalarMachine.LTU,
            ScalarMachine.LTS,
            ScalarMachine.SELECT,
            ScalarMachine.MOV
        ];
    }

    function instruction(bytes calldata program, uint256 index) external pure returns (uint8, uint8, uint8, uint8) {
        return ScalarMachine.instruction(program, ScalarMachine.decode(program), index);
    }

    function one(uint8 code) external pure returns (uint256) {
        return ScalarMachine.execute(code, 1, 2, 3);
    }

    function run(bytes calldata program, uint32[] calldata inputs) external pure returns (uint32) {
        return ScalarMachine.run(program, inputs);
    }

    function values(bytes calldata program, uint32[] calldata inputs) external pure returns (uint32[] memory) {
        return ScalarMachine.values(program, inputs);
    }

    fallback() external {
        uint8 code = uint8(msg.data[0]);
        uint256 count = msg.data.length / 12;
        bytes memory results = new bytes(32 * count);
        for (uint256 i = 0; i < count; ++i) {
            uint256 words = uint96(bytes12(msg.data[12 * i + 1:]));
            uint256 result = ScalarMachine.execute(code, uint32(words >> 64), uint32(words >> 32), uint32(words));
            assembly {
                mstore(add(add(results, 32), mul(32, i)), result)
            }
        }
        assembly {
            return(add(results, 32), mload(results))
        }
    }
}
