// How a kernel is written once for a GPU and for the host (docs/spec/devices.md).
//
// A kernel is a sequence of phases. In a phase each thread of a block works for itself; words that it leaves in shared
// memory are there for the others in the next one. On a GPU a phase ends in a barrier. On the host it is a loop over
// the threads of the block, forwards or, if POL_BACKWARDS is 1, backwards: a race within a phase shows as a difference.
//
//     POL_KERNEL(name, threads, parameters)
//     POL_PHASE(t) { ... }
//     POL_END
//
// `block` is the number of the block. Registers that live through several phases are declared by POL_REGISTERS and
// read as name[POL_SLOT(t)][i].
#pragma once

typedef unsigned int Word;
typedef unsigned long long Wide;
typedef long long Long;

#ifdef __CUDACC__

#define POL_INLINE static __device__ __forceinline__
// 512 threads of 128 registers fill a multiprocessor's 65,536: two blocks of the largest size.
#define POL_KERNEL(name, threads, ...)                                                       \
    extern "C" __global__ void __launch_bounds__(threads, 512 / (threads)) name(__VA_ARGS__) { \
        constexpr int kThreads = threads;                                                    \
        (void)kThreads;                                                                      \
        const Long block = blockIdx.x;                                                       \
        {
#define POL_END \
    }           \
    }
#define POL_ALONE(t) for (int t = threadIdx.x, once = 1; once; once = 0)
#define POL_PHASE(t) for (int t = threadIdx.x, once = 1; once; once = 0, __syncthreads())
#define POL_SHARED(type, name, count) __shared__ __align__(16) type name[count]
#define POL_REGISTERS(type, name, count) type name[1][count]
#define POL_SLOT(t) 0
#define POL_PRAGMA(text) _Pragma(#text)
#define POL_UNROLL _Pragma("unroll")
#define POL_UNROLL_BY(count) POL_PRAGMA(unroll (count))
#define POL_UNROLL_FEW _Pragma("unroll 2")
#define POL_RESTRICT __restrict__
#define POL_CONSTANT(type, name, count) static __constant__ const type name[count]

#else

#ifndef POL_BACKWARDS
#define POL_BACKWARDS 0
#endif
#define POL_INLINE static inline __attribute__((always_inline))
#define POL_KERNEL(name, threads, ...)                                \
    extern "C" void name(Long first_block, Long blocks, __VA_ARGS__) { \
        constexpr int kThreads = threads;                              \
        for (Long block = first_block; block < first_block + blocks; ++block) {
#define POL_END \
    }           \
    }
#define POL_ALONE(t)                                                                                      \
    for (int t = POL_BACKWARDS ? kThreads - 1 : 0; POL_BACKWARDS ? t >= 0 : t < kThreads; \
         t += POL_BACKWARDS ? -1 : 1)
#define POL_PHASE(t) POL_ALONE(t)
#define POL_SHARED(type, name, count) alignas(16) type name[count]
#define POL_REGISTERS(type, name, count) type name[kThreads][count]
#define POL_SLOT(t) t
#define POL_UNROLL _Pragma("GCC unroll 32")
#define POL_UNROLL_BY(count) POL_UNROLL
#define POL_UNROLL_FEW _Pragma("GCC unroll 2")
#define POL_RESTRICT __restrict__
#define POL_CONSTANT(type, name, count) static const type name[count]

#endif

// Four words that lie side by side: one load.
struct alignas(16) Quad {
    Word word[4];
};
