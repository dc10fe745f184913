// Numbers modulo a prime of 254 bits, in Montgomery form: four limbs of 64 bits, the lowest first.
#pragma once
#include <cstdint>
#include <cstring>

namespace pol::bn254 {

using Limbs = uint64_t[4];

// Modulus of the coordinates of points.
struct Base {
    static constexpr Limbs modulus = {0x3c208c16d87cfd47, 0x97816a916871ca8d, 0xb85045b68181585d, 0x30644e72e131a029};
};

// Order of the groups.
struct Order {
    static constexpr Limbs modulus = {0x43e1f593f0000001, 0x2833e84879b97091, 0xb85045b68181585d, 0x30644e72e131a029};
};

constexpr uint64_t minus_inverse(uint64_t odd) {
    uint64_t inverse = 1;
    for (int i = 0; i < 6; ++i) inverse *= 2 - odd * inverse;  // twice as many bits are right each time
    return 0 - inverse;
}

template <class P>
class Field {
   public:
    constexpr Field() : v{} {}

    static Field one() { return from(kOne); }

    static Field of(uint64_t number) {
        const Limbs limbs = {number};
        return from(limbs).to_montgomery();
    }

    // The limbs as they are.
    static Field from(const uint64_t* limbs) {
        Field f;
        std::memcpy(f.v, limbs, sizeof f.v);
        return f;
    }
    Field to_montgomery() const { return *this * from(kSquare); }
    Field from_montgomery() const {
        const Limbs one = {1};
        return *this * from(one);
    }

    const uint64_t* limbs() const { return v; }
    bool is_zero() const { return (v[0] | v[1] | v[2] | v[3]) == 0; }
    bool is_below_modulus() const {
        for (int i = 3; i >= 0; --i)
            if (v[i] != P::modulus[i]) return v[i] < P::modulus[i];
        return false;
    }
    bool operator==(const Field& o) const { return std::memcmp(v, o.v, sizeof v) == 0; }

    Field operator+(const Field& o) const {
        Field f;
        unsigned __int128 carry = 0;
        for (int i = 0; i < 4; ++i) {
            carry += static_cast<unsigned __int128>(v[i]) + o.v[i];
            f.v[i] = static_cast<uint64_t>(carry);
            carry >>= 64;
        }
        return f.reduced();  // two numbers of 254 bits leave no carry
    }

    Field operator-(const Field& o) const {
        Field f;
        const bool borrow = subtract(v, o.v, f.v);
        const uint64_t mask = 0 - static_cast<uint64_t>(borrow);
        unsigned __int128 carry = 0;
        for (int i = 0; i < 4; ++i) {
            carry += static_cast<unsigned __int128>(f.v[i]) + (P::modulus[i] & mask);
            f.v[i] = static_cast<uint64_t>(carry);
            carry >>= 64;
        }
        return f;
    }
    Field operator-() const { return Field() - *this; }

    // Montgomery's product, limb by limb; the modulus leaves its highest bit free, so no carry goes beyond a limb.
    Field operator*(const Field& o) const {
        uint64_t t[4] = {0, 0, 0, 0};
        for (int i = 0; i < 4; ++i) {
            unsigned __int128 a = static_cast<unsigned __int128>(v[0]) * o.v[i] + t[0];
            const uint64_t m = static_cast<uint64_t>(a) * kMinusInverse;
            unsigned __int128 c = static_cast<unsigned __int128>(m) * P::modulus[0] + static_cast<uint64_t>(a);
            for (int j = 1; j < 4; ++j) {
                a = static_cast<unsigned __int128>(v[j]) * o.v[i] + t[j] + static_cast<uint64_t>(a >> 64);
                c = static_cast<unsigned __int128>(m) * P::modulus[j] + static_cast<uint64_t>(a) + static_cast<uint64_t>(c >> 64);
                t[j - 1] = static_cast<uint64_t>(c);
            }
            t[3] = static_cast<uint64_t>(a >> 64) + static_cast<uint64_t>(c >> 64);
        }
        return from(t).reduced();
    }
    Field square() const { return *this * *this; }
    Field twice() const { return *this + *this; }

    // Of a number that isn't zero: its power of the modulus minus two.
    Field inverse() const {
        Limbs exponent;
        std::memcpy(exponent, P::modulus, sizeof exponent);
        exponent[0] -= 2;
        return power(exponent);
    }
    Field power(const uint64_t* exponent) const {
        Field result = one();
        for (int bit = 255; bit >= 0; --bit) {
            result = result.square();
            if (exponent[bit / 64] >> (bit % 64) & 1) result = result * *this;
        }
        return result;
    }

   private:
    uint64_t v[4];

    static bool subtract(const uint64_t* a, const uint64_t* b, uint64_t* out) {
        uint64_t borrow = 0;
        for (int i = 0; i < 4; ++i) {
            const unsigned __int128 d = static_cast<unsigned __int128>(a[i]) - b[i] - borrow;
            out[i] = static_cast<uint64_t>(d);
            borrow = static_cast<uint64_t>(d >> 64) & 1;
        }
        return borrow != 0;
    }

    Field reduced() const {
        Field f;
        return subtract(v, P::modulus, f.v) ? *this : f;
    }

    struct Power {
        uint64_t v[4];
    };

    // 2^bits modulo the prime.
    static constexpr Power power_of_two(int bits) {
        Power p = {{1, 0, 0, 0}};
        for (int i = 0; i < bits; ++i) {
            uint64_t top = 0;
            for (uint64_t& limb : p.v) {
                const uint64_t next = limb >> 63;
                limb = limb << 1 | top;
                top = next;
            }
            bool above = true;
            for (int j = 3; j >= 0; --j)
                if (p.v[j] != P::modulus[j]) {
                    above = p.v[j] > P::modulus[j];
                    break;
                }
            uint64_t borrow = 0;
            for (int j = 0; above && j < 4; ++j) {
                const uint64_t less = p.v[j] - P::modulus[j], out = less - borrow;
                borrow = (p.v[j] < P::modulus[j]) | (less < borrow);
                p.v[j] = out;
            }
        }
        return p;
    }

    static constexpr Power kOnePower = power_of_two(256), kSquarePower = power_of_two(512);
    static constexpr const uint64_t* kOne = kOnePower.v;
    static constexpr const uint64_t* kSquare = kSquarePower.v;
    static constexpr uint64_t kMinusInverse = minus_inverse(P::modulus[0]);
};

using Fq = Field<Base>;
using Fr = Field<Order>;

// a + b i with i^2 = -1.
struct Fq2 {
    Fq a, b;

    static Fq2 one() { return {Fq::one(), Fq()}; }
    bool is_zero() const { return a.is_zero() && b.is_zero(); }
    bool is_below_modulus() const { return a.is_below_modulus() && b.is_below_modulus(); }
    bool operator==(const Fq2& o) const { return a == o.a && b == o.b; }
    Fq2 operator+(const Fq2& o) const { return {a + o.a, b + o.b}; }
    Fq2 operator-(const Fq2& o) const { return {a - o.a, b - o.b}; }
    Fq2 operator-() const { return {-a, -b}; }
    Fq2 operator*(const Fq2& o) const {
        const Fq first = a * o.a, second = b * o.b;
        return {first - second, (a + b) * (o.a + o.b) - first - second};
    }
    Fq2 square() const { return {(a + b) * (a - b), (a * b).twice()}; }
    Fq2 twice() const { return *this + *this; }
    Fq2 inverse() const {
        const Fq norm = (a.square() + b.square()).inverse();
        return {a * norm, -(b * norm)};
    }
};

}  // namespace pol::bn254
