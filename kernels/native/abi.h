// What Python and the kernels pass each other; kernels/native/abi.py mirrors it field by field.
#pragma once

#include <cstdint>

namespace plait {

constexpr int32_t kVersion = 3;
constexpr int kBlock = 32;   // numbers that share a scale
constexpr int kTile = 16;    // output rows of a weight, or tokens of a cache, that lie side by side
constexpr int kMaxHeadDim = 512;
constexpr int kChunk = 128;  // tokens that attention looks at together, counted from a text's start

enum Kind : int32_t { kQ4 = 0, kQ8 = 1, kBf16 = 2, kF32 = 3 };

// A weight [rows, cols] as `pack` lays it out.
struct Linear {
    const uint8_t* data;
    const float* bias;  // [rows] or null
    int32_t kind;
    int32_t rows;
    int32_t cols;
    int32_t reserved;
};

struct Layer {
    const float* input_norm;  // [hidden]
    const float* post_norm;   // [hidden]
    const float* q_norm;      // [head_dim] or null
    const float* k_norm;      // [head_dim] or null
    Linear q, k, v, o, gate, up, down;
};

struct Model {
    int32_t num_layers, hidden, num_heads, num_kv_heads, head_dim, inner, vocab;
    int32_t is_exact;  // activations stay fp32
    float eps;
    int32_t reserved;
    const float* norm;  // [hidden]
    Linear embedding, head;
    const Layer* layers;
};

// K and V: [layers][2][num_slots / 16][kv_heads] tiles of 16 tokens. bf16 lies in pairs for the
// dot product: K [D / 2][16][2], V [8][D][2]. fp32: K [D][16], V [16][D].
struct Cache {
    uint8_t* data;
    int64_t num_slots;  // a multiple of 16
    int32_t is_bf16;
    int32_t reserved;
};

// One forward pass. Each part of attention: rows that read the same tokens [begin, end) together.
struct Batch {
    int32_t num_tokens, num_seqs, max_blocks, block_size, num_copies, num_logits;
    int32_t num_groups, num_parts;
    const int32_t* token_ids;     // [T]
    const int32_t* positions;     // [T]
    const float* cos;             // [T, D / 2]
    const float* sin;             // [T, D / 2]
    const int64_t* slots;         // [T]
    const int32_t* block_tables;  // [n, max_blocks]
    const int64_t* copy_from;     // [c]
    const int64_t* copy_to;       // [c]
    const int64_t* logit_rows;    // [r]
    const int32_t* group_rows;    // [num_groups + 1] where the rows of a group begin in `rows`
    const int32_t* rows;          // [sum] rows of T
    const int32_t* group_parts;   // [num_groups + 1] where the parts of a group begin
    const int32_t* parts;         // [num_parts, 5]: first row, end row, sequence, begin, end
};

// How a token is drawn from a row of logits. Bit t % 32 of word t / 32 stands for token t.
struct DrawRow {
    const int32_t* known;  // [ceil(width / 32)] the tokens that there are
    const int32_t* mask;   // [mask_len] those that may come, or null for all
    uint64_t point;        // of 2^53
    double top_p, min_p;
    float temperature;  // 0 takes the largest
    int32_t mask_len, top_k, reserved;
};

// In place of a token: none may come; the logits are not finite.
constexpr int64_t kDeadEnd = -1, kNotFinite = -2;

}  // namespace plait
