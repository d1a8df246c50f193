// Comparisons and logic: results are bool.
#include "lowering/elementwise.h"

namespace torch_tpu {
namespace {

template <Direction kDirection>
Values Comparison(Builder& b, const Args& a) {
  Values v = Operands(b, a, {0, 1}, ResultType(a, {0, 1}));
  return {b.Compare(v[0], v[1], kDirection)};
}

template <Value (Builder::*F)(Value, Value)>
Values Logical(Builder& b, const Args& a) {
  Values v = Promoted(b, a, {0, 1}, DType::kBool);
  return {(b.*F)(v[0], v[1])};
}

Values LogicalNot(Builder& b, const Args& a) { return {b.Not(Cast(b, a.tensor(0), DType::kBool))}; }

constexpr OpRow kRows[] = {
    {"eq.Tensor", Comparison<Direction::kEq>}, {"eq.Scalar", Comparison<Direction::kEq>},
    {"ne.Tensor", Comparison<Direction::kNe>}, {"ne.Scalar", Comparison<Direction::kNe>},
    {"lt.Tensor", Comparison<Direction::kLt>}, {"lt.Scalar", Comparison<Direction::kLt>},
    {"le.Tensor", Comparison<Direction::kLe>}, {"le.Scalar", Comparison<Direction::kLe>},
    {"gt.Tensor", Comparison<Direction::kGt>}, {"gt.Scalar", Comparison<Direction::kGt>},
    {"ge.Tensor", Comparison<Direction::kGe>}, {"ge.Scalar", Comparison<Direction::kGe>},
    {"logical_and", Logical<&Builder::And>},   {"logical_or", Logical<&Builder::Or>},
    {"logical_xor", Logical<&Builder::Xor>},   {"logical_not", LogicalNot},
};

}  // namespace

std::span<const OpRow> CompareRows() { return kRows; }

}  // namespace torch_tpu
