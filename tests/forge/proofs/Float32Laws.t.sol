// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Float32} from "../../../contracts/arithmetic/Float32.sol";

/// @notice `Float32` behind calls, so that a revert is an answer too.
contract Float32Calls {
    function add(uint32 a, uint32 b) external pure returns (uint256) {
        return Float32.add(a, b);
    }

    function mul(uint32 a, uint32 b) external pure returns (uint256) {
        return Float32.mul(a, b);
    }
}

/// @notice Laws of add and mul over all pairs of patterns. forge draws inputs, `.ci/audit prove` proves them.
contract Float32Laws {
    Float32Calls private calls = new Float32Calls();

    function testProve_add_never_reverts(uint32 a, uint32 b) public view {
        (bool succeeded,) = address(calls).staticcall(abi.encodeCall(Float32Calls.add, (a, b)));
        assert(succeeded);
    }

    function testProve_mul_never_reverts(uint32 a, uint32 b) public view {
        (bool succeeded,) = address(calls).staticcall(abi.encodeCall(Float32Calls.mul, (a, b)));
        assert(succeeded);
    }

    function testProve_add_commutes(uint32 a, uint32 b) public pure {
        assert(Float32.add(a, b) == Float32.add(b, a));
    }

    function testProve_mul_commutes(uint32 a, uint32 b) public pure {
        assert(Float32.mul(a, b) == Float32.mul(b, a));
    }

    function testProve_add_is_canonical(uint32 a, uint32 b) public pure {
        uint256 sum = Float32.add(a, b);
        assert(sum < 2 ** 32 && (!Float32.isNaN(sum) || sum == Float32.NAN));
    }

    function testProve_mul_is_canonical(uint32 a, uint32 b) public pure {
        uint256 product = Float32.mul(a, b);
        assert(product < 2 ** 32 && (!Float32.isNaN(product) || product == Float32.NAN));
    }

    /// @dev Not laws: for these the prover has to find a counterexample.
    function refute_add_has_no_rounding(uint32 a, uint32 b) public pure {
        assert(Float32.sub(Float32.add(a, b), b) == a);
    }

    function refute_mul_is_never_infinite(uint32 a, uint32 b) public pure {
        assert(Float32.mul(a, b) & 0x7fffffff != Float32.INF);
    }
}
