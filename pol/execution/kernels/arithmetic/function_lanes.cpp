// The functions over blocks of words, all intermediate values in registers.
#include "arithmetic/function_lanes.h"

#include <array>
#include <utility>

#include "arithmetic/functions.h"
#include "arithmetic/primitives.h"
#include "arithmetic/wide_words.h"

namespace pol::POL_ISA {
namespace {

#include "arithmetic/functions_programs.inc"

// Registers whose NaN must be the one NaN: the bits escape, as in plan/lazy_nans.cpp.
struct Registers {
    bool at[kMaxRegisters];
};
template <typename F>
constexpr Registers find_escaping() {
    Registers escaping{};
    int result = kFirst<F> + kCount<F> - 1;
    escaping.at[result] = true;
    for (int i = kCount<F> - 1; i >= 0; --i, --result) {
        const Instruction in = F::instructions[i];
        if (sees_bits(in.op)) escaping.at[in.a] = escaping.at[in.b] = true;
        if (!escaping.at[result]) continue;
        if (in.op == MOV) escaping.at[in.a] = true;
        if (in.op == SELECT) escaping.at[in.b] = escaping.at[in.c] = true;
    }
    return escaping;
}
template <typename F>
constexpr Registers kEscaping = find_escaping<F>();

// Whether a register is a constant number other than zero: a smallest or greatest value that needs no care for zeros.
template <typename F>
constexpr bool is_bound(int r) {
    if (r < F::inputs || r >= kFirst<F>) return false;
    const uint32_t magnitude = F::constants[r - F::inputs] & kMagnitude;
    return magnitude > 0 && magnitude <= kInfinity;
}

// A program of integer products alone, for vectors of words.
template <typename F>
constexpr bool is_wide() {
    bool multiplies = false;
    for (const Instruction in : F::instructions) {
        if (in.op < ADD || in.op > XOR) return false;
        multiplies |= in.op == MULHI;
    }
    return multiplies;
}

template <uint8_t op, bool lazy>
[[gnu::always_inline]] inline uint32_t primitive(uint32_t a, uint32_t b, uint32_t c) {
#define POL_LAZY1(code, name) if constexpr (op == code) return name<lazy>(a);
#define POL_LAZY2(code, name) if constexpr (op == code) return name<lazy>(a, b);
#define POL_WORD1(code, name) if constexpr (op == code) return name(a);
#define POL_WORD2(code, name) if constexpr (op == code) return name(a, b);
    POL_PRIMITIVES(POL_LAZY1, POL_LAZY2, POL_WORD1, POL_WORD2)
#undef POL_LAZY1
#undef POL_LAZY2
#undef POL_WORD1
#undef POL_WORD2
    if constexpr (op == FFMA) return ffma<lazy>(a, b, c);
    if constexpr (op == SELECT) return select(a, b, c);
    return a;
}
#ifdef POL_WIDE_WORDS
template <uint8_t op, bool lazy>
[[gnu::always_inline]] inline Wide primitive(Wide a, Wide b, Wide) {
    if constexpr (op == ADD) return add(a, b);
    if constexpr (op == SUB) return sub(a, b);
    if constexpr (op == MUL) return mul(a, b);
    if constexpr (op == MULHI) return mulhi(a, b);
    if constexpr (op == AND) return and_(a, b);
    if constexpr (op == OR) return or_(a, b);
    return xor_(a, b);
}
#endif

template <typename F, int r, typename Word>
[[gnu::always_inline]] inline Word read(const Word* registers) {
    if constexpr (r >= F::inputs && r < kFirst<F>)
        return Word{} + F::constants[r - F::inputs];
    else
        return registers[r];
}

template <typename F, int i, typename Word>
[[gnu::always_inline]] inline Word computed(const Word* registers) {
    constexpr Instruction in = F::instructions[i];
    constexpr bool lazy = !kEscaping<F>.at[kFirst<F> + i], extreme = in.op == FMIN || in.op == FMAX;
    if constexpr (extreme && (is_bound<F>(in.a) || is_bound<F>(in.b))) {
        constexpr int bound = is_bound<F>(in.a) ? in.a : in.b, other = is_bound<F>(in.a) ? in.b : in.a;
        const Word x = read<F, other>(registers), constant = read<F, bound>(registers);
        return in.op == FMIN ? fmin_constant<lazy>(x, constant) : fmax_constant<lazy>(x, constant);
    } else {
        return primitive<in.op, lazy>(read<F, in.a>(registers), read<F, in.b>(registers), read<F, in.c>(registers));
    }
}

// The instructions in a row; the compiler keeps the registers in its own.
template <typename F, typename Word, size_t... i>
[[gnu::always_inline]] inline Word unrolled(Word* registers, std::index_sequence<i...>) {
    ((registers[kFirst<F> + i] = computed<F, i>(registers)), ...);
    return registers[kFirst<F> + kCount<F> - 1];
}
template <typename F, typename Word, typename... Words>
[[gnu::always_inline]] inline Word value(Word x, Words... more) {
    Word registers[kFirst<F> + kCount<F>] = {x, more...};
    return unrolled<F>(registers, std::make_index_sequence<kCount<F>>());
}

template <typename F, size_t... k>
[[gnu::always_inline]] inline void loop(uint32_t* d, const uint32_t* const* in, int n, std::index_sequence<k...>) {
    const uint32_t* const x[] = {in[k]...};
    if constexpr (is_wide<F>()) {
        int j = 0;
#ifdef POL_WIDE_WORDS
        for (; j + kWide <= n; j += kWide) store_wide(d + j, value<F>(load_wide(x[k] + j)...));
#endif
        for (; j < n; ++j) d[j] = value<F>(x[k][j]...);
    } else {
        _Pragma("GCC ivdep") for (int j = 0; j < n; ++j) d[j] = value<F>(x[k][j]...);
    }
}
template <typename F>
void lanes(uint32_t* d, const uint32_t* const* in, int n) {
    loop<F>(d, in, n, std::make_index_sequence<F::inputs>());
}

using Lanes = void (*)(uint32_t*, const uint32_t* const*, int);
template <typename... F>
constexpr auto loops_of(Functions<F...>) {
    return std::array<Lanes, sizeof...(F)>{lanes<F>...};
}
constexpr auto lanes_of = loops_of(Catalogue());
static_assert(lanes_of[kExp - kFunction] == lanes<Exp>);

// One word for all lanes, or one for each.
template <bool one>
[[gnu::always_inline]] inline uint32_t lane(const uint32_t* words, uint32_t word, int j) {
    return one ? word : words[j];
}

template <bool one>
void exponentials(uint32_t* d, const uint32_t* x, const uint32_t* shift, int n) {
    const uint32_t word = *shift;
    _Pragma("GCC ivdep") for (int j = 0; j < n; ++j) d[j] = value<Exp>(fsub<true>(x[j], lane<one>(shift, word, j)));
}

template <bool one>
void less_exponentials(uint32_t* d, const uint32_t* x, const uint32_t* exponent, const uint32_t* factor, int n) {
    const uint32_t word = *factor;
    _Pragma("GCC ivdep") for (int j = 0; j < n; ++j) d[j] = fsub<false>(x[j], fmul<true>(value<Exp>(exponent[j]), lane<one>(factor, word, j)));
}

}  // namespace

void exponentials(uint32_t* d, const uint32_t* const* in, int n) { exponentials<false>(d, in[0], in[1], n); }
void exponentials_of_row(uint32_t* d, const uint32_t* const* in, int n) { exponentials<true>(d, in[0], in[1], n); }
void less_exponentials(uint32_t* d, const uint32_t* const* in, int n) { less_exponentials<false>(d, in[0], in[1], in[2], n); }
void less_exponentials_of_row(uint32_t* d, const uint32_t* const* in, int n) { less_exponentials<true>(d, in[0], in[1], in[2], n); }

void apply_function(int function, uint32_t* d, const uint32_t* const* in, int n) {
    // Whole vectors; the lanes that are left over fill one with some others, since each by itself would take as long.
    constexpr int kVector = 16;
    const int whole = n / kVector * kVector, left = n - whole;
    if (whole > 0) lanes_of[function](d, in, whole);
    if (left == 0) return;
    uint32_t words[kMaxFunctionInputs][kVector] = {}, result[kVector];
    const uint32_t* inputs[kMaxFunctionInputs];
    for (int i = 0; i < kMaxFunctionInputs; ++i) {
        inputs[i] = i > 0 && in[i] == in[0] ? words[0] : words[i];
        if (inputs[i] == words[i]) __builtin_memcpy(words[i], in[i] + whole, size_t(left) * sizeof(uint32_t));
    }
    lanes_of[function](result, inputs, kVector);
    __builtin_memcpy(d + whole, result, size_t(left) * sizeof(uint32_t));
}

}  // namespace pol::POL_ISA
