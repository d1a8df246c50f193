#include "lowering/philox.h"

namespace torch_tpu {

namespace {

constexpr int64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
constexpr int64_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

Value Low(Builder& b, Value x) { return b.Convert(x, DType::kUInt32); }
Value High(Builder& b, Value x) {
  return b.Convert(b.ShiftRightLogical(x, b.ConstantInt(DType::kUInt64, 32, x.dims())), DType::kUInt32);
}

Value Block(Builder& b, int64_t n, int64_t per_block) {
  Value i = b.Iota(DType::kUInt64, {n}, 0);
  return b.ShiftRightLogical(i, b.ConstantInt(DType::kUInt64, per_block == 4 ? 2 : 1, {n}));
}

}  // namespace

std::array<Value, 4> PhiloxBlock(Builder& b, Value state, Value index) {
  const Dims& dims = index.dims();
  // Narrowing to the low word must not be done by a convert that saturates: mask first.
  Value mask = b.ConstantInt(DType::kUInt64, 0xFFFFFFFF, dims);
  auto low = [&](Value x) { return Low(b, b.And(x, mask)); };
  Value seed = b.Reshape(b.SliceDim(state, 0, 0, 1), {}), offset = b.Reshape(b.SliceDim(state, 0, 1, 2), {});
  Value first = b.ShiftRightLogical(offset, b.ConstantInt(DType::kUInt64, 2));
  Value counter = b.Add(index, b.BroadcastInDim(first, dims, {}));
  Value c0 = low(counter), c1 = High(b, counter);
  Value c2 = b.Zero(DType::kUInt32, dims), c3 = c2;
  Value k0 = Low(b, b.And(seed, b.ConstantInt(DType::kUInt64, 0xFFFFFFFF))), k1 = High(b, seed);
  for (int round = 0; round < kRounds; ++round) {
    Value p0 = b.Multiply(b.Convert(c0, DType::kUInt64), b.ConstantInt(DType::kUInt64, kMultiplier0, dims));
    Value p1 = b.Multiply(b.Convert(c2, DType::kUInt64), b.ConstantInt(DType::kUInt64, kMultiplier1, dims));
    Value n0 = b.Xor(b.Xor(High(b, p1), c1), b.BroadcastInDim(k0, dims, {}));
    Value n2 = b.Xor(b.Xor(High(b, p0), c3), b.BroadcastInDim(k1, dims, {}));
    c1 = low(p1);
    c3 = low(p0);
    c0 = n0;
    c2 = n2;
    k0 = b.Add(k0, b.ConstantInt(DType::kUInt32, kWeyl0));
    k1 = b.Add(k1, b.ConstantInt(DType::kUInt32, kWeyl1));
  }
  return {c0, c1, c2, c3};
}

// Every element computes its block and picks its words: XLA would repeat the rounds for an interleaving of the four
// words too.
Value PhiloxWords(Builder& b, Value state, int64_t n) {
  std::array<Value, 4> words = PhiloxBlock(b, state, Block(b, n, 4));
  Value i = b.Iota(DType::kUInt64, {n}, 0);
  Value zero = b.Zero(DType::kUInt64, {n});
  Value odd = b.Compare(b.And(i, b.ConstantInt(DType::kUInt64, 1, {n})), zero, Direction::kNe);
  Value upper = b.Compare(b.And(i, b.ConstantInt(DType::kUInt64, 2, {n})), zero, Direction::kNe);
  return b.Select(upper, b.Select(odd, words[3], words[2]), b.Select(odd, words[1], words[0]));
}

std::array<Value, 2> PhiloxPairs(Builder& b, Value state, int64_t n) {
  std::array<Value, 4> words = PhiloxBlock(b, state, Block(b, n, 2));
  Value i = b.Iota(DType::kUInt64, {n}, 0);
  Value odd = b.Compare(b.And(i, b.ConstantInt(DType::kUInt64, 1, {n})), b.Zero(DType::kUInt64, {n}), Direction::kNe);
  return {b.Select(odd, words[2], words[0]), b.Select(odd, words[3], words[1])};
}

}  // namespace torch_tpu
