// What Python calls, through ctypes. Every function is safe to call from any thread; steps take turns.
#include <cstdlib>
#include <cstring>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "isa.h"
#include "pack.h"

#if defined(_WIN32)
#define EXPORT extern "C" __declspec(dllexport)
#else
#define EXPORT extern "C" __attribute__((visibility("default")))
#endif

namespace plait {

#if defined(__x86_64__)
static bool has_avx2() {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

#if PLAIT_HAS_AVX_VNNI
static bool has_avx_vnni() {
    unsigned eax = 0, ebx, ecx, edx;
    return has_avx2() && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) && (eax >> 4 & 1);
}
#endif

static bool has_avx512() {
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bf16") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
}
#endif

static bool has_nothing() { return true; }

// A kind of processor, and whether this machine is of it.
struct Processor {
    const Isa* isa;
    bool (*is_this)();
};

static const Processor kProcessors[] = {  // the fastest first
#if defined(__x86_64__)
    {&kAvx512, has_avx512},
#if PLAIT_HAS_AVX_VNNI
    {&kAvxVnni, has_avx_vnni},
#endif
    {&kAvx2, has_avx2},
#endif
    {&kPortable, has_nothing},
};

static const Isa* best() {
    for (const Processor& kind : kProcessors)
        if (kind.is_this()) return kind.isa;
    return &kPortable;
}

static const Isa*& chosen() {
    static const Isa* isa = best();
    return isa;
}

static Pool& pool() {
    static Pool& pool = *new Pool;  // never destroyed: its threads may run until the process ends
    return pool;
}

typedef std::lock_guard<std::mutex> Turn;

EXPORT int32_t plait_version() { return kVersion; }

EXPORT const char* plait_isa() { return chosen()->name; }

// Takes another kind of processor, for tests; 0 if this machine is not of that kind.
EXPORT int32_t plait_choose(const char* name) {
    for (const Processor& kind : kProcessors)
        if (std::strcmp(kind.isa->name, name) == 0 && kind.is_this()) return chosen() = kind.isa, 1;
    return 0;
}

EXPORT void plait_threads(int32_t num_threads) {
    const Turn turn(pool().turn);
    if (num_threads != pool().num_threads()) pool().resize(num_threads);
}

EXPORT int64_t plait_packed_bytes(int32_t kind, int64_t rows, int64_t cols) {
    return num_tiles(rows) * tile_bytes(kind, cols);
}

EXPORT int32_t plait_pack(int32_t ggml, const uint8_t* raw, int64_t begin, int64_t end, int64_t cols, uint8_t* tiles) {
    return pack(ggml, raw, begin, end, cols, uint8_t(chosen()->q8_offset), tiles);
}

EXPORT void* plait_make_buffers() { return chosen()->make_buffers(); }

EXPORT void plait_drop_buffers(void* buffers) { chosen()->drop_buffers(buffers); }

// Gives the logits [num_logits, vocab], and the id of the largest of each row, the first of equals;
// kNotFinite for a row with a number that is not finite.
EXPORT void plait_step(const Model* model, const Cache* cache, const Batch* batch, void* buffers, float* logits,
                       int64_t* largest) {
    const Turn turn(pool().turn);
    chosen()->step(*model, *cache, *batch, buffers, pool(), logits, largest);
}

EXPORT void plait_linear(const Linear* linear, const float* x, int64_t rows, int32_t is_exact, float* out) {
    const Turn turn(pool().turn);
    chosen()->linear(*linear, x, rows, is_exact != 0, pool(), out);
}

EXPORT void plait_sample(const float* logits, int64_t stride, int64_t width, const DrawRow* rows, int64_t num_rows,
                         int64_t* drawn) {
    const Turn turn(pool().turn);
    chosen()->sample(logits, stride, width, rows, num_rows, pool(), drawn);
}

EXPORT void plait_logprobs(const float* logits, int64_t stride, int64_t width, const int64_t* starts,
                           const int64_t* ids, int64_t num_rows, double* found) {
    const Turn turn(pool().turn);
    chosen()->logprobs(logits, stride, width, starts, ids, num_rows, pool(), found);
}

EXPORT void plait_attention(const Model* model, const Cache* cache, const Batch* batch, int32_t layer, const float* qkv,
                            float* out) {
    const Turn turn(pool().turn);
    chosen()->attention(*model, *cache, *batch, layer, qkv, pool(), out);
}

}  // namespace plait
