// What isa.cpp gives for one kind of processor.
#pragma once

#include "abi.h"
#include "pool.h"

namespace plait {

struct Isa {
    const char* name;
    int q8_offset;
    void* (*make_buffers)();
    void (*drop_buffers)(void*);
    void (*step)(const Model&, const Cache&, const Batch&, void* buffers, Pool&, float* logits, int64_t* largest);
    void (*linear)(const Linear&, const float* x, int64_t rows, bool is_exact, Pool&, float* out);
    void (*sample)(const float* logits, int64_t stride, int64_t width, const DrawRow*, int64_t num_rows, Pool&, int64_t* drawn);
    // Of row r the ids from starts[r] to starts[r + 1].
    void (*logprobs)(const float* logits, int64_t stride, int64_t width, const int64_t* starts, const int64_t* ids,
                     int64_t num_rows, Pool&, double* found);
    // Puts K and V into the cache, makes the copies, then attends: `qkv` [T, H + 2 KVH, D].
    void (*attention)(const Model&, const Cache&, const Batch&, int layer, const float* qkv, Pool&, float* out);
};

#if defined(__x86_64__)
extern const Isa kAvx512, kAvxVnni, kAvx2;
#endif
extern const Isa kPortable;

}  // namespace plait
