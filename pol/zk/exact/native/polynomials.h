// Polynomials over the scalar field, by their values at the roots of unity.
#pragma once
#include <vector>

#include "field.h"

namespace pol::bn254 {

// A root of unity of the order 2^log: 5 generates the field.
inline Fr root_of_unity(int log) {
    Limbs exponent;
    std::memcpy(exponent, Order::modulus, sizeof exponent);
    exponent[0] -= 1;
    for (int i = 0; i < log; ++i)
        for (int j = 0; j < 4; ++j) exponent[j] = exponent[j] >> 1 | (j < 3 ? exponent[j + 1] << 63 : 0);
    return Fr::of(5).power(exponent);
}

// values[i] = the polynomial at root^i, of its coefficients, in place.
inline void evaluate(std::vector<Fr>& values, const Fr& root) {
    const size_t count = values.size();
    for (size_t i = 1, j = 0; i < count; ++i) {
        size_t bit = count >> 1;
        for (; j & bit; bit >>= 1) j ^= bit;
        j ^= bit;
        if (i < j) std::swap(values[i], values[j]);
    }
    std::vector<Fr> powers(count / 2 + 1);
    powers[0] = Fr::one();
    for (size_t i = 1; i < powers.size(); ++i) powers[i] = powers[i - 1] * root;
    for (size_t half = 1; half < count; half *= 2)
        for (size_t begin = 0; begin < count; begin += 2 * half)
            for (size_t i = 0; i < half; ++i) {
                const Fr upper = values[begin + i], lower = values[begin + half + i] * powers[i * (count / (2 * half))];
                values[begin + i] = upper + lower;
                values[begin + half + i] = upper - lower;
            }
}

// values[i] times first times step^i.
inline void scale(std::vector<Fr>& values, const Fr& first, const Fr& step) {
    Fr factor = first;
    for (Fr& value : values) {
        value = value * factor;
        factor = factor * step;
    }
}

// Coefficients of (a b - c) / (X^n - 1), of the values of a, b and c at the n-th roots of unity, n = 2^log; in a.
inline void quotient(std::vector<Fr>& a, std::vector<Fr>& b, std::vector<Fr>& c, int log) {
    const size_t count = a.size();
    const Fr root = root_of_unity(log), back = root.inverse(), size = Fr::of(count).inverse(), shift = Fr::of(5);
    // At the roots a b - c is zero; at 5 times the roots X^n - 1 is a number.
    for (std::vector<Fr>* values : {&a, &b, &c}) {
        evaluate(*values, back);
        scale(*values, size, shift);
        evaluate(*values, root);
    }
    const Limbs exponent = {count};
    const Fr divisor = (shift.power(exponent) - Fr::one()).inverse();
    for (size_t i = 0; i < count; ++i) a[i] = (a[i] * b[i] - c[i]) * divisor;
    evaluate(a, back);
    scale(a, size, shift.inverse());
}

}  // namespace pol::bn254
