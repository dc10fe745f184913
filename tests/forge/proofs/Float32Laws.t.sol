// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Float32} from "../../../contracts/arithmetic/Float32.sol";

/// @notice Laws of `Float32` over all patterns. forge draws inputs, `.ci/audit prove` proves them. That nothing
/// reverts: `ScalarMachineLaws`.
contract Float32Laws {
    uint256 private constant SIGN = 0x80000000;
    uint256 private constant MAGNITUDE = 0x7fffffff;
    uint256 private constant FRACTION = 0x7fffff;
    uint256 private constant HIDDEN = 0x800000;

    /// @dev 32 bits, and no NaN but the one.
    function _assertCanonical(uint256 result) private pure {
        assert(result < 2 ** 32 && (!Float32.isNaN(result) || result == Float32.NAN));
    }

    // --- commutativity ---

    /// @dev What `Float32.add` makes of two significands in their places: magnitude and mask of the sign of their sum
    /// or difference.
    function _total(uint256 x, uint256 y, uint256 opposite) private pure returns (uint256 magnitude, uint256 negative) {
        assembly ("memory-safe") {
            let sum := add(x, sub(xor(y, opposite), opposite))
            negative := sar(255, sum)
            magnitude := sub(xor(sum, negative), negative)
        }
    }

    /// @dev `Float32` takes the greater of two fields so.
    function _greater(uint256 x, uint256 y) private pure returns (uint256 result) {
        assembly ("memory-safe") {
            result := xor(x, mul(xor(x, y), gt(y, x)))
        }
    }

    /// @dev The same magnitude, whichever term comes first, and after a subtraction the other sign, unless nothing is
    /// left.
    function testProve_totals_commute(uint256 x, uint256 y, bool differ) public pure {
        if ((x | y) >> 255 != 0) return;
        uint256 opposite = differ ? type(uint256).max : 0;
        (uint256 one, uint256 negative) = _total(x, y, opposite);
        (uint256 other, uint256 otherNegative) = _total(y, x, opposite);
        assert(one == other);
        assert(one == 0 || negative ^ otherNegative == opposite);
    }

    function testProve_the_greater_field_commutes(uint8 x, uint8 y) public pure {
        assert(_greater(x, y) == _greater(y, x));
    }

    /// @dev With what `totals_commute` and `the_greater_field_commutes` say of these terms at hand: below two shifts no
    /// solver finds it again in minutes. A significand is below 2^255 in its place if its field is below 231.
    function testProve_add_commutes(uint32 a, uint32 b) public pure {
        _addCommutes(a, b);
    }

    /// @dev Words, as `Float32.add` takes them: the solvers have to see the same terms.
    function _addCommutes(uint256 a, uint256 b) private pure {
        (uint256 x, uint256 y) = (a >> 23 & 0xff, b >> 23 & 0xff);
        if (_greater(x, y) != _greater(y, x)) return;
        if (x < 231 && y < 231) {
            uint256 opposite;
            assembly ("memory-safe") {
                x := shl(x, or(and(a, FRACTION), HIDDEN))
                y := shl(y, or(and(b, FRACTION), HIDDEN))
                opposite := sub(0, shr(31, xor(a, b)))
            }
            (uint256 one, uint256 negative) = _total(x, y, opposite);
            (uint256 other, uint256 otherNegative) = _total(y, x, opposite);
            if (one != other) return;
            if (one != 0 && negative ^ otherNegative != opposite) return;
        }
        assert(Float32.add(a, b) == Float32.add(b, a));
    }

    function testProve_mul_commutes(uint32 a, uint32 b) public pure {
        assert(Float32.mul(a, b) == Float32.mul(b, a));
    }

    function testProve_min_and_max_commute(uint32 a, uint32 b) public pure {
        assert(Float32.min(a, b) == Float32.min(b, a));
        assert(Float32.max(a, b) == Float32.max(b, a));
    }

    // --- one NaN, and when it is the result ---

    function testProve_add_is_canonical(uint32 a, uint32 b) public pure {
        _assertCanonical(Float32.add(a, b));
    }

    function testProve_mul_is_canonical(uint32 a, uint32 b) public pure {
        _assertCanonical(Float32.mul(a, b));
    }

    function testProve_div_is_canonical(uint32 a, uint32 b) public pure {
        _assertCanonical(Float32.div(a, b));
    }

    function testProve_add_is_NaN_of_NaN_and_of_infinities_alone(uint32 a, uint32 b) public pure {
        bool cancels = a & MAGNITUDE == Float32.INF && a ^ b == SIGN;
        assert((Float32.add(a, b) == Float32.NAN) == (Float32.isNaN(a) || Float32.isNaN(b) || cancels));
    }

    function testProve_mul_is_NaN_of_NaN_and_of_zero_times_infinity_alone(uint32 a, uint32 b) public pure {
        bool undefined = (a & MAGNITUDE == 0 && b & MAGNITUDE == Float32.INF)
            || (b & MAGNITUDE == 0 && a & MAGNITUDE == Float32.INF);
        assert((Float32.mul(a, b) == Float32.NAN) == (Float32.isNaN(a) || Float32.isNaN(b) || undefined));
    }

    // --- signs ---

    /// @dev A term of a sum as `add` has it: its significand, shifted by its field.
    function _term(uint256 a) private pure returns (uint256) {
        return (a & FRACTION | HIDDEN) << (a >> 23 & 0xff);
    }

    /// @dev What the law below the next takes for granted.
    function testProve_terms_have_the_order_of_magnitudes(uint32 a, uint32 b) public pure {
        if (a & MAGNITUDE <= b & MAGNITUDE || a >> 23 & 0xff > 230) return;
        assert(_term(a) > _term(b));
    }

    function testProve_sign_of_a_sum_of_one_sign(uint32 a, uint32 b) public pure {
        uint256 sum = Float32.add(a, b);
        assert((a ^ b) & SIGN != 0 || sum == Float32.NAN || sum & SIGN == a & SIGN);
    }

    /// @dev Terms of different signs, of which the first is the greater one.
    function _isDifference(uint256 a, uint256 b) private pure returns (bool) {
        if ((a ^ b) & SIGN == 0 || a & MAGNITUDE <= b & MAGNITUDE) return false;
        return a >> 23 & 0xff > 230 || _term(a) > _term(b);
    }

    /// @dev If the second term is the greater one: `add_commutes`.
    function testProve_sign_of_a_sum_is_that_of_the_greater_term(uint32 a, uint32 b) public pure {
        if (!_isDifference(a, b)) return;
        uint256 sum = Float32.add(a, b);
        assert(sum == Float32.NAN || sum & SIGN == a & SIGN);
    }

    function testProve_terms_that_cancel_leave_the_positive_zero(uint32 a) public pure {
        uint256 sum = Float32.add(a, a ^ SIGN);
        assert(sum == 0 || sum == Float32.NAN);
    }

    function testProve_sign_of_a_product(uint32 a, uint32 b) public pure {
        uint256 product = Float32.mul(a, b);
        assert(product == Float32.NAN || product & SIGN == (a ^ b) & SIGN);
    }

    function testProve_sign_of_a_quotient(uint32 a, uint32 b) public pure {
        uint256 quotient = Float32.div(a, b);
        assert(quotient == Float32.NAN || quotient & SIGN == (a ^ b) & SIGN);
    }

    /// @dev Not laws: for these the prover has to find a counterexample.
    function refute_add_has_no_rounding(uint32 a, uint32 b) public pure {
        assert(Float32.sub(Float32.add(a, b), b) == a);
    }

    function refute_a_difference_is_never_less_than_half(uint32 a, uint32 b) public pure {
        if (!_isDifference(a, b)) return;
        assert(Float32.add(a, b) & MAGNITUDE >= (a & MAGNITUDE) - HIDDEN);
    }

    function refute_mul_is_never_infinite(uint32 a, uint32 b) public pure {
        assert(Float32.mul(a, b) & 0x7fffffff != Float32.INF);
    }
}
