// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Float32} from "../../../contracts/arithmetic/Float32.sol";
import {Base} from "../Base.sol";

/// @notice No solver gets through three divisions in a row, but a root has one operand: this tries them. `Float32.sqrt`
/// takes the fraction of its result from 24 bits of a normal number, its own and the last one of the field, and halves
/// the field above; so two fields hold every fraction there is. These are compared with the definition, and with the
/// least and the greatest two fields. Subnormal numbers are compared with the definition one by one. What is zero,
/// negative, infinite or NaN: `tests/arithmetic/test_court_arithmetic.py`.
contract SquareRootsTest is Base {
    uint256 private constant HIDDEN = 2 ** 23;
    uint256 private constant ONE = 127 << 23;
    /// @dev 126 in the field, and 63.
    uint256 private constant FAR = 126 << 23;
    uint256 private constant HALF_AS_FAR = 63 << 23;

    /// @dev A positive finite number is significand * 2^(exponent - 149).
    function _parts(uint256 a) private pure returns (uint256 exponent, uint256 significand) {
        uint256 field = a >> 23;
        return field == 0 ? (0, a) : (field - 1, (a & (HIDDEN - 1)) | HIDDEN);
    }

    /// @dev The root lies between the middles of `result` and its neighbours; the lower one is twice as near to a power
    /// of two. It is none of the middles: their squares have too many bits.
    function _isRoot(uint256 a, uint256 result) private pure returns (bool) {
        unchecked {
            (uint256 x, uint256 radicand) = _parts(a);
            (uint256 y, uint256 root) = _parts(result);
            // Squares of quarters of the root's last place.
            radicand <<= x + 153 - 2 * y;
            uint256 below = 4 * root - (root == HIDDEN ? 1 : 2);
            uint256 above = 4 * root + 2;
            return below * below < radicand && radicand < above * above;
        }
    }

    function _normal(uint256 part) private pure {
        unchecked {
            for (uint256 a = ONE + (part << 22); a < ONE + ((part + 1) << 22); ++a) {
                uint256 root = Float32.sqrt(a);
                bool isRight = _isRoot(a, root);
                isRight = isRight && Float32.sqrt(a - FAR) == root - HALF_AS_FAR;
                isRight = isRight && Float32.sqrt(a + FAR) == root + HALF_AS_FAR;
                if (!isRight) revert Wrong(a);
            }
        }
    }

    error Wrong(uint256 a);

    function test_normal_numbers_from_one() public pure {
        _normal(0);
    }

    function test_normal_numbers_from_one_and_a_half() public pure {
        _normal(1);
    }

    function test_normal_numbers_from_two() public pure {
        _normal(2);
    }

    function test_normal_numbers_from_three() public pure {
        _normal(3);
    }

    function test_subnormal_numbers() public pure {
        unchecked {
            for (uint256 a = 1; a < HIDDEN; ++a) {
                if (!_isRoot(a, Float32.sqrt(a))) revert Wrong(a);
            }
        }
    }

    /// @dev The definition refuses the neighbours of a root.
    function test_neighbours_are_no_roots() public pure {
        for (uint256 i = 0; i < 1000; i++) {
            uint256 a = ONE + 16_777 * i;
            uint256 root = Float32.sqrt(a);
            vm.assertTrue(_isRoot(a, root) && !_isRoot(a, root - 1) && !_isRoot(a, root + 1));
        }
        vm.assertFalse(_isRoot(ONE - 1, ONE));
    }
}
