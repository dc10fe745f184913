// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Conversion} from "../../../contracts/arithmetic/Conversion.sol";
import {Float32} from "../../../contracts/arithmetic/Float32.sol";

/// @notice What `Float32` and `Conversion` compute, as relations: `assert` fails exactly where `result` is the result.
/// @dev `.ci/proofs/ieee.py` takes those failing paths from halmos and asks a solver for one whose result is not the
/// one of IEEE 754.
contract Float32Ieee {
    function ieee_add(uint32 a, uint32 b, uint32 result) public pure {
        assert(Float32.add(a, b) != result);
    }

    function ieee_sub(uint32 a, uint32 b, uint32 result) public pure {
        assert(Float32.sub(a, b) != result);
    }

    function ieee_mul(uint32 a, uint32 b, uint32 result) public pure {
        assert(Float32.mul(a, b) != result);
    }

    function ieee_div(uint32 a, uint32 b, uint32 result) public pure {
        assert(Float32.div(a, b) != result);
    }

    function ieee_fma(uint32 a, uint32 b, uint32 c, uint32 result) public pure {
        assert(Float32.fma(a, b, c) != result);
    }

    function ieee_sqrt(uint32 a, uint32 result) public pure {
        assert(Float32.sqrt(a) != result);
    }

    function ieee_rint(uint32 a, uint32 result) public pure {
        assert(Float32.rint(a) != result);
    }

    function ieee_neg(uint32 a, uint32 result) public pure {
        assert(Float32.neg(a) != result);
    }

    function ieee_abs(uint32 a, uint32 result) public pure {
        assert(Float32.abs(a) != result);
    }

    function ieee_min(uint32 a, uint32 b, uint32 result) public pure {
        assert(Float32.min(a, b) != result);
    }

    function ieee_max(uint32 a, uint32 b, uint32 result) public pure {
        assert(Float32.max(a, b) != result);
    }

    function ieee_toInt(uint32 a, uint32 result) public pure {
        assert(Float32.toInt(a) != result);
    }

    function ieee_fromInt(uint32 a, uint32 result) public pure {
        assert(Float32.fromInt(a) != result);
    }

    function ieee_toU32(uint32 a, uint32 result) public pure {
        assert(Conversion.toU32(a) != result);
    }

    function ieee_fromU32(uint32 a, uint32 result) public pure {
        assert(Conversion.fromU32(a) != result);
    }

    function ieee_toI64(uint32 a, uint64 result) public pure {
        assert(Conversion.toI64(a) != result);
    }

    function ieee_fromI64(uint64 a, uint32 result) public pure {
        assert(Conversion.fromI64(a) != result);
    }

    function ieee_toBf16(uint32 a, uint32 result) public pure {
        assert(Conversion.toBf16(a) != result);
    }

    function ieee_toF16(uint32 a, uint32 result) public pure {
        assert(Conversion.toF16(a) != result);
    }

    function ieee_eq(uint32 a, uint32 b, bool result) public pure {
        assert(Float32.eq(a, b) != result);
    }

    function ieee_lt(uint32 a, uint32 b, bool result) public pure {
        assert(Float32.lt(a, b) != result);
    }

    function ieee_le(uint32 a, uint32 b, bool result) public pure {
        assert(Float32.le(a, b) != result);
    }
}
