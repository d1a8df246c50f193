#include "lowering/math.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace torch_tpu {
namespace {

bool IsFloat8(DType dtype) {
  switch (dtype) {
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E5M2:
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E5M2FNUZ:
    case DType::kFloat8E8M0FNU:
      return true;
    default:
      return false;
  }
}

// uint16, uint32 and uint64: storage types without a full set of promotion rules.
bool IsBareUnsigned(DType dtype) {
  return dtype == DType::kUInt16 || dtype == DType::kUInt32 || dtype == DType::kUInt64;
}

DType PromoteOrOther(DType a, DType b) {
  if (a == DType::kInvalid) return b;
  if (b == DType::kInvalid) return a;
  return PromoteTypes(a, b);
}

// A category with less weight only counts when its kind (bool < integer < float < complex) is higher.
DType CombineCategories(DType higher, DType lower) {
  if (IsComplex(higher)) return higher;
  if (IsFloat(higher)) return IsComplex(lower) ? ComplexOf(higher) : higher;
  if (higher == DType::kBool || IsFloat(lower) || IsComplex(lower)) return PromoteOrOther(higher, lower);
  return higher != DType::kInvalid ? higher : lower;
}

DType NumberType(DType category) {
  if (IsComplex(category)) return DType::kComplex64;
  if (IsFloat(category)) return DefaultFloat();
  return category;
}

// x86's truncating conversion: what does not fit gives the lowest value of the type.
Value TruncateTo(Builder& b, Value x, DType integer) {
  const int bits = BitWidth(integer);
  Value wide = ToCompute(b, x);
  const double limit = std::ldexp(1.0, bits - 1);
  Value fits = b.And(b.Compare(wide, Full(b, wide, limit), Direction::kLt),
                     b.Compare(wide, Full(b, wide, -limit), Direction::kGe));
  // A float32 just below -2^31 does not exist, a float64 does: it truncates to -2^31 all the same.
  Value safe = b.Select(fits, wide, b.Zero(wide.dtype(), wide.dims()));
  return b.Select(fits, b.Convert(safe, integer), b.MinOf(integer, wide.dims()));
}

Value FloatToInteger(Builder& b, Value x, DType dtype) {
  switch (dtype) {
    case DType::kInt64:
      return TruncateTo(b, x, DType::kInt64);
    case DType::kInt32:
    case DType::kInt16:
    case DType::kInt8:
    case DType::kUInt16:
      return b.Convert(TruncateTo(b, x, DType::kInt32), dtype);
    case DType::kUInt8:
      return b.Convert(TruncateTo(b, x, DType::kInt64), dtype);
    default: {  // uint32, uint64: the upper half of the range is converted after taking 2^(bits - 1) off
      const DType same_width = dtype == DType::kUInt32 ? DType::kInt32 : DType::kInt64;
      Value wide = ToCompute(b, x);
      Value half = Full(b, wide, std::ldexp(1.0, BitWidth(dtype) - 1));
      Value upper = b.Compare(wide, half, Direction::kGe);
      Value low = b.BitcastConvert(TruncateTo(b, wide, same_width), dtype);
      Value high = b.BitcastConvert(TruncateTo(b, b.Subtract(wide, half), same_width), dtype);
      Value top = b.BitcastConvert(b.MinOf(same_width, wide.dims()), dtype);
      return b.Select(upper, b.Xor(high, top), low);
    }
  }
}

Value ReduceNan(Builder& b, Value x, const Dims& dims, bool largest) {
  if (dims.empty()) return x;
  if (x.dtype() == DType::kBool) return b.Reduce(x, largest ? Builder::Reducer::kOr : Builder::Reducer::kAnd, dims);
  if (!IsFloat(x.dtype()) || b.target() == Target::kTpu) {
    return b.Reduce(x, largest ? Builder::Reducer::kMax : Builder::Reducer::kMin, dims);
  }
  Value wide = ToCompute(b, x);
  Value init = largest ? b.MinOf(wide.dtype()) : b.MaxOf(wide.dtype());
  Values reduced = b.ReduceMany({wide}, {init}, dims, [&](const Values& v) -> Values {
    return {largest ? MaxNan(b, v[0], v[1]) : MinNan(b, v[0], v[1])};
  });
  return b.Convert(reduced[0], x.dtype());
}

}  // namespace

// ---- type promotion

DType PromoteTypes(DType a, DType b) {
  if (a == b) return a;
  Check(a != DType::kInvalid && b != DType::kInvalid, "promote_types: expected two dtypes, got an undefined one");
  Check(!IsFloat8(a) && !IsFloat8(b), "Promotion for Float8 Types is not supported, attempted to promote ", Name(a),
        " and ", Name(b));
  if (IsComplex(a) || IsComplex(b)) {
    const bool wide =
        a == DType::kComplex128 || b == DType::kComplex128 || a == DType::kFloat64 || b == DType::kFloat64;
    return wide ? DType::kComplex128 : DType::kComplex64;
  }
  if (IsFloat(a) && IsFloat(b)) {
    if (BitWidth(a) == BitWidth(b)) return DType::kFloat32;  // float16 and bfloat16
    return BitWidth(a) > BitWidth(b) ? a : b;
  }
  if (IsFloat(a)) return a;
  if (IsFloat(b)) return b;
  Check(!IsBareUnsigned(a) && !IsBareUnsigned(b),
        "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote ", Name(a), " and ",
        Name(b));
  if (a == DType::kBool) return b;
  if (b == DType::kBool) return a;
  if (a == DType::kUInt8 || b == DType::kUInt8) {
    const DType other = a == DType::kUInt8 ? b : a;
    return other == DType::kInt8 ? DType::kInt16 : other;
  }
  return BitWidth(a) > BitWidth(b) ? a : b;
}

DType DefaultFloat() { return DType::kFloat32; }

DType FloatResult(DType dtype) { return IsFloat(dtype) || IsComplex(dtype) ? dtype : DefaultFloat(); }

DType ResultType(const Args& a, const std::vector<size_t>& tensors, const std::vector<size_t>& numbers) {
  DType with_dims = DType::kInvalid, zero_dim = DType::kInvalid, wrapped = DType::kInvalid;
  for (size_t i : tensors) {
    if (!a.has(i)) continue;
    const Arg::Kind kind = a.kind(i);
    if (kind == Arg::Kind::kScalar || kind == Arg::Kind::kConstant) {
      wrapped = PromoteOrOther(wrapped, NumberType(a.category(i)));
      continue;
    }
    Value x = a.tensor_or_absent(i);
    if (!x) continue;
    if (a.wrapped(i)) {
      const DType number = NumberType(x.dtype());
      if (x.rank() > 0) {
        with_dims = PromoteOrOther(with_dims, number);
      } else {
        wrapped = PromoteOrOther(wrapped, number);
      }
    } else if (x.rank() > 0) {
      with_dims = PromoteOrOther(with_dims, x.dtype());
    } else {
      zero_dim = PromoteOrOther(zero_dim, x.dtype());
    }
  }
  for (size_t i : numbers) {
    if (a.has(i)) wrapped = PromoteOrOther(wrapped, NumberType(a.category(i)));
  }
  return CombineCategories(with_dims, CombineCategories(zero_dim, wrapped));
}

// ---- casts and broadcasts

Value Cast(Builder& b, Value x, DType dtype) {
  const DType from = x.dtype();
  if (from == dtype) return x;
  if (IsComplex(from)) {
    if (IsComplex(dtype)) {
      const DType part = RealOf(dtype);
      return b.Complex(b.Convert(b.Real(x), part), b.Convert(b.Imag(x), part));
    }
    if (dtype == DType::kBool) return b.Or(Cast(b, b.Real(x), dtype), Cast(b, b.Imag(x), dtype));
    return Cast(b, b.Real(x), dtype);
  }
  if (IsComplex(dtype)) {
    Value real = Cast(b, x, RealOf(dtype));
    return b.Complex(real, b.Zero(real.dtype(), real.dims()));
  }
  if (dtype == DType::kBool) return b.Compare(x, b.Zero(from, x.dims()), Direction::kNe);
  if (IsFloat(from) && IsInteger(dtype)) return FloatToInteger(b, x, dtype);
  // To a short float PyTorch always goes through float32, which rounds twice.
  if (IsFloat(dtype) && BitWidth(dtype) < 32 && from != DType::kFloat32) {
    return b.Convert(b.Convert(x, DType::kFloat32), dtype);
  }
  return b.Convert(x, dtype);
}

Dims BroadcastShapes(const std::vector<Dims>& shapes) {
  size_t rank = 0;
  for (const Dims& shape : shapes) rank = std::max(rank, shape.size());
  Dims result(rank, 1);
  for (const Dims& shape : shapes) {
    const size_t shift = rank - shape.size();
    for (size_t i = shape.size(); i-- > 0;) {
      int64_t& size = result[shift + i];
      if (shape[i] == size || shape[i] == 1) continue;
      Check(size == 1, "The size of tensor a (", size, ") must match the size of tensor b (", shape[i],
            ") at non-singleton dimension ", shift + i);
      size = shape[i];
    }
  }
  return result;
}

Values Broadcast(Builder& b, const Values& xs) {
  std::vector<Dims> shapes;
  for (const Value& x : xs) {
    if (x) shapes.push_back(x.dims());
  }
  const Dims dims = BroadcastShapes(shapes);
  Values result;
  for (const Value& x : xs) result.push_back(x ? b.BroadcastTo(x, dims) : Value());
  return result;
}

Values Promoted(Builder& b, const Args& a, const std::vector<size_t>& tensors, DType dtype) {
  if (dtype == DType::kInvalid) dtype = ResultType(a, tensors);
  Values xs;
  for (size_t i : tensors) {
    const bool number = a.has(i) && (a.kind(i) == Arg::Kind::kScalar || a.kind(i) == Arg::Kind::kConstant);
    if (number) {
      xs.push_back(a.scalar(b, i, dtype));
      continue;
    }
    Value x = a.tensor_or_absent(i);
    xs.push_back(x ? Cast(b, x, dtype) : Value());
  }
  return Broadcast(b, xs);
}

Value Full(Builder& b, const Value& like, double value) {
  const DType dtype = like.dtype();
  if (IsComplex(dtype)) return b.ConstantComplex(dtype, {value, 0.0}, like.dims());
  if (IsFloat(dtype)) return b.Constant(dtype, value, like.dims());
  return b.ConstantInt(dtype, static_cast<int64_t>(value), like.dims());
}

Value FullLike(Builder& b, Value scalar, const Value& like) {
  return b.BroadcastTo(Cast(b, scalar, like.dtype()), like.dims());
}

Value ToCompute(Builder& b, Value x) { return b.Convert(x, ComputeType(x.dtype())); }

// ---- dims

int64_t WrapDim(int64_t dim, int64_t rank) {
  const int64_t extent = std::max<int64_t>(rank, 1);
  if (dim < -extent || dim >= extent) {
    Fail(Code::kOutOfRange, "Dimension out of range (expected to be in range of [", -extent, ", ", extent - 1,
         "], but got ", dim, ")");
  }
  return dim < 0 ? dim + extent : dim;
}

Dims WrapDims(const Dims& dims, int64_t rank) {
  Dims result;
  if (dims.empty()) {
    result.resize(rank);
    std::iota(result.begin(), result.end(), 0);
    return result;
  }
  for (int64_t dim : dims) result.push_back(WrapDim(dim, rank));
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  if (rank == 0) result.clear();  // dim 0 of a 0-d tensor names nothing
  return result;
}

Value KeepDims(Builder& b, Value reduced, const Dims& original, const Dims& dims) {
  Dims kept = original;
  for (int64_t dim : dims) kept.at(dim) = 1;
  return b.Reshape(reduced, kept);
}

Value Unsqueeze(Builder& b, Value x, int64_t dim) {
  Dims dims = x.dims();
  dims.insert(dims.begin() + WrapDim(dim, x.rank() + 1), 1);
  return b.Reshape(x, dims);
}

Value Squeeze(Builder& b, Value x, int64_t dim) {
  if (x.rank() == 0) return x;
  Dims dims = x.dims();
  const int64_t at = WrapDim(dim, x.rank());
  if (dims[at] != 1) return x;
  dims.erase(dims.begin() + at);
  return b.Reshape(x, dims);
}

// ---- reductions

Value Sum(Builder& b, Value x, const Dims& dims) {
  if (dims.empty()) return x;
  Value wide = ToCompute(b, x);
  return b.Convert(b.Reduce(wide, Builder::Reducer::kAdd, dims), x.dtype());
}

// Compares and selects where a plugin's maximum may drop NaN; a NaN in `c` is not <= `a`, so it is selected.
Value MaxNan(Builder& b, Value a, Value c) {
  if (!IsFloat(a.dtype()) || b.target() == Target::kTpu) return b.Maximum(a, c);
  Value keep = b.Or(b.Compare(a, c, Direction::kGe), b.Compare(a, a, Direction::kNe));
  return b.Select(keep, a, c);
}

Value MinNan(Builder& b, Value a, Value c) {
  if (!IsFloat(a.dtype()) || b.target() == Target::kTpu) return b.Minimum(a, c);
  Value keep = b.Or(b.Compare(a, c, Direction::kLe), b.Compare(a, a, Direction::kNe));
  return b.Select(keep, a, c);
}

Value ReduceMax(Builder& b, Value x, const Dims& dims) { return ReduceNan(b, x, dims, true); }
Value ReduceMin(Builder& b, Value x, const Dims& dims) { return ReduceNan(b, x, dims, false); }

Value IsNan(Builder& b, Value x) {
  if (IsComplex(x.dtype())) return b.Or(IsNan(b, b.Real(x)), IsNan(b, b.Imag(x)));
  if (!IsFloat(x.dtype())) return b.ConstantInt(DType::kBool, 0, x.dims());
  return b.Compare(x, x, Direction::kNe);
}

std::pair<Value, Value> ArgReduce(Builder& b, Value x, int64_t dim, bool largest) {
  if (x.rank() == 0) return {x, b.ConstantInt(DType::kInt64, 0)};
  dim = WrapDim(dim, x.rank());
  Check(x.dim(dim) > 0, "Expected reduction dim ", dim, " to have non-zero size.");
  // Two plain reductions: the extreme, then the first position that holds it. They vectorize where one over pairs does
  // not.
  Value best = largest ? ReduceMax(b, x, {dim}) : ReduceMin(b, x, {dim});
  Dims kept;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (i != dim) kept.push_back(i);
  }
  Value spread = b.BroadcastInDim(best, x.dims(), kept);
  Value hit = b.Compare(x, spread, Direction::kEq);
  if (IsFloat(x.dtype())) hit = b.Or(hit, IsNan(b, x));  // with a NaN around, `best` is NaN and equals nothing
  const DType index = x.dim(dim) < (int64_t{1} << 31) ? DType::kInt32 : DType::kInt64;
  Value at = b.Select(hit, b.Iota(index, x.dims(), dim), b.MaxOf(index, x.dims()));
  Value first = b.Reduce(at, Builder::Reducer::kMin, {dim});
  return {best, b.Convert(first, DType::kInt64)};
}

// ---- shorthands

Value Mul(Builder& b, Value x, double c) { return b.Multiply(x, Full(b, x, c)); }
Value AddC(Builder& b, Value x, double c) { return b.Add(x, Full(b, x, c)); }
Value Eq(Builder& b, Value x, double c) { return b.Compare(x, Full(b, x, c), Direction::kEq); }

Value Where(Builder& b, Value cond, Value x, Value y) {
  Values all = Broadcast(b, {cond, x, y});
  return b.Select(all[0], all[1], all[2]);
}

// ---- contractions

Value Dot(Builder& b, Value lhs, Value rhs, const DotDims& dims) {
  const DType dtype = lhs.dtype();
  if (dtype == DType::kBool) {
    Value product = b.DotGeneral(b.Convert(lhs, DType::kInt32), b.Convert(rhs, DType::kInt32), dims, DType::kInt32);
    return Cast(b, product, dtype);
  }
  return b.Convert(b.DotGeneral(lhs, rhs, dims, ComputeType(dtype)), dtype);
}

Value MatMul2d(Builder& b, Value lhs, Value rhs) { return Dot(b, lhs, rhs, {{}, {}, {1}, {0}}); }
Value BatchMatMul(Builder& b, Value lhs, Value rhs) { return Dot(b, lhs, rhs, {{0}, {0}, {2}, {1}}); }

}  // namespace torch_tpu
