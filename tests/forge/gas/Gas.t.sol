// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Float32} from "../../../contracts/arithmetic/Float32.sol";
import {MerkleBranch} from "../../../contracts/commitments/MerkleBranch.sol";
import {Clocks} from "../../../contracts/dispute/Clock.sol";
import {Distance} from "../../../contracts/dispute/Distance.sol";
import {Level} from "../../../contracts/dispute/Position.sol";

/// @notice Fixed calls whose gas is on record in .ci/gas.json; `.ci/gas.py` says if one has become dearer.
/// @dev Operands come as arguments of internal functions, so that no compiler computes the results.
contract GasRecord {
    uint256 private constant A = 0x3fc90fdb; // pi / 2
    uint256 private constant B = 0xbf317218; // -ln 2
    uint256 private constant C = 0x402df854; // e
    uint256 private constant SUBNORMAL = 0x00012345;

    /// @dev Storage is opaque to the optimizer.
    uint256[4] private words = [A, B, C, SUBNORMAL];
    uint256 private sink;

    function test_add() public {
        sink = Float32.add(words[0], words[1]);
    }

    function test_add_subnormal() public {
        sink = Float32.add(words[3], words[3]);
    }

    function test_mul() public {
        sink = Float32.mul(words[0], words[1]);
    }

    function test_mul_subnormal() public {
        sink = Float32.mul(words[0], words[3]);
    }

    function test_div() public {
        sink = Float32.div(words[0], words[1]);
    }

    function test_fma() public {
        sink = Float32.fma(words[0], words[1], words[2]);
    }

    function test_fma_subnormal() public {
        sink = Float32.fma(words[0], words[1], words[3]);
    }

    function test_sqrt() public {
        sink = Float32.sqrt(words[0]);
    }

    function test_compare() public {
        sink = Float32.lt(words[0], words[1]) ? 1 : 2;
    }

    function test_distance_of_words() public {
        sink = Distance.ofWords(words[0], words[1], 1, 0) + 1;
    }

    function test_distance_sum() public {
        sink = Distance.add(words[0], words[1]);
    }

    function test_press() public {
        sink = Clocks.press(words[0] << 72 | words[2] << 40 | 2 ** 39, address(this), Level(1), 2, words[3] & 0xffff);
    }

    function test_branch_of_20() public {
        sink = uint256(this.climb(bytes32(words[0]), 0xaaaaa, new bytes32[](20)));
    }

    function climb(bytes32 leaf, uint256 index, bytes32[] calldata branch) external pure returns (bytes32) {
        return MerkleBranch.climbIn(leaf, index, branch, 2 ** 20);
    }
}
