#include <limits>

#include "program/test_cases.h"

namespace torch_tpu {
namespace {

using Reducer = Builder::Reducer;

const Array kSix = F32({2, 3}, {1, 2, 3, 4, 5, 6});

Case Over(std::string name, Reducer reducer, Dims dims, Array x, Array expected) {
  return {std::move(name),
          {std::move(x)},
          [reducer, dims](Builder& b, const Values& v) { return Values{b.Reduce(v[0], reducer, dims)}; },
          {std::move(expected)}};
}

TEST(BuilderReduce, Dims) {
  const double inf = std::numeric_limits<double>::infinity();
  const double low = std::numeric_limits<int32_t>::min();
  RunCases({
      Over("add", Reducer::kAdd, {1}, kSix, F32({2}, {6, 15})),
      Over("add all, dims in any order", Reducer::kAdd, {1, 0}, kSix, F32({}, {21})),
      Over("mul", Reducer::kMul, {0}, kSix, F32({3}, {4, 10, 18})),
      Over("max", Reducer::kMax, {1}, kSix, F32({2}, {3, 6})),
      Over("min", Reducer::kMin, {1}, kSix, F32({2}, {1, 4})),
      Over("max of nothing", Reducer::kMax, {0}, F32({0, 2}, {}), F32({2}, {-inf, -inf})),
      Over("max of no int", Reducer::kMax, {0}, I32({0}, {}), I32({}, {low})),
      Over("min of no byte", Reducer::kMin, {0}, Of(DType::kUInt8, {0}, {}), Of(DType::kUInt8, {}, {255})),
      Over("and", Reducer::kAnd, {0}, Bools({2, 2}, {1, 1, 1, 0}), Bools({2}, {1, 0})),
      Over("and of no int", Reducer::kAnd, {0}, I32({0}, {}), I32({}, {-1})),
      Over("or", Reducer::kOr, {0}, I32({2}, {5, 8}), I32({}, {13})),
      Over("add complex", Reducer::kAdd, {0}, C64({2}, {1, 2, 3, 4}), C64({}, {4, 6})),
      Over("no result elements", Reducer::kAdd, {1}, F32({0, 2}, {}), F32({0}, {})),
      {"many: largest and where",
       {kSix},
       [](Builder& b, const Values& v) {
         const Value at = b.Iota(DType::kInt64, {2, 3}, 1);
         return b.ReduceMany({v[0], at}, {b.MinOf(DType::kFloat32), b.Zero(DType::kInt64)}, {1}, [&](const Values& s) {
           const Value right = b.Compare(s[2], s[0], Direction::kGt);
           return Values{b.Select(right, s[2], s[0]), b.Select(right, s[3], s[1])};
         });
       },
       {F32({2}, {3, 6}), I64({2}, {2, 2})}},
  });
}

TEST(BuilderReduce, Windows) {
  const auto max = [](Builder& b) { return [&b](const Values& v) { return Values{b.Maximum(v[0], v[1])}; }; };
  const auto add = [](Builder& b) { return [&b](const Values& v) { return Values{b.Add(v[0], v[1])}; }; };
  const Array x = F32({5}, {1, 5, 2, 4, 3});
  RunCases({
      {"max",
       {x},
       [&](Builder& b, const Values& v) {
         const Value low = b.MinOf(DType::kFloat32);
         return Values{b.ReduceWindowOp(v[0], low, {.dims = {2}, .strides = {2}}, max(b)),
                       b.ReduceWindowOp(v[0], low, {.dims = {3}, .pad_low = {1}, .pad_high = {1}}, max(b)),
                       b.ReduceWindowOp(v[0], low, {.dims = {2}, .window_dilations = {3}}, max(b)),
                       b.ReduceWindowOp(v[0], low, {.dims = {6}}, max(b))};
       },
       {F32({2}, {5, 4}), F32({5}, {5, 5, 5, 4, 4}), F32({2}, {4, 5}), F32({0}, {})}},
      {"many",
       {x, I32({5}, {1, 1, 1, 1, 1})},
       [&](Builder& b, const Values& v) {
         return b.ReduceWindowMany(v, {b.Zero(DType::kFloat32), b.Zero(DType::kInt32)},
                                   {.dims = {2}, .base_dilations = {2}},
                                   [&](const Values& s) { return Values{b.Add(s[0], s[2]), b.Add(s[1], s[3])}; });
       },
       {F32({8}, {1, 5, 5, 2, 2, 4, 4, 3}), I32({8}, {1, 1, 1, 1, 1, 1, 1, 1})}},
      {"select_and_scatter",
       {F32({4}, {1, 5, 2, 4}), F32({2}, {10, 20})},
       [&](Builder& b, const Values& v) {
         const auto ge = [&](const Values& s) { return Values{b.Compare(s[0], s[1], Direction::kGe)}; };
         return Values{
             b.SelectAndScatter(v[0], v[1], b.Zero(DType::kFloat32), {.dims = {2}, .strides = {2}}, ge, add(b))};
       },
       {F32({4}, {0, 10, 0, 20})}},
  });
}

TEST(BuilderReduce, Refusals) {
  const TensorType f{DType::kFloat32, {2, 3}}, v{DType::kFloat32, {4}}, s{DType::kFloat32, {}}, i{DType::kInt64, {}};
  const auto first = [](const Values& values) { return Values{values[0]}; };
  ExpectRefusals({
      {"reduce: expected dims that differ and lie in [0, 2), got [2]",
       [=](Builder& b) { b.Reduce(b.Parameter(f), Reducer::kAdd, {2}); }},
      {"reduce: expected dims that differ and lie in [0, 2), got [1, 1]",
       [=](Builder& b) { b.Reduce(b.Parameter(f), Reducer::kAdd, {1, 1}); }},
      {"reduce: expected bool or integer, got tensor<2x3xf32>",
       [=](Builder& b) { b.Reduce(b.Parameter(f), Reducer::kAnd, {0}); }},
      {"reduce: expected a 0-d init of f32, got tensor<i64>",
       [=](Builder& b) { b.ReduceMany({b.Parameter(f)}, {b.Parameter(i)}, {0}, first); }},
      {"reduce: expected 1 inits, got 0", [=](Builder& b) { b.ReduceMany({b.Parameter(f)}, {}, {0}, first); }},
      {"reduce: expected operands of equal dims, got [2, 3] and [4]",
       [=](Builder& b) {
         b.ReduceMany({b.Parameter(f), b.Parameter(v)}, {b.Parameter(s), b.Parameter(s)}, {0}, first);
       }},
      {"reduce: expected a region that returns (tensor<f32>), got ()",
       [=](Builder& b) {
         b.ReduceMany({b.Parameter(f)}, {b.Parameter(s)}, {0}, [](const Values&) { return Values{}; });
       }},
      {"add: expected a value that this region can see, got %1 of another region",
       [=](Builder& b) {
         const Value x = b.Parameter(f), outer = b.Parameter(s);
         b.ReduceMany({x}, {outer}, {0}, [&](const Values& e) { return Values{b.Add(e[0], outer)}; });
       }},
      {"reduce_window: expected 1 sizes, strides and dilations of the window, got 2",
       [=](Builder& b) { b.ReduceWindowOp(b.Parameter(v), b.Parameter(s), {.dims = {2, 2}}, first); }},
      {"reduce_window: expected sizes, strides and dilations of 1 or more, got [0]",
       [=](Builder& b) { b.ReduceWindowOp(b.Parameter(v), b.Parameter(s), {.dims = {2}, .strides = {0}}, first); }},
      {"select_and_scatter: expected a source of tensor<2xf32>, got tensor<4xf32>",
       [=](Builder& b) {
         const Value x = b.Parameter(v);
         b.SelectAndScatter(x, x, b.Parameter(s), {.dims = {2}, .strides = {2}}, first, first);
       }},
      {"select_and_scatter: expected no dilation, got [2]",
       [=](Builder& b) {
         const Value x = b.Parameter(v);
         b.SelectAndScatter(x, x, b.Parameter(s), {.dims = {2}, .window_dilations = {2}}, first, first);
       }},
  });
}

}  // namespace
}  // namespace torch_tpu
