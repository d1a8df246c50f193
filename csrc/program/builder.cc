#include "program/builder.h"

#include <algorithm>

#include "program/builder_impl.h"

namespace torch_tpu {

Builder::Builder(Target target, Precision precision, bool host_kernels)
    : target_(target), precision_(precision), host_kernels_(host_kernels), impl_(std::make_unique<Impl>()) {}

Builder::~Builder() = default;

Value Builder::Parameter(const TensorType& type) {
  Check(type.dtype != DType::kInvalid, "parameter: expected a valid element type, got none");
  ExpectSizes("parameter", type.dims);
  Check(!impl_->finished, "parameter: expected a function under construction, got a finished one");
  Value value = impl_->NewValue(type, impl_->scopes.front().serial);
  impl_->parameters.push_back(value);
  return value;
}

void Builder::SetLocation(std::string location) { impl_->location = std::move(location); }

void Builder::Alias(int64_t parameter, int64_t result) {
  const int64_t count = static_cast<int64_t>(impl_->parameters.size());
  Check(parameter >= 0 && parameter < count, "alias: expected a parameter below ", count, ", got ", parameter);
  Check(result >= 0, "alias: expected a result, got ", result);
  Check(!impl_->aliases.contains(parameter), "alias: expected a parameter without alias, got ", parameter);
  for (const auto& entry : impl_->aliases) {
    Check(entry.second != result, "alias: expected a result without alias, got ", result);
  }
  impl_->aliases[parameter] = result;
}

std::string Builder::Finish(const Values& results) {
  impl_->Use("return", results);
  Check(impl_->scopes.size() == 1, "return: expected no open region, got ", impl_->scopes.size() - 1);
  for (const auto& [parameter, result] : impl_->aliases) {
    Check(result < static_cast<int64_t>(results.size()), "alias: expected a result below ", results.size(), ", got ",
          result);
    const TensorType& from = impl_->parameters[parameter].type();
    const TensorType& to = results[result].type();
    Check(from == to, "alias: expected result ", result, " of type ", from.ToString(), ", got ", to.ToString());
  }
  std::string text = "module @main {\n  func.func @main(";
  for (size_t i = 0; i < impl_->parameters.size(); ++i) {
    const Value& parameter = impl_->parameters[i];
    text += Cat(i ? ", " : "", "%", parameter.id(), ": ", parameter.type().ToString());
    auto alias = impl_->aliases.find(static_cast<int64_t>(i));
    if (alias != impl_->aliases.end()) text += Cat(" {tf.aliasing_output = ", alias->second, " : i32}");
  }
  text += Cat(") -> ", ToString(TypesOf(results)), " {\n", impl_->scopes.front().text, "    return");
  for (size_t i = 0; i < results.size(); ++i) text += Cat(i ? ", %" : " %", results[i].id());
  for (size_t i = 0; i < results.size(); ++i) text += Cat(i ? ", " : " : ", results[i].type().ToString());
  text += "\n  }\n}\n";
  impl_->finished = true;
  return text;
}

Builder::Impl::Impl() {
  scopes.emplace_back();
  scopes.back().serial = next_scope++;
}

Value Builder::Impl::NewValue(TensorType type, int64_t scope) {
  auto shared = std::make_shared<const TensorType>(std::move(type));
  types.push_back(shared);
  scope_of.push_back(scope);
  return Value(static_cast<int64_t>(types.size()) - 1, std::move(shared));
}

void Builder::Impl::Use(std::string_view op, const Values& operands) const {
  Check(!finished, op, ": expected a function under construction, got a finished one");
  for (const Value& value : operands) {
    Check(static_cast<bool>(value), op, ": expected a value, got an absent one");
    const size_t id = static_cast<size_t>(value.id());
    Check(id < types.size() && types[id].get() == &value.type(), op,
          ": expected a value of this builder, got one of another");
    bool visible = false;
    for (auto scope = scopes.rbegin(); scope != scopes.rend() && !visible; ++scope) {
      visible = scope->serial == scope_of[id];
      if (scope->isolated) break;
    }
    Check(visible, op, ": expected a value that this region can see, got %", id, " of another region");
  }
}

Value Builder::Impl::Emit(std::string_view op, const Values& operands, TensorType result, std::string_view attributes) {
  return EmitMany(op, operands, {std::move(result)}, attributes)[0];
}

Values Builder::Impl::EmitMany(std::string_view op, const Values& operands, const std::vector<TensorType>& results,
                               std::string_view attributes, const std::vector<std::string>& regions) {
  Scope& scope = scopes.back();
  Values values;
  values.reserve(results.size());
  std::string& text = scope.text;
  text.append(2 * scopes.size() + 2, ' ');
  for (const TensorType& type : results) {
    values.push_back(NewValue(type, scope.serial));
    text += Cat(values.size() > 1 ? ", %" : "%", values.back().id());
  }
  if (!values.empty()) text += " = ";
  text += Cat("\"stablehlo.", op, "\"(");
  for (size_t i = 0; i < operands.size(); ++i) text += Cat(i ? ", %" : "%", operands[i].id());
  text += ")";
  if (!attributes.empty()) text += Cat(" <{", attributes, "}>");
  for (size_t i = 0; i < regions.size(); ++i) text += Cat(i ? ", " : " (", regions[i]);
  if (!regions.empty()) text += ")";
  text += Cat(" : ", ToString(TypesOf(operands)), " -> ");
  text += results.size() == 1 ? results[0].ToString() : ToString(results);
  if (!location.empty()) text += Cat(" loc(", location, ")");
  text += "\n";
  return values;
}

std::string Builder::Impl::Region(std::string_view op, const std::vector<TensorType>& arguments, bool isolated,
                                  const Body& body, std::vector<TensorType>* results) {
  struct Pop {
    std::vector<Scope>& scopes;
    size_t depth;
    ~Pop() { scopes.resize(depth); }
  } pop{scopes, scopes.size()};
  scopes.emplace_back();
  scopes.back().serial = next_scope++;
  scopes.back().isolated = isolated;
  const std::string indent(2 * scopes.size() + 2, ' ');
  const std::string outer(2 * scopes.size(), ' ');
  std::string head = "{\n";
  Values values;
  for (const TensorType& type : arguments) {
    values.push_back(NewValue(type, scopes.back().serial));
    head += Cat(values.size() > 1 ? ", %" : outer + "^bb0(%", values.back().id(), ": ", type.ToString());
  }
  if (!arguments.empty()) head += "):\n";
  const Values returned = body(values);
  Use(op, returned);
  *results = TypesOf(returned);
  std::string tail = indent + "\"stablehlo.return\"(";
  for (size_t i = 0; i < returned.size(); ++i) tail += Cat(i ? ", %" : "%", returned[i].id());
  tail += Cat(") : ", ToString(*results), " -> ()\n", outer, "}");
  return head + scopes.back().text + tail;
}

std::string Builder::Impl::TypedRegion(std::string_view op, const std::vector<TensorType>& arguments, bool isolated,
                                       const Body& body, const std::vector<TensorType>& expected) {
  std::vector<TensorType> results;
  std::string text = Region(op, arguments, isolated, body, &results);
  Check(results == expected, op, ": expected a region that returns ", ToString(expected), ", got ", ToString(results));
  return text;
}

Value Builder::Impl::Literal(const TensorType& type, const std::string& dense) {
  Use("constant", {});
  std::string attributes = Cat("value = ", dense, " : ", type.ToString());
  auto& constants = scopes.back().constants;
  auto found = constants.find(attributes);
  if (found != constants.end()) return found->second;
  Value value = Emit("constant", {}, type, attributes);
  constants.emplace(std::move(attributes), value);
  return value;
}

void Builder::Impl::ExpectKind(std::string_view op, const Value& x, uint32_t kinds) const {
  Check((KindOf(x.dtype()) & kinds) != 0, op, ": expected ", KindNames(kinds), ", got ", x.type().ToString());
}

void Builder::Impl::ExpectSameType(std::string_view op, const Value& a, const Value& b) const {
  Check(a.type() == b.type(), op, ": expected operands of one type, got ", a.type().ToString(), " and ",
        b.type().ToString());
}

// --- shared spelling and checks

uint32_t KindOf(DType dtype) {
  if (IsBool(dtype)) return kBoolKind;
  if (IsSignedInt(dtype)) return kSignedKind;
  if (IsUnsignedInt(dtype)) return kUnsignedKind;
  if (IsFloat(dtype)) return kFloatKind;
  if (IsComplex(dtype)) return kComplexKind;
  return 0;
}

std::string KindNames(uint32_t kinds) {
  std::vector<std::string> names;
  if (kinds & kBoolKind) names.push_back("bool");
  if ((kinds & kIntegerKinds) == kIntegerKinds) {
    names.push_back("integer");
  } else if (kinds & kSignedKind) {
    names.push_back("signed integer");
  } else if (kinds & kUnsignedKind) {
    names.push_back("unsigned integer");
  }
  if (kinds & kFloatKind) names.push_back("float");
  if (kinds & kComplexKind) names.push_back("complex");
  std::string text = names[0];
  for (size_t i = 1; i < names.size(); ++i) text += (i + 1 == names.size() ? " or " : ", ") + names[i];
  return text;
}

std::string ToString(const std::vector<TensorType>& types) {
  std::string text = "(";
  for (size_t i = 0; i < types.size(); ++i) text += Cat(i ? ", " : "", types[i].ToString());
  return text + ")";
}

std::vector<TensorType> TypesOf(const Values& values) {
  std::vector<TensorType> types;
  types.reserve(values.size());
  for (const Value& value : values) types.push_back(value.type());
  return types;
}

bool Contains(const Dims& dims, int64_t dim) { return std::find(dims.begin(), dims.end(), dim) != dims.end(); }

void ExpectDims(std::string_view op, std::string_view what, const Dims& dims, int64_t rank) {
  for (size_t i = 0; i < dims.size(); ++i) {
    const bool twice = std::find(dims.begin(), dims.begin() + i, dims[i]) != dims.begin() + i;
    Check(dims[i] >= 0 && dims[i] < rank && !twice, op, ": expected ", what, " that differ and lie in [0, ", rank,
          "), got ", ToString(dims));
  }
}

void ExpectSorted(std::string_view op, std::string_view what, const Dims& dims) {
  Check(std::is_sorted(dims.begin(), dims.end()), op, ": expected sorted ", what, ", got ", ToString(dims));
}

void ExpectCount(std::string_view op, std::string_view what, size_t expected, size_t got) {
  Check(expected == got, op, ": expected ", expected, " ", what, ", got ", got);
}

void ExpectSizes(std::string_view op, const Dims& dims) {
  for (int64_t size : dims) Check(size >= 0, op, ": expected sizes of 0 or more, got ", ToString(dims));
}

Dims Without(const Dims& dims, const Dims& positions) {
  Dims rest;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (!Contains(positions, static_cast<int64_t>(i))) rest.push_back(dims[i]);
  }
  return rest;
}

}  // namespace torch_tpu
