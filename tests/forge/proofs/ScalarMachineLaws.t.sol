// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ScalarMachine} from "../../../contracts/arithmetic/ScalarMachine.sol";

/// @notice The machine behind a call, so that a revert is an answer too.
contract ScalarMachineCalls {
    function execute(uint8 code, uint32 a, uint32 b, uint32 c) external pure returns (uint32) {
        return ScalarMachine.execute(code, a, b, c);
    }
}

/// @notice Which primitives there are, and what the integer ones yield, over all words. forge draws inputs, `.ci/audit
/// prove` proves them.
contract ScalarMachineLaws {
    ScalarMachineCalls private calls = new ScalarMachineCalls();

    function _answers(uint8 code, uint32 a, uint32 b, uint32 c) private view returns (bool succeeded) {
        (succeeded,) = address(calls).staticcall(abi.encodeCall(ScalarMachineCalls.execute, (code, a, b, c)));
    }

    function testProve_codes_without_a_primitive_revert(uint8 code, uint32 a, uint32 b, uint32 c) public view {
        bool isFloat = code >= ScalarMachine.FADD && code <= ScalarMachine.FRINT;
        bool isConversion = code >= ScalarMachine.F2I && code <= ScalarMachine.RF16;
        bool isInteger = code >= ScalarMachine.ADD && code <= ScalarMachine.LTS;
        if (isFloat || isConversion || isInteger || code == ScalarMachine.SELECT || code == ScalarMachine.MOV) return;
        assert(!_answers(code, a, b, c));
    }

    function testProve_sums_never_revert(uint32 a, uint32 b) public view {
        assert(_answers(ScalarMachine.FADD, a, b, 0));
    }

    function testProve_differences_never_revert(uint32 a, uint32 b) public view {
        assert(_answers(ScalarMachine.FSUB, a, b, 0));
    }

    function testProve_products_never_revert(uint32 a, uint32 b) public view {
        assert(_answers(ScalarMachine.FMUL, a, b, 0));
    }

    function testProve_quotients_never_revert(uint32 a, uint32 b) public view {
        assert(_answers(ScalarMachine.FDIV, a, b, 0));
    }

    function testProve_fma_never_reverts(uint32 a, uint32 b, uint32 c) public view {
        assert(_answers(ScalarMachine.FFMA, a, b, c));
    }

    function testProve_choices_and_comparisons_never_revert(uint32 a, uint32 b, uint32 c) public view {
        assert(_answers(ScalarMachine.FMIN, a, b, c));
        assert(_answers(ScalarMachine.FMAX, a, b, c));
        assert(_answers(ScalarMachine.FEQ, a, b, c));
        assert(_answers(ScalarMachine.FLT, a, b, c));
        assert(_answers(ScalarMachine.FLE, a, b, c));
        assert(_answers(ScalarMachine.SELECT, a, b, c));
    }

    function testProve_signs_and_roundings_never_revert(uint32 a) public view {
        assert(_answers(ScalarMachine.FNEG, a, 0, 0));
        assert(_answers(ScalarMachine.FABS, a, 0, 0));
        assert(_answers(ScalarMachine.FRINT, a, 0, 0));
        assert(_answers(ScalarMachine.RBF16, a, 0, 0));
        assert(_answers(ScalarMachine.RF16, a, 0, 0));
    }

    function testProve_conversions_to_integers_never_revert(uint32 a) public view {
        assert(_answers(ScalarMachine.F2I, a, 0, 0));
        assert(_answers(ScalarMachine.F2U, a, 0, 0));
        assert(_answers(ScalarMachine.F2LHI, a, 0, 0));
        assert(_answers(ScalarMachine.F2LLO, a, 0, 0));
    }

    function testProve_conversions_from_i32_never_revert(uint32 a) public view {
        assert(_answers(ScalarMachine.I2F, a, 0, 0));
    }

    function testProve_conversions_from_u32_never_revert(uint32 a) public view {
        assert(_answers(ScalarMachine.U2F, a, 0, 0));
    }

    function testProve_conversions_from_i64_never_revert(uint32 a, uint32 b) public view {
        assert(_answers(ScalarMachine.L2F, a, b, 0));
    }

    function testProve_integers_never_revert(uint32 a, uint32 b) public view {
        for (uint8 code = ScalarMachine.ADD; code <= ScalarMachine.LTS; ++code) {
            assert(_answers(code, a, b, 0));
        }
        assert(_answers(ScalarMachine.MOV, a, b, 0));
    }

    function testProve_select(uint32 a, uint32 b, uint32 c) public pure {
        assert(ScalarMachine.execute(ScalarMachine.SELECT, a, b, c) == (a == 0 ? c : b));
        assert(ScalarMachine.execute(ScalarMachine.MOV, a, b, c) == a);
    }

    function testProve_integers_compute_modulo_2_32(uint32 a, uint32 b) public pure {
        unchecked {
            assert(ScalarMachine.execute(ScalarMachine.ADD, a, b, 0) == a + b);
            assert(ScalarMachine.execute(ScalarMachine.SUB, a, b, 0) == a - b);
            assert(ScalarMachine.execute(ScalarMachine.MUL, a, b, 0) == uint32(uint64(a) * b));
            assert(ScalarMachine.execute(ScalarMachine.MULHI, a, b, 0) == uint32((uint64(a) * b) >> 32));
        }
    }

    function testProve_integers_compare(uint32 a, uint32 b) public pure {
        assert(ScalarMachine.execute(ScalarMachine.EQ, a, b, 0) == (a == b ? 1 : 0));
        assert(ScalarMachine.execute(ScalarMachine.LTU, a, b, 0) == (a < b ? 1 : 0));
        assert(ScalarMachine.execute(ScalarMachine.LTS, a, b, 0) == (int32(a) < int32(b) ? 1 : 0));
    }

    /// @dev Past the last bit a shift leaves nothing, or the sign.
    function testProve_integers_shift(uint32 a, uint32 b) public pure {
        assert(ScalarMachine.execute(ScalarMachine.SHL, a, b, 0) == (b < 32 ? a << b : 0));
        assert(ScalarMachine.execute(ScalarMachine.SHR, a, b, 0) == (b < 32 ? a >> b : 0));
        assert(ScalarMachine.execute(ScalarMachine.SAR, a, b, 0) == uint32(int32(a) >> (b < 32 ? b : 31)));
    }
}
