// Typed StableHLO builder: every op infers and checks its result type, and appends one line of StableHLO text.
//
// Contract: single-threaded, one function ("main") per Builder. A violated check throws Error(kInvalidArgument) whose
// text is
// "<stablehlo op>: expected ..., got ...". Operands must come from the same Builder, in the current or an enclosing
// region. Elementwise ops want equal dims and dtypes: the builder never broadcasts or converts silently. See
// lowering/math.h for the PyTorch-flavoured layer on top.
#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/tensor_type.h"
#include "program/value.h"

namespace torch_tpu {

enum class Target : uint8_t { kCpu, kTpu, kOther };
enum class Precision : uint8_t { kDefault, kHigh, kHighest };
enum class Direction : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe };
enum class RngAlgorithm : uint8_t { kPhilox, kThreeFry };
enum class FftKind : uint8_t { kFft, kIfft, kRfft, kIrfft };

struct DotDims {
  Dims lhs_batch{}, rhs_batch{}, lhs_contract{}, rhs_contract{};
};

// Window of a convolution. The dimension numbers say where batch, feature and spatial dims are.
struct ConvDims {
  int64_t lhs_batch = 0, lhs_feature = 1;
  Dims lhs_spatial{};
  int64_t rhs_out = 0, rhs_in = 1;
  Dims rhs_spatial{};
  int64_t out_batch = 0, out_feature = 1;
  Dims out_spatial{};
};
struct ConvWindow {
  // Empty: ones (strides, dilations), zeros (pads), no reversal.
  Dims strides{}, pad_low{}, pad_high{}, lhs_dilation{}, rhs_dilation{};
  std::vector<bool> reversal{};
  int64_t feature_groups = 1, batch_groups = 1;
};

struct ReduceWindow {  // all of the operand's rank; empty: ones (dims, strides, dilations) or zeros (pads)
  Dims dims{}, strides{}, base_dilations{}, window_dilations{}, pad_low{}, pad_high{};
};

struct GatherDims {
  Dims offset_dims{}, collapsed_slice_dims{}, operand_batching_dims{}, start_indices_batching_dims{}, start_index_map{};
  int64_t index_vector_dim = 0;
};
struct ScatterDims {
  Dims update_window_dims{}, inserted_window_dims{}, input_batching_dims{}, scatter_indices_batching_dims{},
      scatter_dims_to_operand_dims{};
  int64_t index_vector_dim = 0;
};

class Builder {
 public:
  using Body = std::function<Values(const Values&)>;

  explicit Builder(Target target = Target::kCpu, Precision precision = Precision::kHighest, bool host_kernels = false);
  ~Builder();
  Builder(const Builder&) = delete;
  Builder& operator=(const Builder&) = delete;

  Target target() const { return target_; }
  Precision precision() const { return precision_; }  // what dot and convolution are written with
  // True: programs may call the process' host kernels (lowering/host_call.h). Only on Target::kCpu.
  bool host_kernels() const { return host_kernels_; }

  // --- function
  Value Parameter(const TensorType& type);
  // Says that parameter `parameter` may be overwritten by result `result` (same type required).
  void Alias(int64_t parameter, int64_t result);
  // Of the ops that follow, as MLIR spells it inside loc(...); empty: none.
  void SetLocation(std::string location);
  // Ends the function and gives the module's text. Identical programs give identical text.
  std::string Finish(const Values& results);

  // --- constants
  Value Constant(DType dtype, double value, const Dims& dims = {});      // splat; inf and nan allowed; rounds to dtype
  Value ConstantInt(DType dtype, int64_t value, const Dims& dims = {});  // splat, exact; bool and ints; floats convert
  Value ConstantComplex(DType dtype, std::complex<double> value, const Dims& dims = {});
  Value ConstantInts(DType dtype, const std::vector<int64_t>& values);   // 1-d
  Value ConstantFloats(DType dtype, const std::vector<double>& values);  // 1-d
  Value Zero(DType dtype, const Dims& dims = {});
  Value One(DType dtype, const Dims& dims = {});
  Value MinOf(DType dtype, const Dims& dims = {});  // -inf, lowest integer, false
  Value MaxOf(DType dtype, const Dims& dims = {});  // +inf, highest integer, true
  Value Iota(DType dtype, const Dims& dims, int64_t dim);

  // --- elementwise, one operand
  Value Abs(Value x);  // complex -> real
  Value Negate(Value x);
  Value Sign(Value x);
  Value Exp(Value x);
  Value Expm1(Value x);
  Value Log(Value x);
  Value Log1p(Value x);
  Value Sqrt(Value x);
  Value Rsqrt(Value x);
  Value Cbrt(Value x);
  Value Logistic(Value x);
  Value Sine(Value x);
  Value Cosine(Value x);
  Value Tan(Value x);
  Value Tanh(Value x);
  Value Ceil(Value x);
  Value Floor(Value x);
  Value RoundNearestEven(Value x);
  Value RoundNearestAfz(Value x);
  Value IsFinite(Value x);  // -> bool
  Value Not(Value x);       // bool: logical; integers: bitwise
  Value Popcnt(Value x);
  Value CountLeadingZeros(Value x);
  Value Real(Value x);
  Value Imag(Value x);
  Value ReducePrecision(Value x, int exponent_bits, int mantissa_bits);

  // --- elementwise, two operands
  Value Add(Value a, Value b);  // on bool: or
  Value Subtract(Value a, Value b);
  Value Multiply(Value a, Value b);   // on bool: and
  Value Divide(Value a, Value b);     // integers truncate
  Value Remainder(Value a, Value b);  // sign of the dividend
  Value Maximum(Value a, Value b);
  Value Minimum(Value a, Value b);
  Value Power(Value a, Value b);
  Value Atan2(Value a, Value b);
  Value And(Value a, Value b);
  Value Or(Value a, Value b);
  Value Xor(Value a, Value b);
  Value ShiftLeft(Value a, Value b);
  Value ShiftRightArithmetic(Value a, Value b);
  Value ShiftRightLogical(Value a, Value b);
  Value Complex(Value real, Value imag);
  Value Compare(Value a, Value b, Direction direction);  // -> bool; floats by IEEE order; complex: eq and ne only
  Value CompareTotalOrder(Value a, Value b, Direction direction);  // floats only: -nan < -inf < ... < inf < nan

  // --- elementwise, others
  Value Select(Value condition, Value on_true, Value on_false);  // condition: same dims or 0-d
  Value Clamp(Value low, Value x, Value high);                   // low, high: same dims or 0-d
  // StableHLO's convert, with no result that depends on the plugin: float to integer saturates as on XLA (callers that
  // need PyTorch's rule use lowering/math.h), anything to bool is x != 0. The same dtype returns x itself.
  Value Convert(Value x, DType dtype);
  Value BitcastConvert(Value x, DType dtype);  // sizes may differ: adds or removes a minor dim as StableHLO says

  // --- shape
  Value BroadcastInDim(Value x, const Dims& dims, const Dims& broadcast_dims);
  // numpy-style: aligns trailing dims, expands ones. Returns x itself when nothing changes.
  Value BroadcastTo(Value x, const Dims& dims);
  Value Reshape(Value x, const Dims& dims);
  Value Transpose(Value x, const Dims& permutation);
  Value Reverse(Value x, const Dims& dims);
  Value Slice(Value x, const Dims& start, const Dims& limit, const Dims& strides = {});
  // Slice of one dim.
  Value SliceDim(Value x, int64_t dim, int64_t start, int64_t limit, int64_t stride = 1);
  Value DynamicSlice(Value x, const Values& starts, const Dims& sizes);  // starts: 0-d integers, one per dim
  Value DynamicUpdateSlice(Value x, Value update, const Values& starts);
  Value Pad(Value x, Value pad_value, const Dims& low, const Dims& high,
            const Dims& interior = {});  // low, high may be < 0
  Value Concatenate(const Values& xs, int64_t dim);
  Value Gather(Value x, Value indices, const GatherDims& dims, const Dims& slice_sizes, bool sorted = false);
  // body(old, update) -> new. One operand form.
  Value Scatter(Value x, Value indices, Value updates, const ScatterDims& dims, const Body& body, bool sorted = false,
                bool unique = false);
  Values ScatterMany(const Values& xs, Value indices, const Values& updates, const ScatterDims& dims, const Body& body,
                     bool sorted = false, bool unique = false);

  // --- reductions
  enum class Reducer : uint8_t { kAdd, kMul, kMax, kMin, kAnd, kOr };
  // Over `dims`, with the reducer's own neutral element. kMax and kMin on floats: whatever the plugin does with NaN
  // (see math.h).
  Value Reduce(Value x, Reducer reducer, const Dims& dims);
  // General: body gets accumulators then elements, one of each per operand, all 0-d.
  Values ReduceMany(const Values& xs, const Values& inits, const Dims& dims, const Body& body);
  Value ReduceWindowOp(Value x, Value init, const ReduceWindow& window, const Body& body);
  Values ReduceWindowMany(const Values& xs, const Values& inits, const ReduceWindow& window, const Body& body);
  Value SelectAndScatter(Value x, Value source, Value init, const ReduceWindow& window, const Body& select,
                         const Body& scatter);

  // --- linear algebra
  // Result: batch dims, then lhs free dims, then rhs free dims. `result` is the accumulation and result type.
  Value DotGeneral(Value lhs, Value rhs, const DotDims& dims, DType result);
  Value Convolution(Value lhs, Value rhs, const ConvDims& dims, const ConvWindow& window, DType result);
  Value Cholesky(Value x, bool lower);
  Value TriangularSolve(Value a, Value b, bool left_side, bool lower, bool unit_diagonal, bool transpose_a,
                        bool conjugate_a = false);
  Value Fft(Value x, FftKind kind, const Dims& lengths);

  // --- order, control flow, random, calls
  // body gets (a0, b0, a1, b1, ...) as 0-d values and returns one bool.
  Values Sort(const Values& xs, int64_t dim, bool stable, const Body& less);
  Values While(const Values& init, const Body& condition, const Body& body);
  Values If(Value predicate, const std::function<Values()>& on_true, const std::function<Values()>& on_false);
  Values Case(Value index, const std::vector<std::function<Values()>>& branches);
  // state: ui64[2]. Returns (new state, bits).
  std::pair<Value, Value> RngBitGenerator(Value state, RngAlgorithm algorithm, const TensorType& bits);
  // api_version 4 (typed FFI) call; `attributes` is MLIR text of the backend_config dictionary ("{a = 1 : i64}").
  Values CustomCall(std::string_view target, const Values& operands, const std::vector<TensorType>& results,
                    std::string_view attributes = "{}", bool has_side_effect = false);
  // Keeps XLA from merging or moving across it.
  Values OptimizationBarrier(const Values& xs);

  // --- collectives. replica_groups: equal rows; channel_id > 0 makes it cross-partition/global ids.
  using Groups = std::vector<std::vector<int64_t>>;
  Value AllReduce(Value x, Reducer reducer, const Groups& groups, int64_t channel_id = 0);
  Value AllGather(Value x, int64_t dim, const Groups& groups, int64_t channel_id = 0);
  Value ReduceScatter(Value x, Reducer reducer, int64_t dim, const Groups& groups, int64_t channel_id = 0);
  Value AllToAll(Value x, int64_t split_dim, int64_t concat_dim, int64_t split_count, const Groups& groups,
                 int64_t channel_id = 0);
  Value CollectivePermute(Value x, const std::vector<std::pair<int64_t, int64_t>>& pairs, int64_t channel_id = 0);
  Value ReplicaId();
  Value PartitionId();

 private:
  struct Impl;
  Target target_;
  Precision precision_;
  bool host_kernels_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace torch_tpu
