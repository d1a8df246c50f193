// What the files of the builder share: the text under construction, scopes, checks and spelling of attributes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "program/builder.h"

namespace torch_tpu {

// Sets of element kinds an op takes.
enum Kinds : uint32_t {
  kBoolKind = 1,
  kSignedKind = 2,
  kUnsignedKind = 4,
  kFloatKind = 8,
  kComplexKind = 16,
  kIntegerKinds = kSignedKind | kUnsignedKind,
  kLogicKinds = kBoolKind | kIntegerKinds,
  kInexactKinds = kFloatKind | kComplexKind,
  kNumberKinds = kIntegerKinds | kInexactKinds,
  kRealKinds = kLogicKinds | kFloatKind,
  kAllKinds = 31,
};
uint32_t KindOf(DType dtype);
std::string KindNames(uint32_t kinds);  // "a float or complex"

struct Builder::Impl {
  // The text of one region. Values of an enclosing scope may be used unless `isolated`: XLA's computations for reduce,
  // sort and scatter are functions of their arguments alone.
  struct Scope {
    int64_t serial = 0;
    bool isolated = false;
    std::string text;
    std::map<std::string, Value> constants;
  };

  Impl();
  // Throws unless each operand is present, of this builder and visible from the current scope.
  void Use(std::string_view op, const Values& operands) const;
  void Use(std::string_view op, std::initializer_list<Value> operands) const { Use(op, Values(operands)); }
  // Appends "stablehlo.<op>". Operands have been through Use; `attributes` is the inside of <{...}>.
  Value Emit(std::string_view op, const Values& operands, TensorType result, std::string_view attributes = {});
  Values EmitMany(std::string_view op, const Values& operands, const std::vector<TensorType>& results,
                  std::string_view attributes = {}, const std::vector<std::string>& regions = {});
  // The text of a region, "{ ... }". `results` gets the types of what `body` returned.
  std::string Region(std::string_view op, const std::vector<TensorType>& arguments, bool isolated, const Body& body,
                     std::vector<TensorType>* results);
  // A region whose results must have the types `expected`.
  std::string TypedRegion(std::string_view op, const std::vector<TensorType>& arguments, bool isolated,
                          const Body& body, const std::vector<TensorType>& expected);
  // A constant whose literal ("dense<...>") is given; one per scope and literal.
  Value Literal(const TensorType& type, const std::string& dense);

  Value Unary(std::string_view op, const Value& x, uint32_t kinds);
  Value Binary(std::string_view op, const Value& a, const Value& b, uint32_t kinds);
  void ExpectKind(std::string_view op, const Value& x, uint32_t kinds) const;
  void ExpectSameType(std::string_view op, const Value& a, const Value& b) const;

  Value NewValue(TensorType type, int64_t scope);

  std::vector<Scope> scopes;
  std::vector<std::shared_ptr<const TensorType>>
      types;                      // by value id; keeps addresses unique, so they identify the builder
  std::vector<int64_t> scope_of;  // by value id
  std::vector<Value> parameters;
  std::map<int64_t, int64_t> aliases;  // parameter -> result
  std::string location;                // of the ops that follow, as MLIR spells it
  int64_t next_scope = 0;
  bool finished = false;
};

// The two-operand function of a reducer, as a region's body.
Builder::Body BodyOf(Builder& b, Builder::Reducer reducer);
uint32_t KindsOf(Builder::Reducer reducer);  // what it can reduce

std::string ToString(const std::vector<TensorType>& types);  // "(tensor<f32>, tensor<i1>)"
std::vector<TensorType> TypesOf(const Values& values);

// --- spelling
std::string Brackets(const Dims& dims);                    // "[1, 2]"
std::string Array(const Dims& dims);                       // "array<i64: 1, 2>"
std::string Array(const std::vector<bool>& flags);         // "array<i1: true, false>"
std::string Pairs(const Dims& first, const Dims& second);  // "dense<[[0, 1]]> : tensor<1x2xi64>"
std::string Bool(bool value);
std::string FloatBits(DType dtype, double value);  // "0x7FC00000", rounded to nearest even

// --- checks
bool Contains(const Dims& dims, int64_t dim);
// Every entry inside [0, rank), none twice.
void ExpectDims(std::string_view op, std::string_view what, const Dims& dims, int64_t rank);
void ExpectSorted(std::string_view op, std::string_view what, const Dims& dims);
void ExpectCount(std::string_view op, std::string_view what, size_t expected, size_t got);
// No negative size.
void ExpectSizes(std::string_view op, const Dims& dims);
Dims Without(const Dims& dims, const Dims& positions);  // entries of `dims` whose position is not in `positions`

}  // namespace torch_tpu
