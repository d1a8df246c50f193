#include "program/test_cases.h"

namespace torch_tpu {
namespace {

const Array kSix = F32({2, 3}, {1, 2, 3, 4, 5, 6});

Case On(std::string name, Array x, Expression expression, Array expected) {
  return {std::move(name), {std::move(x)}, std::move(expression), {std::move(expected)}};
}

TEST(BuilderShape, Values) {
  RunCases({
      On(
          "broadcast_in_dim", F32({2}, {1, 2}),
          [](Builder& b, const Values& v) { return Values{b.BroadcastInDim(v[0], {2, 2}, {0})}; },
          F32({2, 2}, {1, 1, 2, 2})),
      On(
          "broadcast rank", F32({2, 1}, {1, 2}),
          [](Builder& b, const Values& v) { return Values{b.BroadcastTo(v[0], {2, 2, 2})}; },
          F32({2, 2, 2}, {1, 1, 2, 2, 1, 1, 2, 2})),
      On(
          "broadcast to nothing", F32({1}, {1}),
          [](Builder& b, const Values& v) { return Values{b.BroadcastTo(v[0], {3, 0})}; }, F32({3, 0}, {})),
      On(
          "reshape", kSix, [](Builder& b, const Values& v) { return Values{b.Reshape(v[0], {3, 2})}; },
          F32({3, 2}, {1, 2, 3, 4, 5, 6})),
      On(
          "transpose", kSix, [](Builder& b, const Values& v) { return Values{b.Transpose(v[0], {1, 0})}; },
          F32({3, 2}, {1, 4, 2, 5, 3, 6})),
      On(
          "reverse", kSix, [](Builder& b, const Values& v) { return Values{b.Reverse(v[0], {1})}; },
          F32({2, 3}, {3, 2, 1, 6, 5, 4})),
      On(
          "slice", kSix, [](Builder& b, const Values& v) { return Values{b.Slice(v[0], {0, 0}, {2, 3}, {1, 2})}; },
          F32({2, 2}, {1, 3, 4, 6})),
      On(
          "slice dim", kSix, [](Builder& b, const Values& v) { return Values{b.SliceDim(v[0], 0, 1, 2)}; },
          F32({1, 3}, {4, 5, 6})),
      On(
          "empty slice", kSix, [](Builder& b, const Values& v) { return Values{b.SliceDim(v[0], 1, 3, 3)}; },
          F32({2, 0}, {})),
      {"dynamic_slice",
       {kSix, I64({}, {1}), I64({}, {5})},
       [](Builder& b, const Values& v) { return Values{b.DynamicSlice(v[0], {v[1], v[2]}, {1, 2})}; },
       {F32({1, 2}, {5, 6})}},
      {"dynamic_update_slice",
       {kSix, F32({1, 2}, {8, 9}), I64({}, {1}), I64({}, {0})},
       [](Builder& b, const Values& v) { return Values{b.DynamicUpdateSlice(v[0], v[1], {v[2], v[3]})}; },
       {F32({2, 3}, {1, 2, 3, 8, 9, 6})}},
      {"pad",
       {F32({3}, {1, 2, 3}), F32({}, {9})},
       [](Builder& b, const Values& v) {
         return Values{b.Pad(v[0], v[1], {1}, {2}, {1}), b.Pad(v[0], v[1], {-1}, {1}), b.Pad(v[0], v[1], {-2}, {-1})};
       },
       {F32({8}, {9, 1, 9, 2, 9, 3, 9, 9}), F32({3}, {2, 3, 9}), F32({0}, {})}},
      {"concatenate",
       {kSix, F32({2, 0}, {}), F32({2, 1}, {7, 8})},
       [](Builder& b, const Values& v) { return Values{b.Concatenate(v, 1)}; },
       {F32({2, 4}, {1, 2, 3, 7, 4, 5, 6, 8})}},
      {"iota",
       {},
       [](Builder& b, const Values&) {
         return Values{b.Iota(DType::kInt64, {2, 2}, 1), b.Iota(DType::kFloat32, {2, 2}, 0),
                       b.Iota(DType::kInt32, {0}, 0)};
       },
       {I64({2, 2}, {0, 1, 0, 1}), F32({2, 2}, {0, 0, 1, 1}), I32({0}, {})}},
  });
}

TEST(BuilderShape, GatherAndScatter) {
  const auto rows = [](Builder& b, const Values& v) {
    return Values{b.Gather(v[0], v[1], GatherDims{{1}, {0}, {}, {}, {0}, 1}, {1, 3})};
  };
  const auto add = [](Builder& b) { return [&b](const Values& v) { return Values{b.Add(v[0], v[1])}; }; };
  const auto put = [](const Values& v) { return Values{v[1]}; };
  RunCases({
      {"rows", {kSix, I64({3}, {1, 0, 1})}, rows, {F32({3, 3}, {4, 5, 6, 1, 2, 3, 4, 5, 6})}},
      {"no rows", {kSix, I64({0}, {})}, rows, {F32({0, 3}, {})}},
      {"elements",
       {kSix, I32({2, 2}, {0, 2, 1, 0})},
       [](Builder& b, const Values& v) {
         return Values{b.Gather(v[0], v[1], GatherDims{{}, {0, 1}, {}, {}, {0, 1}, 1}, {1, 1})};
       },
       {F32({2}, {3, 4})}},
      {"batched",
       {kSix, I64({2, 1}, {2, 0})},
       [](Builder& b, const Values& v) {
         return Values{b.Gather(v[0], v[1], GatherDims{{}, {1}, {0}, {0}, {1}, 2}, {1, 1})};
       },
       {F32({2, 1}, {3, 4})}},
      {"scatter add",
       {kSix, I64({2}, {1, 1}), F32({2, 3}, {1, 1, 1, 2, 2, 2})},
       [&](Builder& b, const Values& v) {
         return Values{b.Scatter(v[0], v[1], v[2], ScatterDims{{1}, {0}, {}, {}, {0}, 1}, add(b))};
       },
       {F32({2, 3}, {1, 2, 3, 7, 8, 9})}},
      {"scatter out of range is dropped",
       {kSix, I64({1}, {9}), F32({1, 3}, {1, 1, 1})},
       [&](Builder& b, const Values& v) {
         return Values{b.Scatter(v[0], v[1], v[2], ScatterDims{{1}, {0}, {}, {}, {0}, 1}, put, true, true)};
       },
       {kSix}},
      {"scatter batched",
       {kSix, I64({2, 1}, {2, 0}), F32({2, 1}, {9, 8})},
       [&](Builder& b, const Values& v) {
         return Values{b.Scatter(v[0], v[1], v[2], ScatterDims{{}, {1}, {0}, {0}, {1}, 2}, put)};
       },
       {F32({2, 3}, {1, 2, 9, 8, 5, 6})}},
      {"scatter many",
       {F32({3}, {1, 2, 3}), I32({3}, {1, 2, 3}), I64({1}, {1}), F32({1}, {5}), I32({1}, {6})},
       [&](Builder& b, const Values& v) {
         return b.ScatterMany({v[0], v[1]}, v[2], {v[3], v[4]}, ScatterDims{{}, {0}, {}, {}, {0}, 1},
                              [](const Values& s) { return Values{s[2], s[3]}; });
       },
       {F32({3}, {1, 5, 3}), I32({3}, {1, 6, 3})}},
  });
}

TEST(BuilderShape, Refusals) {
  const TensorType f{DType::kFloat32, {2, 3}}, s{DType::kFloat32, {}}, n{DType::kInt64, {2}}, k{DType::kInt64, {}};
  const auto body = [](const Values& v) { return Values{v[1]}; };
  ExpectRefusals({
      {"broadcast_in_dim: expected dim 1 of size 1 or 4, got [2, 3] to [2, 4]",
       [=](Builder& b) { b.BroadcastTo(b.Parameter(f), {2, 4}); }},
      {"broadcast_in_dim: expected at most 1 dims, got [2, 3] to [3]",
       [=](Builder& b) { b.BroadcastTo(b.Parameter(f), {3}); }},
      {"broadcast_in_dim: expected broadcast dims that differ and lie in [0, 2), got [1, 1]",
       [=](Builder& b) { b.BroadcastInDim(b.Parameter(f), {2, 3}, {1, 1}); }},
      {"reshape: expected 6 elements from [2, 3], got [5]", [=](Builder& b) { b.Reshape(b.Parameter(f), {5}); }},
      {"reshape: expected sizes of 0 or more, got [-1, 6]", [=](Builder& b) { b.Reshape(b.Parameter(f), {-1, 6}); }},
      {"transpose: expected 2 dims in the permutation, got 1", [=](Builder& b) { b.Transpose(b.Parameter(f), {0}); }},
      {"reverse: expected dims that differ and lie in [0, 2), got [2]",
       [=](Builder& b) { b.Reverse(b.Parameter(f), {2}); }},
      {"slice: expected 0 <= start <= limit <= 3 and a stride above 0 in dim 1, got [0:4:1]",
       [=](Builder& b) { b.SliceDim(b.Parameter(f), 1, 0, 4); }},
      {"dynamic_slice: expected 2 starts, got 1",
       [=](Builder& b) { b.DynamicSlice(b.Parameter(f), {b.Parameter(k)}, {1, 1}); }},
      {"dynamic_slice: expected starts that are 0-d integers of one type, got tensor<f32>",
       [=](Builder& b) { b.DynamicSlice(b.Parameter(f), {b.Parameter(k), b.Parameter(s)}, {1, 1}); }},
      {"dynamic_slice: expected sizes within [2, 3], got [3, 1]",
       [=](Builder& b) { b.DynamicSlice(b.Parameter(f), {b.Parameter(k), b.Parameter(k)}, {3, 1}); }},
      {"dynamic_update_slice: expected an update of f32 and rank 2, got tensor<f32>",
       [=](Builder& b) { b.DynamicUpdateSlice(b.Parameter(f), b.Parameter(s), {b.Parameter(k), b.Parameter(k)}); }},
      {"pad: expected a 0-d value of f32, got tensor<i64>",
       [=](Builder& b) { b.Pad(b.Parameter(f), b.Parameter(k), {0, 0}, {1, 1}); }},
      {"pad: expected sizes of 0 or more after padding, got -1 for dim 0 of [2, 3]",
       [=](Builder& b) { b.Pad(b.Parameter(f), b.Parameter(s), {-3, 0}, {0, 0}); }},
      {"concatenate: expected operands that differ from tensor<2x3xf32> only in dim 0, got tensor<2xi64>",
       [=](Builder& b) { b.Concatenate({b.Parameter(f), b.Parameter(n)}, 0); }},
      {"gather: expected slice sizes within [2, 3], got [1, 4]",
       [=](Builder& b) { b.Gather(b.Parameter(f), b.Parameter(n), GatherDims{{1}, {0}, {}, {}, {0}, 1}, {1, 4}); }},
      {"gather: expected an index map of 1 dims, got [0, 1]",
       [=](Builder& b) { b.Gather(b.Parameter(f), b.Parameter(n), GatherDims{{1}, {0}, {}, {}, {0, 1}, 1}, {1, 3}); }},
      {"gather: expected integer indices, got tensor<2x3xf32>",
       [=](Builder& b) { b.Gather(b.Parameter(f), b.Parameter(f), GatherDims{{1}, {0}, {}, {}, {0}, 2}, {1, 3}); }},
      {"gather: expected slice size 1 in collapsed and batching dims [0], got [2, 3]",
       [=](Builder& b) { b.Gather(b.Parameter(f), b.Parameter(n), GatherDims{{1}, {0}, {}, {}, {0}, 1}, {2, 3}); }},
      {"scatter: expected updates of f32 and dims [2, 3] (or smaller windows), got tensor<f32>",
       [=](Builder& b) {
         b.Scatter(b.Parameter(f), b.Parameter(n), b.Parameter(s), ScatterDims{{1}, {0}, {}, {}, {0}, 1}, body);
       }},
      {"scatter: expected a region that returns (tensor<f32>), got (tensor<i64>)",
       [=](Builder& b) {
         b.Scatter(b.Parameter(f), b.Parameter(n), b.Parameter(f), ScatterDims{{1}, {0}, {}, {}, {0}, 1},
                   [&](const Values&) { return Values{b.Zero(DType::kInt64)}; });
       }},
      {"iota: expected dims that differ and lie in [0, 1), got [1]", [](Builder& b) { b.Iota(DType::kInt32, {3}, 1); }},
      {"iota: expected integer, float or complex, got i1", [](Builder& b) { b.Iota(DType::kBool, {3}, 0); }},
  });
}

}  // namespace
}  // namespace torch_tpu
