#include "program/test_cases.h"

namespace torch_tpu {
namespace {

const Array kSix = F32({2, 3}, {1, 2, 3, 4, 5, 6});

TEST(BuilderLinalg, DotGeneral) {
  const DotDims matmul{{}, {}, {1}, {0}};
  RunCases({
      {"matmul",
       {kSix, F32({3, 1}, {1, 0, 2})},
       [=](Builder& b, const Values& v) { return Values{b.DotGeneral(v[0], v[1], matmul, DType::kFloat32)}; },
       {F32({2, 1}, {7, 16})}},
      {"batch",
       {F32({2, 1, 2}, {1, 2, 3, 4}), F32({2, 2, 1}, {1, 1, 2, 2})},
       [](Builder& b, const Values& v) {
         return Values{b.DotGeneral(v[0], v[1], {{0}, {0}, {2}, {1}}, DType::kFloat32)};
       },
       {F32({2, 1, 1}, {3, 14})}},
      {"outer",
       {F32({2}, {1, 2}), F32({2}, {3, 4})},
       [](Builder& b, const Values& v) { return Values{b.DotGeneral(v[0], v[1], {}, DType::kFloat32)}; },
       {F32({2, 2}, {3, 4, 6, 8})}},
      {"bytes into i32",
       {Of(DType::kInt8, {1, 2}, {100, 100}), Of(DType::kInt8, {2, 1}, {100, 100})},
       [=](Builder& b, const Values& v) { return Values{b.DotGeneral(v[0], v[1], matmul, DType::kInt32)}; },
       {I32({1, 1}, {20000})}},
      {"bf16 into f32",
       {F32({1, 2}, {256, 1}), F32({2, 1}, {1, 1})},
       [=](Builder& b, const Values& v) {
         return Values{b.DotGeneral(b.Convert(v[0], DType::kBFloat16), b.Convert(v[1], DType::kBFloat16), matmul,
                                    DType::kFloat32)};
       },
       {F32({1, 1}, {257})}},
      {"no terms",
       {F32({2, 0}, {}), F32({0, 1}, {})},
       [=](Builder& b, const Values& v) { return Values{b.DotGeneral(v[0], v[1], matmul, DType::kFloat32)}; },
       {F32({2, 1}, {0, 0})}},
      {"complex",
       {C64({1, 1}, {1, 2}), C64({1, 1}, {3, 4})},
       [=](Builder& b, const Values& v) { return Values{b.DotGeneral(v[0], v[1], matmul, DType::kComplex64)}; },
       {C64({1, 1}, {-5, 10})}},
  });
}

ConvDims Planes(int64_t spatial) {
  ConvDims dims;
  for (int64_t i = 0; i < spatial; ++i) {
    dims.lhs_spatial.push_back(i + 2);
    dims.rhs_spatial.push_back(i + 2);
    dims.out_spatial.push_back(i + 2);
  }
  return dims;
}

Case Conv(std::string name, Array x, Array w, ConvDims dims, ConvWindow window, Array expected) {
  return {std::move(name),
          {std::move(x), std::move(w)},
          [=](Builder& b, const Values& v) { return Values{b.Convolution(v[0], v[1], dims, window, DType::kFloat32)}; },
          {std::move(expected)}};
}

TEST(BuilderLinalg, Convolution) {
  const Array line = F32({1, 1, 4}, {1, 2, 3, 4});
  ConvDims channels_last;
  channels_last.lhs_feature = 2;
  channels_last.lhs_spatial = {1};
  channels_last.rhs_out = 2;
  channels_last.rhs_spatial = {0};
  channels_last.out_feature = 2;
  channels_last.out_spatial = {1};
  ConvDims swapped;  // a batch-grouped one, as weight gradients are written
  swapped.lhs_spatial = swapped.rhs_spatial = swapped.out_spatial = {2};
  RunCases({
      Conv("plain", line, F32({1, 1, 2}, {1, 10}), Planes(1), {}, F32({1, 1, 3}, {21, 32, 43})),
      Conv("stride and pads", line, F32({1, 1, 2}, {1, 10}), Planes(1),
           {.strides = {2}, .pad_low = {1}, .pad_high = {1}}, F32({1, 1, 3}, {10, 32, 4})),
      Conv("rhs dilation", line, F32({1, 1, 2}, {1, 10}), Planes(1), {.rhs_dilation = {2}}, F32({1, 1, 2}, {31, 42})),
      Conv("lhs dilation", line, F32({1, 1, 2}, {1, 10}), Planes(1), {.lhs_dilation = {2}},
           F32({1, 1, 6}, {1, 20, 2, 30, 3, 40})),
      Conv("reversal", line, F32({1, 1, 2}, {1, 10}), Planes(1), {.reversal = {true}}, F32({1, 1, 3}, {12, 23, 34})),
      Conv("two spatial dims", F32({1, 1, 2, 2}, {1, 2, 3, 4}), F32({1, 1, 2, 2}, {1, 1, 1, 1}), Planes(2), {},
           F32({1, 1, 1, 1}, {10})),
      Conv("no spatial dims", F32({1, 2}, {1, 2}), F32({1, 2}, {3, 4}), Planes(0), {}, F32({1, 1}, {11})),
      Conv("feature groups", F32({1, 2, 2}, {1, 2, 3, 4}), F32({2, 1, 1}, {10, 100}), Planes(1), {.feature_groups = 2},
           F32({1, 2, 2}, {10, 20, 300, 400})),
      Conv("batch groups", F32({2, 1, 1}, {1, 2}), F32({2, 1, 1}, {10, 100}), swapped, {.batch_groups = 2},
           F32({1, 2, 1}, {10, 200})),
      Conv("channels last", F32({1, 2, 2}, {1, 2, 3, 4}), F32({1, 2, 1}, {1, 10}), channels_last, {},
           F32({1, 2, 1}, {21, 43})),
      Conv("no batch", F32({0, 1, 4}, {}), F32({1, 1, 2}, {1, 10}), Planes(1), {}, F32({0, 1, 3}, {})),
  });
}

TEST(BuilderLinalg, Factorizations) {
  const Array spd = F32({2, 2}, {4, 2, 2, 5}), tri = F32({2, 2}, {2, 0, 1, 4}), rhs = F32({2, 1}, {2, 9});
  const auto solve = [](std::string name, Array a, Array b, bool left, bool lower, bool unit, bool transpose,
                        Array expected) {
    return Case{std::move(name),
                {std::move(a), std::move(b)},
                [=](Builder& builder, const Values& v) {
                  return Values{builder.TriangularSolve(v[0], v[1], left, lower, unit, transpose)};
                },
                {std::move(expected)}};
  };
  RunCases({
      {"cholesky",
       {spd},
       [](Builder& b, const Values& v) {
         // What lies on the other side of the diagonal is not defined.
         const Value mask =
             b.Compare(b.Iota(DType::kInt32, {2, 2}, 0), b.Iota(DType::kInt32, {2, 2}, 1), Direction::kGe);
         return Values{b.Select(mask, b.Cholesky(v[0], true), b.Zero(DType::kFloat32, {2, 2}))};
       },
       {F32({2, 2}, {2, 0, 1, 2})}},
      solve("left", tri, rhs, true, true, false, false, F32({2, 1}, {1, 2})),
      solve("transposed", tri, rhs, true, true, false, true, F32({2, 1}, {-0.125, 2.25})),
      solve("right", tri, F32({1, 2}, {4, 8}), false, true, false, false, F32({1, 2}, {1, 2})),
      solve("unit diagonal", tri, rhs, true, true, true, false, F32({2, 1}, {2, 7})),
      {"adjoint",
       {C64({1, 1}, {0, 2}), C64({1, 1}, {4, 0})},
       [](Builder& b, const Values& v) {
         return Values{b.Imag(b.TriangularSolve(v[0], v[1], true, true, false, true, true))};
       },
       {F32({1, 1}, {2})}},
  });
}

TEST(BuilderLinalg, Fft) {
  RunCases({
      {"fft and back",
       {C64({2}, {1, 0, 3, 0})},
       [](Builder& b, const Values& v) {
         const Value y = b.Fft(v[0], FftKind::kFft, {2});
         return Values{y, b.Fft(y, FftKind::kIfft, {2})};
       },
       {C64({2}, {4, 0, -2, 0}), C64({2}, {1, 0, 3, 0})}},
      {"rfft and back",
       {F32({1, 3}, {1, 1, 1})},
       [](Builder& b, const Values& v) {
         const Value y = b.Fft(v[0], FftKind::kRfft, {3});
         return Values{b.SliceDim(b.Real(y), 1, 0, 1), b.Fft(y, FftKind::kIrfft, {3})};
       },
       {F32({1, 1}, {3}), F32({1, 3}, {1, 1, 1})}},
  });
}

TEST(BuilderLinalg, PrecisionIsTheBuilders) {
  for (auto [precision, name] :
       {std::pair{Precision::kDefault, "<precision DEFAULT>"}, std::pair{Precision::kHigh, "<precision HIGH>"},
        std::pair{Precision::kHighest, "<precision HIGHEST>"}}) {
    Builder b(Target::kTpu, precision);
    const Value x = b.Parameter({DType::kFloat32, {2, 2}});
    const std::string text = b.Finish({b.DotGeneral(x, x, {{}, {}, {1}, {0}}, DType::kFloat32)});
    EXPECT_NE(text.find(name), std::string::npos) << text;
  }
}

TEST(BuilderLinalg, Refusals) {
  const TensorType f{DType::kFloat32, {2, 3}}, g{DType::kFloat32, {4, 2}}, i{DType::kInt32, {2, 3}},
      x{DType::kFloat32, {1, 4, 5}}, w{DType::kFloat32, {6, 2, 3}}, c{DType::kComplex64, {4}};
  ExpectRefusals({
      {"dot_general: expected contracting dims of equal sizes, got [1] of [2, 3] and [0] of [4, 2]",
       [=](Builder& b) { b.DotGeneral(b.Parameter(f), b.Parameter(g), {{}, {}, {1}, {0}}, DType::kFloat32); }},
      {"dot_general: expected operands of one element type, got tensor<2x3xf32> and tensor<2x3xi32>",
       [=](Builder& b) { b.DotGeneral(b.Parameter(f), b.Parameter(i), {}, DType::kFloat32); }},
      {"dot_general: expected a result type of the operands' kind, got i32 for f32",
       [=](Builder& b) { b.DotGeneral(b.Parameter(f), b.Parameter(f), {}, DType::kInt32); }},
      {"dot_general: expected 1 contracting dims, got 0",
       [=](Builder& b) { b.DotGeneral(b.Parameter(f), b.Parameter(f), {{}, {}, {1}, {}}, DType::kFloat32); }},
      {"dot_general: expected batch and contracting dims that differ and lie in [0, 2), got [1, 1]",
       [=](Builder& b) { b.DotGeneral(b.Parameter(f), b.Parameter(f), {{1}, {1}, {1}, {1}}, DType::kFloat32); }},
      {"convolution: expected 2 input features for filter [6, 2, 3] and 1 groups, got 4 of [1, 4, 5]",
       [=](Builder& b) { b.Convolution(b.Parameter(x), b.Parameter(w), Planes(1), {}, DType::kFloat32); }},
      {"convolution: expected 3 dims named for the input, got 4",
       [=](Builder& b) { b.Convolution(b.Parameter(x), b.Parameter(w), Planes(2), {}, DType::kFloat32); }},
      {"convolution: expected 1 strides and dilations, got 2",
       [=](Builder& b) {
         b.Convolution(b.Parameter(x), b.Parameter(w), Planes(1), {.strides = {1, 1}, .feature_groups = 2},
                       DType::kFloat32);
       }},
      {"cholesky: expected square matrices, got tensor<2x3xf32>",
       [=](Builder& b) { b.Cholesky(b.Parameter(f), true); }},
      {"triangular_solve: expected a right-hand side that fits tensor<2x2xf32> on the left, got tensor<4x2xf32>",
       [=](Builder& b) {
         b.TriangularSolve(b.Parameter({DType::kFloat32, {2, 2}}), b.Parameter(g), true, true, false, false);
       }},
      {"fft: expected float, got tensor<4xcomplex<f32>>",
       [=](Builder& b) { b.Fft(b.Parameter(c), FftKind::kRfft, {4}); }},
      {"fft: expected size 3 in dim 0, got tensor<4xcomplex<f32>>",
       [=](Builder& b) { b.Fft(b.Parameter(c), FftKind::kFft, {3}); }},
  });
}

}  // namespace
}  // namespace torch_tpu
