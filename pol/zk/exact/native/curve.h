// Points of y^2 = x^3 + b, over Fq (the first group) or Fq2 (the second).
#pragma once
#include <vector>

#include "field.h"

namespace pol::bn254 {

// In a file and in Python: the coordinates in Montgomery form. Zeros are the point at infinity.
template <class F>
struct Affine {
    F x, y;
    bool is_infinity() const { return x.is_zero() && y.is_zero(); }
    Affine operator-() const { return {x, -y}; }
};

inline Fq constant_b(const Fq*) { return Fq::of(3); }
inline Fq2 constant_b(const Fq2*) {
    const Fq2 divisor = {Fq::of(9), Fq::one()};
    return Fq2{Fq::of(3), Fq()} * divisor.inverse();
}

// Coordinates below the modulus, of a point on the curve or at infinity.
template <class F>
bool is_on_curve(const Affine<F>& p, const F& b) {
    if (!p.x.is_below_modulus() || !p.y.is_below_modulus()) return false;
    return p.is_infinity() || p.y.square() == p.x.square() * p.x + b;
}

// (x / z^2, y / z^3); z is zero at infinity. Formulas: hyperelliptic.org/EFD, dbl-2009-l, madd-2007-bl, add-2007-bl.
template <class F>
struct Point {
    F x, y, z;

    static Point of(const Affine<F>& p) { return p.is_infinity() ? Point{} : Point{p.x, p.y, F::one()}; }
    bool is_infinity() const { return z.is_zero(); }

    Point twice() const {
        const F a = x.square(), b = y.square(), c = b.square();
        const F d = ((x + b).square() - a - c).twice(), e = a.twice() + a;
        const F x3 = e.square() - d.twice();
        return {x3, e * (d - x3) - c.twice().twice().twice(), (y * z).twice()};
    }

    Point operator+(const Affine<F>& o) const {
        if (o.is_infinity()) return *this;
        if (is_infinity()) return of(o);
        const F zz = z.square(), u = o.x * zz, s = o.y * z * zz;
        const F h = u - x, r = (s - y).twice();
        if (h.is_zero()) return r.is_zero() ? twice() : Point{};
        const F hh = h.square(), i = hh.twice().twice(), j = h * i, v = x * i;
        const F x3 = r.square() - j - v.twice();
        return {x3, r * (v - x3) - (y * j).twice(), (z + h).square() - zz - hh};
    }

    Point operator+(const Point& o) const {
        if (o.is_infinity()) return *this;
        if (is_infinity()) return o;
        const F zz = z.square(), oo = o.z.square();
        const F u1 = x * oo, u2 = o.x * zz, s1 = y * o.z * oo, s2 = o.y * z * zz;
        const F h = u2 - u1, r = (s2 - s1).twice();
        if (h.is_zero()) return r.is_zero() ? twice() : Point{};
        const F i = h.twice().square(), j = h * i, v = u1 * i;
        const F x3 = r.square() - j - v.twice();
        return {x3, r * (v - x3) - (s1 * j).twice(), ((z + o.z).square() - zz - oo) * h};
    }
};

// All of them with one inversion.
template <class F>
void to_affine(const Point<F>* points, size_t count, Affine<F>* out) {
    std::vector<F> before(count);
    F product = F::one();
    for (size_t i = 0; i < count; ++i) {
        before[i] = product;
        if (!points[i].is_infinity()) product = product * points[i].z;
    }
    F inverse = product.inverse();
    for (size_t i = count; i-- > 0;) {
        out[i] = {};
        if (points[i].is_infinity()) continue;
        const F each = inverse * before[i], square = each.square();
        inverse = inverse * points[i].z;
        out[i] = {points[i].x * square, points[i].y * square * each};
    }
}

}  // namespace pol::bn254
