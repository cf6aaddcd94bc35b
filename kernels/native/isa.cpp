// Compiled once for each kind of processor, with PLAIT_ISA its name and the compiler's flags for it.
#include "isa.h"

#include "sample.h"
#include "step.h"

#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)

namespace plait {
namespace PLAIT_ISA {

static void step(const Model& model, const Cache& cache, const Batch& batch, void* buffers, Pool& pool, float* logits,
                 int64_t* largest) {
    auto& room = *static_cast<Buffers*>(buffers);
    auto run = [&](auto tiles) {
        Step<decltype(tiles)> one(model, cache, batch, room, pool, logits);
        pool.run([&](int id) { one.run(Thread{id}); });
        for (int i = 0; i < batch.num_logits; ++i) largest[i] = one.largest(i);
    };
    if (cache.is_bf16) run(Bf16Tiles{});
    else run(Fp32Tiles{});
}

static void linear(const Linear& linear, const float* x, int64_t rows, bool is_exact, Pool& pool, float* out) {
    Room room;
    const Activations activations = room.get(rows, linear.cols, is_exact);
    for (int64_t row = 0; row < rows; ++row) set_row(activations, row, x + row * linear.cols);
    Counters counters(1, pool.num_threads());
    pool.run([&](int id) {
        counters.each(0, id, num_tiles(linear.rows), [&](int64_t tile) {
            multiply(linear, tile, activations, 0, rows, [&](int64_t row, F16x sums) { put(out + row * linear.rows, linear, tile, sums); });
        });
    });
}

// Each row by itself, on all threads.
template <class Work>
static void each_row(int64_t num_rows, Pool& pool, Work work) {
    if (num_rows == 1) return work(0);
    Counters counters(1, pool.num_threads());
    pool.run([&](int id) { counters.each(0, id, num_rows, work); });
}

static void sample(const float* logits, int64_t stride, int64_t width, const DrawRow* rows, int64_t num_rows,
                   Pool& pool, int64_t* drawn) {
    each_row(num_rows, pool, [&](int64_t row) {
        static thread_local Sampler sampler;
        drawn[row] = sampler.draw(logits + row * stride, width, rows[row]);
    });
}

static void logprobs(const float* logits, int64_t stride, int64_t width, const int64_t* starts, const int64_t* ids,
                     int64_t num_rows, Pool& pool, double* found) {
    each_row(num_rows, pool, [&](int64_t row) {
        const int64_t start = starts[row];
        logprobs_of(logits + row * stride, width, ids + start, starts[row + 1] - start, found + start);
    });
}

template <class Tiles>
static void attend(const Model& model, const Cache& cache, const Batch& batch, int layer, const float* qkv, Pool& pool,
                   float* out) {
    const Attention<Tiles> attention(model, cache, batch, layer);
    const int dim = model.head_dim, width = model.num_heads * dim, kv_width = model.num_kv_heads * dim;
    const int64_t stride = width + 2 * kv_width;
    for (int row = 0; row < batch.num_tokens; ++row)
        for (int head = 0; head < model.num_kv_heads; ++head) {
            const float* k = qkv + row * stride + width + head * dim;
            const int64_t slot = batch.slots[row];
            Tiles::put(attention.k(slot, head), attention.v(slot, head), dim, int(slot % kTile), k, k + kv_width);
        }
    for (int i = 0; i < batch.num_copies; ++i) attention.copy(batch.copy_from[i], batch.copy_to[i]);
    std::vector<AttentionRoom> rooms(pool.num_threads());
    Counters counters(1, pool.num_threads());
    pool.run([&](int id) {
        counters.each(0, id, int64_t(batch.num_groups) * model.num_kv_heads, [&](int64_t i) {
            attention.run(i, qkv, stride, out, width, rooms[id]);
        });
    });
}

static void attention(const Model& model, const Cache& cache, const Batch& batch, int layer, const float* qkv,
                      Pool& pool, float* out) {
    if (cache.is_bf16) attend<Bf16Tiles>(model, cache, batch, layer, qkv, pool, out);
    else attend<Fp32Tiles>(model, cache, batch, layer, qkv, pool, out);
}

static void* make_buffers() { return new Buffers; }
static void drop_buffers(void* buffers) { delete static_cast<Buffers*>(buffers); }

}  // namespace PLAIT_ISA

extern const Isa PLAIT_TABLE = {
    TEXT(PLAIT_ISA), PLAIT_ISA::kQ8Offset, PLAIT_ISA::make_buffers, PLAIT_ISA::drop_buffers,
    PLAIT_ISA::step, PLAIT_ISA::linear,    PLAIT_ISA::sample,       PLAIT_ISA::logprobs,
    PLAIT_ISA::attention,
};

}  // namespace plait
