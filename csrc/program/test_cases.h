// Tables of builder cases for tests: many small expressions make one program, which runs on the CPU plugin.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "program/builder.h"
#include "runtime/test_client.h"

namespace torch_tpu {

// Elements as doubles; a complex element takes two.
struct Array {
  TensorType type;
  std::vector<double> values;
};

inline Array F32(Dims dims, std::vector<double> values) {
  return {{DType::kFloat32, std::move(dims)}, std::move(values)};
}
inline Array I32(Dims dims, std::vector<double> values) {
  return {{DType::kInt32, std::move(dims)}, std::move(values)};
}
inline Array I64(Dims dims, std::vector<double> values) {
  return {{DType::kInt64, std::move(dims)}, std::move(values)};
}
inline Array Bools(Dims dims, std::vector<double> values) {
  return {{DType::kBool, std::move(dims)}, std::move(values)};
}
inline Array C64(Dims dims, std::vector<double> values) {
  return {{DType::kComplex64, std::move(dims)}, std::move(values)};
}
inline Array Of(DType dtype, Dims dims, std::vector<double> values) {
  return {{dtype, std::move(dims)}, std::move(values)};
}

// Calls visit(T{}) with the C++ type of a component of `dtype`.
template <class Visit>
void WithComponent(DType dtype, Visit visit) {
  switch (RealOf(dtype)) {
    case DType::kBool:
    case DType::kUInt8:
      return visit(uint8_t{});
    case DType::kInt8:
      return visit(int8_t{});
    case DType::kInt16:
      return visit(int16_t{});
    case DType::kInt32:
      return visit(int32_t{});
    case DType::kInt64:
      return visit(int64_t{});
    case DType::kUInt16:
      return visit(uint16_t{});
    case DType::kUInt32:
      return visit(uint32_t{});
    case DType::kUInt64:
      return visit(uint64_t{});
    case DType::kFloat32:
      return visit(float{});
    case DType::kFloat64:
      return visit(double{});
    default:
      Fail(Code::kInvalidArgument, "test: expected a type with a C++ counterpart, got ", Name(dtype));
  }
}

inline size_t Components(const TensorType& type) {
  return static_cast<size_t>(type.numel()) * (IsComplex(type.dtype) ? 2 : 1);
}

inline BufferPtr Upload(const Array& array) {
  EXPECT_EQ(array.values.size(), Components(array.type)) << array.type.ToString();
  std::vector<char> bytes(array.type.bytes() + 1);
  WithComponent(array.type.dtype, [&](auto zero) {
    for (size_t i = 0; i < array.values.size(); ++i) {
      const auto element = static_cast<decltype(zero)>(array.values[i]);
      std::memcpy(bytes.data() + i * sizeof(element), &element, sizeof(element));
    }
  });
  return TestClient().FromHost(TestClient().devices()[0].get(), bytes.data(), array.type);
}

inline Array Download(const Buffer& buffer) {
  Array array{buffer.type(), {}};
  std::vector<char> bytes(array.type.bytes() + 1);
  buffer.ToHost(bytes.data());
  WithComponent(array.type.dtype, [&](auto zero) {
    for (size_t i = 0; i < Components(array.type); ++i) {
      auto element = zero;
      std::memcpy(&element, bytes.data() + i * sizeof(element), sizeof(element));
      array.values.push_back(static_cast<double>(element));
    }
  });
  return array;
}

using Expression = std::function<Values(Builder&, const Values&)>;

// Equal up to 1e-5 relative; NaN equals NaN, and zeros have equal signs.
inline void ExpectArrayEq(const Array& got, const Array& expected) {
  EXPECT_EQ(got.type, expected.type) << got.type.ToString() << " and " << expected.type.ToString();
  ASSERT_EQ(got.values.size(), expected.values.size());
  for (size_t i = 0; i < got.values.size(); ++i) {
    const double a = got.values[i], e = expected.values[i];
    if (std::isnan(e)) {
      EXPECT_TRUE(std::isnan(a)) << "element " << i << ": " << a;
    } else if (e == 0 || std::isinf(e) || !IsFloat(RealOf(got.type.dtype))) {
      EXPECT_EQ(a, e) << "element " << i;
      EXPECT_EQ(std::signbit(a), std::signbit(e)) << "element " << i;
    } else {
      EXPECT_NEAR(a, e, 1e-5 * std::fabs(e)) << "element " << i;
    }
  }
}

inline std::vector<Array> Evaluate(const std::vector<Array>& inputs, const Expression& expression,
                                   const std::vector<std::pair<int64_t, int64_t>>& aliases = {}) {
  Builder b;
  Values parameters;
  std::vector<BufferPtr> arguments;
  for (const Array& input : inputs) {
    parameters.push_back(b.Parameter(input.type));
    arguments.push_back(Upload(input));
  }
  const Values results = expression(b, parameters);
  std::vector<TensorType> types;
  for (const Value& result : results) types.push_back(result.type());
  for (const auto& [parameter, result] : aliases) b.Alias(parameter, result);
  const std::string text = b.Finish(results);
  std::vector<Array> arrays;
  try {
    for (const BufferPtr& buffer : RunProgram(text, types, arguments)) arrays.push_back(Download(*buffer));
  } catch (const Error& error) {
    ADD_FAILURE() << error.what() << "\n" << text;
  }
  return arrays;
}

struct Case {
  std::string name;
  std::vector<Array> inputs;
  Expression expression;
  std::vector<Array> expected;
};

// All cases as one program.
inline void RunCases(const std::vector<Case>& cases) {
  std::vector<Array> inputs;
  for (const Case& one : cases) inputs.insert(inputs.end(), one.inputs.begin(), one.inputs.end());
  std::vector<size_t> counts;
  const std::vector<Array> got = Evaluate(inputs, [&](Builder& b, const Values& parameters) {
    Values all;
    size_t next = 0;
    for (const Case& one : cases) {
      const Values mine(parameters.begin() + next, parameters.begin() + next + one.inputs.size());
      next += one.inputs.size();
      const Values results = one.expression(b, mine);
      counts.push_back(results.size());
      all.insert(all.end(), results.begin(), results.end());
    }
    return all;
  });
  size_t next = 0;
  for (size_t i = 0; i < cases.size() && !got.empty(); ++i) {
    SCOPED_TRACE(cases[i].name);
    ASSERT_EQ(counts[i], cases[i].expected.size());
    for (const Array& expected : cases[i].expected) ExpectArrayEq(got[next++], expected);
  }
}

// A call that must throw kInvalidArgument with this text.
struct Refusal {
  std::string text;
  std::function<void(Builder&)> call;
};

inline void ExpectRefusals(const std::vector<Refusal>& refusals) {
  for (const Refusal& refusal : refusals) {
    Builder b;
    try {
      refusal.call(b);
      ADD_FAILURE() << "no error; expected: " << refusal.text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kInvalidArgument);
      EXPECT_EQ(std::string(error.what()), refusal.text);
    }
  }
}

}  // namespace torch_tpu
