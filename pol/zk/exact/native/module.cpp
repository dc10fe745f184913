// Python bindings: pol.zk.exact._bn254. Scalars are 32 bytes each, little-endian; points are coordinates in Montgomery form.
#include <stdexcept>

#include "multiples.h"
#include "native/bindings.h"
#include "polynomials.h"

namespace nb = nanobind;

namespace {

using namespace pol::bn254;
using pol::Bytes;

size_t count_of(const Bytes& bytes, size_t size, const char* what) {
    if (bytes.size() % size != 0) throw nb::value_error(what);
    return bytes.size() / size;
}

// A buffer's own bytes may begin anywhere.
std::vector<uint64_t> scalars_of(const Bytes& bytes) {
    std::vector<uint64_t> limbs(4 * count_of(bytes, 32, "scalars have 32 bytes each"));
    if (!limbs.empty()) std::memcpy(limbs.data(), bytes.data(), bytes.size());
    for (size_t i = 0; i < limbs.size(); i += 4)
        if (!Fr::from(&limbs[i]).is_below_modulus()) throw nb::value_error("scalars are below the order of the groups");
    return limbs;
}

template <class F>
const Affine<F>* points_of(const Bytes& bytes) {
    count_of(bytes, sizeof(Affine<F>), "points have 64 bytes each in the first group, and 128 in the second");
    if (reinterpret_cast<uintptr_t>(bytes.data()) % alignof(uint64_t) != 0) throw nb::value_error("points begin at a multiple of 8 bytes");
    return reinterpret_cast<const Affine<F>*>(bytes.data());
}

template <class F>
nb::bytes multiples_of(const Bytes& point, const Bytes& scalars, size_t threads) {
    if (point.size() != sizeof(Affine<F>)) throw nb::value_error("it is multiples of one point");
    const std::vector<uint64_t> limbs = scalars_of(scalars);
    std::vector<Affine<F>> out(limbs.size() / 4);
    {
        nb::gil_scoped_release unlocked;
        Affine<F> base;
        std::memcpy(&base, point.data(), sizeof base);
        multiples(base, limbs.data(), out.size(), out.data(), pol::threads_or_all(threads));
    }
    return nb::bytes(out.data(), out.size() * sizeof(Affine<F>));
}

nb::bytes multiples_in(int group, nb::handle point, nb::handle scalars, size_t threads) {
    const Bytes p(point), s(scalars);
    return group == 1 ? multiples_of<Fq>(p, s, threads) : multiples_of<Fq2>(p, s, threads);
}

template <class F>
nb::bytes sum_of(const Bytes& points, const Bytes& scalars, size_t threads) {
    const Affine<F>* given = points_of<F>(points);
    const std::vector<uint64_t> limbs = scalars_of(scalars);
    if (limbs.size() / 4 != points.size() / sizeof(Affine<F>)) throw nb::value_error("there are as many scalars as points");
    Affine<F> sum;
    {
        nb::gil_scoped_release unlocked;
        sum = multiexp(given, limbs.data(), limbs.size() / 4, pol::threads_or_all(threads));
    }
    return nb::bytes(&sum, sizeof sum);
}

nb::bytes multiexp_in(int group, nb::handle points, nb::handle scalars, size_t threads) {
    const Bytes p(points), s(scalars);
    return group == 1 ? sum_of<Fq>(p, s, threads) : sum_of<Fq2>(p, s, threads);
}

template <class F>
bool all_on_curve(const Bytes& points) {
    const Affine<F>* given = points_of<F>(points);
    const size_t count = points.size() / sizeof(Affine<F>);
    nb::gil_scoped_release unlocked;
    const F b = constant_b(static_cast<const F*>(nullptr));
    return std::all_of(given, given + count, [&](const Affine<F>& point) { return is_on_curve(point, b); });
}

bool on_curve_in(int group, nb::handle points) {
    const Bytes p(points);
    return group == 1 ? all_on_curve<Fq>(p) : all_on_curve<Fq2>(p);
}

std::vector<Fr> values_of(const Bytes& bytes) {
    const std::vector<uint64_t> limbs = scalars_of(bytes);
    std::vector<Fr> values(limbs.size() / 4);
    for (size_t i = 0; i < values.size(); ++i) values[i] = Fr::from(&limbs[4 * i]).to_montgomery();
    return values;
}

nb::bytes quotient_of(nb::handle first, nb::handle second, nb::handle third) {
    std::vector<Fr> a = values_of(Bytes(first)), b = values_of(Bytes(second)), c = values_of(Bytes(third));
    int log = 0;
    while ((size_t{1} << log) < a.size()) ++log;
    if (a.size() != size_t{1} << log || log > 28 || b.size() != a.size() || c.size() != a.size()) throw nb::value_error("there are 2^k values of each, k at most 28");
    {
        nb::gil_scoped_release unlocked;
        quotient(a, b, c, log);
        for (Fr& coefficient : a) coefficient = coefficient.from_montgomery();
    }
    return nb::bytes(a.data(), a.size() * sizeof(Fr));
}

}  // namespace

NB_MODULE(_bn254, m) {
    m.def("multiples", &multiples_in, nb::arg("group"), nb::arg("point"), nb::arg("scalars"), nb::arg("threads") = 0);
    m.def("multiexp", &multiexp_in, nb::arg("group"), nb::arg("points"), nb::arg("scalars"), nb::arg("threads") = 0);
    m.def("are_on_curve", &on_curve_in, nb::arg("group"), nb::arg("points"));
    m.def("quotient", &quotient_of, nb::arg("a"), nb::arg("b"), nb::arg("c"));
}
