// Rounding to nearest with subnormal numbers in this thread; the mode of before is restored at the end of the scope.
#pragma once
#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#elif !defined(__aarch64__)
#error "this processor's floating-point control register is not known here"
#endif

namespace pol {

class FloatingPointMode {
   public:
    FloatingPointMode() : saved_(read()) { write(kDefault); }
    ~FloatingPointMode() { write(saved_); }
    FloatingPointMode(const FloatingPointMode&) = delete;
    FloatingPointMode& operator=(const FloatingPointMode&) = delete;

   private:
#if defined(__x86_64__)
    static constexpr uint64_t kDefault = 0x1f80;  // MXCSR: all exceptions masked, to nearest, no FTZ, no DAZ
    static uint64_t read() { return _mm_getcsr(); }
    static void write(uint64_t mode) { _mm_setcsr(static_cast<unsigned>(mode)); }
#else
    static constexpr uint64_t kDefault = 0;  // FPCR: to nearest, no flush to zero, no default NaN, no traps
    static uint64_t read() {
        uint64_t mode;
        asm volatile("mrs %0, fpcr" : "=r"(mode));
        return mode;
    }
    static void write(uint64_t mode) { asm volatile("msr fpcr, %0" : : "r"(mode)); }
#endif
    const uint64_t saved_;
};

}  // namespace pol
