// One forward pass: all layers in one call, the threads meeting between what depends on each other.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "attention.h"
#include "largest.h"
#include "linear.h"
#include "pool.h"

namespace plait {
namespace PLAIT_ISA {

constexpr int kCachedBytes = 512 << 10;  // of activations: half of what the second cache of a core holds

// Work of one phase after the other. Each thread begins with a share of its own, whose pieces lie side
// by side in memory, and then helps the others.
class Counters {
  public:
    Counters(int num_phases, int num_threads) : num_threads_(num_threads), next_(num_phases * num_threads) {}

    template <class Work>
    void each(int phase, int thread, int64_t size, Work work) {
        for (int i = 0; i < num_threads_; ++i) {
            const int owner = (thread + i) % num_threads_;
            const int64_t begin = size * owner / num_threads_, end = size * (owner + 1) / num_threads_;
            auto& next = next_[phase * num_threads_ + owner].value;
            for (int64_t at; (at = begin + next.fetch_add(1, std::memory_order_relaxed)) < end;) work(at);
        }
    }

  private:
    struct alignas(64) Next {  // no two in a cache line
        std::atomic<int64_t> value{0};
    };
    int num_threads_;
    std::vector<Next> next_;
};

struct Buffers {
    Array<float> x, qkv;
    Room normed, attended, inner, wanted;
    std::vector<AttentionRoom> attention;
    std::vector<Array<Largest>> largest;  // of each thread, by row of the logits
};

INLINE void norm_row(const float* x, const float* weight, int size, float eps, float* out) {
    F16x squares = {};
    int i = 0;
    for (; i + 16 <= size; i += 16) {
        const F16x v = load<F16x>(x + i);
        squares += v * v;
    }
    float total = sum(squares);
    for (; i < size; ++i) total += x[i] * x[i];
    const float inverse = 1.0f / std::sqrt(total / float(size) + eps);
    for (int j = 0; j < size; ++j) out[j] = x[j] * inverse * weight[j];
}

INLINE void turn(float* head, const float* cos, const float* sin, int half) {
    for (int i = 0; i < half; ++i) {
        const float a = head[i], b = head[half + i];
        head[i] = a * cos[i] - b * sin[i];
        head[half + i] = b * cos[i] + a * sin[i];
    }
}

INLINE F16x silu(F16x x) {
    const F16x e = exp2_negative(max(x, -x) * -kLog2E);
    const F16x sigmoid_of_size = 1.0f / (1.0f + e);
    return x * (x < 0.0f ? e * sigmoid_of_size : sigmoid_of_size);
}

// One thread's place in a step: all threads go through the same phases.
struct Thread {
    int id;
    int phase = 0;
};

template <class Tiles>
class Step {
  public:
    Step(const Model& model, const Cache& cache, const Batch& batch, Buffers& buffers, Pool& pool, float* logits)
        : m_(model), cache_(cache), b_(batch), pool_(pool), logits_(logits), buffers_(buffers),
          counters_(kMaxPhases * model.num_layers + 2, pool.num_threads()), rows_(batch.num_tokens),
          heads_width_(model.num_heads * model.head_dim), kv_width_(model.num_kv_heads * model.head_dim),
          stride_(heads_width_ + 2 * kv_width_) {
        const bool is_exact = model.is_exact;
        buffers.x.resize(std::max<size_t>(buffers.x.size(), rows_ * model.hidden));
        buffers.qkv.resize(std::max<size_t>(buffers.qkv.size(), rows_ * stride_));
        normed_ = buffers.normed.get(rows_, model.hidden, is_exact);
        attended_ = buffers.attended.get(rows_, heads_width_, is_exact);
        inner_ = buffers.inner.get(rows_, model.inner, is_exact);
        wanted_ = buffers.wanted.get(batch.num_logits, model.hidden, is_exact);
        buffers.attention.resize(pool.num_threads());
        buffers.largest.resize(pool.num_threads());
        x_ = buffers.x.data();
    }

    // What every thread does.
    void run(Thread thread) {
        each(thread, rows_, [&](int64_t row) {
            row_of(m_.embedding, b_.token_ids[row], x_ + row * m_.hidden);
            enter(row, m_.layers[0].input_norm);
        });
        for (int i = 0; i < m_.num_layers; ++i) run_layer(thread, i);
        run_head(thread);
    }

    // The id of the largest logit of a row, or kNotFinite. Once all threads have run.
    int64_t largest(int64_t row) const {
        Largest of_all;
        for (const Array<Largest>& rows : buffers_.largest) of_all.add(rows[row]);
        return of_all.place();
    }

  private:
    static constexpr int kMaxPhases = 10;  // of a layer

    // One phase: all of it is done, by all threads, when it returns.
    template <class Work>
    void each(Thread& thread, int64_t size, Work work) {
        counters_.each(thread.phase++, thread.id, size, work);
        pool_.barrier.wait(thread.id);
    }

    // The products of a weight of `tiles` tiles: `work(tile, begin, end)` gets some rows at a time,
    // no more than stay in a core's own cache while all tiles pass.
    template <class Work>
    void each_tile(Thread& thread, int64_t tiles, int64_t rows, int cols, Work work) {
        const int64_t at_once = std::max<int64_t>(1, kCachedBytes / (int64_t(sizeof(RowBlocks)) * (cols / kBlock))) * kRows;
        each(thread, tiles * ((rows + at_once - 1) / at_once), [&](int64_t piece) {
            const int64_t begin = piece / tiles * at_once;
            work(piece % tiles, begin, std::min(begin + at_once, rows));
        });
    }

    // The logits; the largest of each row is found while they are in registers.
    void run_head(Thread& thread) {
        Array<Largest>& largest = buffers_.largest[thread.id];
        largest.assign(b_.num_logits, Largest());
        const int64_t vocab = m_.head.rows;
        each_tile(thread, num_tiles(vocab), b_.num_logits, m_.hidden, [&](int64_t tile, int64_t begin, int64_t end) {
            multiply(m_.head, tile, wanted_, begin, end, [&](int64_t row, F16x sums) {
                put(logits_ + row * vocab, m_.head, tile, sums);
                largest[row].add(tile, sums, vocab - tile * kTile);
            });
        });
    }

    void run_layer(Thread& thread, int index) {
        const Layer& layer = m_.layers[index];
        const Attention<Tiles> attention(m_, cache_, b_, index);
        float* qkv = buffers_.qkv.data();
        const int64_t q_tiles = num_tiles(layer.q.rows), k_tiles = num_tiles(layer.k.rows);
        each_tile(thread, q_tiles + 2 * k_tiles, rows_, m_.hidden, [&](int64_t tile, int64_t begin, int64_t end) {
            if (tile < q_tiles) return project(layer.q, tile, begin, end, qkv);
            tile -= q_tiles;
            if (tile < k_tiles) return project(layer.k, tile, begin, end, qkv + heads_width_);
            project(layer.v, tile - k_tiles, begin, end, qkv + heads_width_ + kv_width_);
        });
        each(thread, rows_, [&](int64_t row) { keep(layer, attention, row); });
        if (b_.num_copies) each(thread, b_.num_copies, [&](int64_t i) { attention.copy(b_.copy_from[i], b_.copy_to[i]); });
        each(thread, int64_t(b_.num_groups) * m_.num_kv_heads, [&](int64_t i) {
            attention.run(i, qkv, stride_, attended_.values, attended_.cols, buffers_.attention[thread.id]);
        });
        if (!m_.is_exact)
            each(thread, rows_, [&](int64_t row) { set_row(attended_, row, attended_.values + row * attended_.cols); });
        add_projected(thread, layer.o, attended_, layer.post_norm);
        each_tile(thread, m_.inner / kBlock, rows_, m_.hidden, [&](int64_t block, int64_t begin, int64_t end) {
            open_gate(layer, int(block), begin, end);
        });
        const bool is_last = index + 1 == m_.num_layers;
        add_projected(thread, layer.down, inner_, is_last ? nullptr : m_.layers[index + 1].input_norm);
    }

    // Normalises a row of the hidden states for what comes next.
    void enter(int64_t row, const float* weight) {
        float* to = normed_.values + row * m_.hidden;
        norm_row(x_ + row * m_.hidden, weight, m_.hidden, m_.eps, to);
        set_row(normed_, row, to);
    }

    void project(const Linear& linear, int64_t tile, int64_t begin, int64_t end, float* out) {
        multiply_into(linear, tile, normed_, begin, end, out, stride_, [&](float* row, F16x sums) { put(row, linear, tile, sums); });
    }

    // Turns queries and keys, and puts the keys and values of a row into the cache.
    void keep(const Layer& layer, const Attention<Tiles>& attention, int64_t row) {
        float* q = buffers_.qkv.data() + row * stride_;
        float* k = q + heads_width_;
        const float* v = k + kv_width_;
        const int dim = m_.head_dim;
        const float* cos = b_.cos + row * (dim / 2);
        const float* sin = b_.sin + row * (dim / 2);
        for (int head = 0; head < m_.num_heads; ++head) {
            if (layer.q_norm) norm_row(q + head * dim, layer.q_norm, dim, m_.eps, q + head * dim);
            turn(q + head * dim, cos, sin, dim / 2);
        }
        const int64_t slot = b_.slots[row];
        for (int head = 0; head < m_.num_kv_heads; ++head) {
            if (layer.k_norm) norm_row(k + head * dim, layer.k_norm, dim, m_.eps, k + head * dim);
            turn(k + head * dim, cos, sin, dim / 2);
            Tiles::put(attention.k(slot, head), attention.v(slot, head), dim, int(slot % kTile), k + head * dim, v + head * dim);
        }
    }

    // Adds a product to the hidden states, and normalises them: all rows by `weight`, or where there is
    // none those whose logits are wanted, at the end.
    void add_projected(Thread& thread, const Linear& linear, const Activations& from, const float* weight) {
        each_tile(thread, num_tiles(linear.rows), rows_, linear.cols, [&](int64_t tile, int64_t begin, int64_t end) {
            multiply_into(linear, tile, from, begin, end, x_, m_.hidden, [&](float* row, F16x sums) { add(row, linear, tile, sums); });
        });
        if (weight) return each(thread, rows_, [&](int64_t row) { enter(row, weight); });
        each(thread, b_.num_logits, [&](int64_t i) {
            float* to = wanted_.values + i * m_.hidden;
            norm_row(x_ + b_.logit_rows[i] * m_.hidden, m_.norm, m_.hidden, m_.eps, to);
            set_row(wanted_, i, to);
        });
    }

    // 32 columns of what `down` multiplies, for some rows.
    void open_gate(const Layer& layer, int block, int64_t begin, int64_t end) {
        const bool is_quantized = !m_.is_exact && (layer.down.kind == kQ4 || layer.down.kind == kQ8);
        each_group(begin, end, [&](int64_t row, int n) {
            alignas(64) float gate[2][kRows * kTile], up[2][kRows * kTile];
            for (int i = 0; i < 2; ++i) multiply_group(layer.gate, 2 * block + i, normed_, row, n, gate[i]);
            for (int i = 0; i < 2; ++i) multiply_group(layer.up, 2 * block + i, normed_, row, n, up[i]);
            for (int r = 0; r < n; ++r) {
                F16x out[2];
                for (int i = 0; i < 2; ++i) out[i] = silu(load<F16x>(gate[i] + kTile * r)) * load<F16x>(up[i] + kTile * r);
                if (is_quantized) set_block(inner_, row + r, block, out[0], out[1]);
                else store(inner_.values + (row + r) * m_.inner + kBlock * block, out[0]), store(inner_.values + (row + r) * m_.inner + kBlock * block + 16, out[1]);
            }
        });
    }

    INLINE void add(float* row, const Linear& linear, int64_t tile, F16x sums) {
        const int64_t first = tile * kTile;
        if (first + kTile <= linear.rows) return store(row + first, load<F16x>(row + first) + sums);
        for (int i = 0; first + i < linear.rows; ++i) row[first + i] += sums[i];
    }

    const Model& m_;
    const Cache& cache_;
    const Batch& b_;
    Pool& pool_;
    float* logits_;
    Buffers& buffers_;
    Counters counters_;
    int64_t rows_;
    int heads_width_, kv_width_, stride_;
    Activations normed_, attended_, inner_, wanted_;
    float* x_;
};

}  // namespace PLAIT_ISA
}  // namespace plait
