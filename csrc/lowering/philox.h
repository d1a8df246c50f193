// Philox 4x32-10, written out so that the stream is the same on every plugin.
//
// key = the seed's two halves; block k of the stream is the cipher of the counter (k, 0). A draw starting at `offset`
// (a multiple of 4) reads word i as word i % 4 of block offset / 4 + i / 4.
#pragma once

#include <array>

#include "program/builder.h"

namespace torch_tpu {

// state: ui64[2] {seed, offset}; index: ui64 of any dims, relative to the draw's first block. Four ui32 words of
// index's dims.
std::array<Value, 4> PhiloxBlock(Builder& b, Value state, Value index);

// For each of n elements: word i (one per element), or words 2i and 2i + 1.
Value PhiloxWords(Builder& b, Value state, int64_t n);
std::array<Value, 2> PhiloxPairs(Builder& b, Value state, int64_t n);

}  // namespace torch_tpu
