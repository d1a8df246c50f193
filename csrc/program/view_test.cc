// Views are read and written as strides say: every plan is checked against a walk over flat memory.
#include "program/view.h"

#include <gtest/gtest.h>

#include <numeric>

#include "program/test_cases.h"

namespace torch_tpu {
namespace {

struct ViewCase {
  const char* name;
  Dims base;
  ViewSpec view;
  ViewPlan::Kind kind;
};

std::vector<int64_t> Positions(const ViewSpec& view) {
  std::vector<int64_t> positions{view.offset};
  for (size_t d = 0; d < view.sizes.size(); ++d) {
    std::vector<int64_t> next;
    for (int64_t p : positions) {
      for (int64_t i = 0; i < view.sizes[d]; ++i) next.push_back(p + i * view.strides[d]);
    }
    positions = next;
  }
  return positions;
}

const std::vector<ViewCase>& Cases() {
  using Kind = ViewPlan::Kind;
  static const std::vector<ViewCase> cases = {
      {"whole", {2, 3, 4}, {DType::kInt32, {2, 3, 4}, {12, 4, 1}, 0}, Kind::kIdentity},
      {"reshaped", {2, 3, 4}, {DType::kInt32, {6, 4}, {4, 1}, 0}, Kind::kBox},
      {"row", {4, 6}, {DType::kInt32, {6}, {1}, 12}, Kind::kBox},
      {"column", {4, 6}, {DType::kInt32, {4}, {6}, 5}, Kind::kBox},
      {"transposed", {4, 6}, {DType::kInt32, {6, 4}, {1, 6}, 0}, Kind::kBox},
      {"steps", {5, 7}, {DType::kInt32, {3, 3}, {14, 2}, 1}, Kind::kBox},
      {"heads", {2, 3, 12}, {DType::kInt32, {2, 2, 3, 2}, {36, 2, 12, 1}, 4}, Kind::kBox},
      {"merged", {4, 6}, {DType::kInt32, {12}, {1}, 6}, Kind::kBox},
      {"a run across rows", {4, 6}, {DType::kInt32, {9}, {1}, 4}, Kind::kBox},
      {"expanded", {4, 6}, {DType::kInt32, {3, 6}, {0, 1}, 6}, Kind::kBox},
      {"ones", {4, 6}, {DType::kInt32, {1, 4, 1}, {99, 6, 7}, 2}, Kind::kBox},
      {"diagonal", {5, 5}, {DType::kInt32, {5}, {6}, 0}, Kind::kGather},
      {"windows", {10}, {DType::kInt32, {4, 3}, {2, 1}, 1}, Kind::kGather},
      {"scalar", {4, 6}, {DType::kInt32, {}, {}, 23}, Kind::kBox},
      {"of a scalar", {}, {DType::kInt32, {1}, {1}, 0}, Kind::kBox},
      {"nothing", {4, 6}, {DType::kInt32, {0, 6}, {6, 1}, 24}, Kind::kEmpty},
  };
  return cases;
}

Array Numbered(const Dims& dims, int64_t from = 0) {
  Array array{{DType::kInt32, dims}, std::vector<double>(static_cast<size_t>(Product(dims)))};
  std::iota(array.values.begin(), array.values.end(), from);
  return array;
}

// Runs `body(builder, base, starts, update)` as one program.
Array RunView(const ViewCase& c, const ViewPlan& plan, bool write) {
  Builder b;
  Values parameters{b.Parameter({DType::kInt32, c.base})};
  std::vector<BufferPtr> arguments{Upload(Numbered(c.base))};
  Value starts;
  if (!plan.starts.empty()) {
    const Dims dims{static_cast<int64_t>(plan.starts.size())};
    starts = b.Parameter({DType::kInt64, dims});
    arguments.push_back(Upload({{DType::kInt64, dims}, std::vector<double>(plan.starts.begin(), plan.starts.end())}));
  }
  Value result;
  if (write) {
    Value update = b.Parameter({DType::kInt32, c.view.sizes});
    arguments.push_back(Upload(Numbered(c.view.sizes, 1000)));
    result = WriteView(b, parameters[0], plan, starts, update);
  } else {
    result = ReadView(b, parameters[0], plan, starts);
  }
  const TensorType type = result.type();
  return Download(*RunProgram(b.Finish({result}), {type}, arguments)[0]);
}

TEST(View, Solves) {
  for (const ViewCase& c : Cases()) {
    EXPECT_EQ(static_cast<int>(SolveView({DType::kInt32, c.base}, c.view).kind), static_cast<int>(c.kind)) << c.name;
  }
}

TEST(View, Reads) {
  for (const ViewCase& c : Cases()) {
    const ViewPlan plan = ViewPlan::Decode(SolveView({DType::kInt32, c.base}, c.view).Encode());
    ViewPlan with_starts = plan;
    with_starts.starts = SolveView({DType::kInt32, c.base}, c.view).starts;
    const Array got = RunView(c, with_starts, false);
    EXPECT_EQ(got.type.dims, c.view.sizes) << c.name;
    const std::vector<int64_t> positions = Positions(c.view);
    EXPECT_EQ(got.values, std::vector<double>(positions.begin(), positions.end())) << c.name;
  }
}

TEST(View, Writes) {
  for (const ViewCase& c : Cases()) {
    const std::string name = c.name;
    if (name == "windows") continue;  // overlapping writes have no one right value
    const Array got = RunView(c, SolveView({DType::kInt32, c.base}, c.view), true);
    Array want = Numbered(c.base);
    const std::vector<int64_t> positions = Positions(c.view);
    for (size_t i = 0; i < positions.size(); ++i) want.values[positions[i]] = 1000 + static_cast<double>(i);
    EXPECT_EQ(got.values, want.values) << name;
    EXPECT_EQ(got.type.dims, c.base) << name;
  }
}

TEST(View, TheSamePlanServesEveryOffset) {
  const TensorType base{DType::kInt32, {8, 6}};
  const Dims first = SolveView(base, {DType::kInt32, {6}, {1}, 0}).Encode();
  for (int64_t row = 1; row < 8; ++row) {
    const ViewPlan plan = SolveView(base, {DType::kInt32, {6}, {1}, row * 6});
    EXPECT_EQ(plan.Encode(), first);
    EXPECT_EQ(plan.starts, Dims{row});
  }
}

TEST(View, RefusesWhatLiesOutside) {
  const TensorType base{DType::kInt32, {4}};
  for (const ViewSpec& view : {ViewSpec{DType::kInt32, {5}, {1}, 0}, ViewSpec{DType::kInt32, {2}, {1}, 3},
                               ViewSpec{DType::kInt32, {1}, {1}, -1}, ViewSpec{DType::kInt64, {3}, {1}, 0}}) {
    try {
      SolveView(base, view);
      ADD_FAILURE() << "expected an error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::kOutOfRange);
      EXPECT_NE(std::string(error.what()).find("within a storage of"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace torch_tpu
