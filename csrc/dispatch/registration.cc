// Registers every row of the table with PyTorch's dispatcher: the functional op, and the in-place and out= overloads
// that its schema has beside it.
#include "dispatch/registration.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "dispatch/bound_op.h"
#include "dispatch/indices.h"

namespace torch_tpu {
namespace {

// The dispatcher destroys its kernels at exit, after the plugin's own statics are gone: ops, and the executables they
// hold, are left to the process.
class RowKernel : public c10::OperatorKernel {
 public:
  explicit RowKernel(BoundOp* op) : op_(op) {}
  void operator()(const c10::OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack* stack) { op_->Call(stack); }

 private:
  BoundOp* op_;
};

// index, index_put and their kin: masks become positions before the row sees them, since their number of elements is
// data.
class IndexKernel : public c10::OperatorKernel {
 public:
  explicit IndexKernel(BoundOp* op) : op_(op) {}
  void operator()(const c10::OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack* stack) {
    const size_t begin = stack->size() - op_->params().size();
    if (op_->form() == BoundOp::Form::kInplace && PutAsMaskedFill(*stack, begin)) return;
    PrepareIndices(*stack, begin);
    op_->Call(stack);
  }

 private:
  BoundOp* op_;
};

bool TakesIndexList(const OpRow& row) {
  static constexpr std::string_view kNames[] = {"index.Tensor", "_unsafe_index.Tensor", "index_put", "_index_put_impl",
                                                "_unsafe_index_put"};
  return std::find(std::begin(kNames), std::end(kNames), row.name) != std::end(kNames);
}

std::vector<std::string> ReadTypes(const c10::FunctionSchema& schema) {
  std::vector<std::string> types;
  for (const c10::Argument& argument : schema.arguments()) {
    if (!argument.is_out()) types.push_back(argument.real_type()->str());
  }
  return types;
}

size_t NumOut(const c10::FunctionSchema& schema) {
  return std::count_if(schema.arguments().begin(), schema.arguments().end(), [](const auto& a) { return a.is_out(); });
}

bool Writes(const c10::FunctionSchema& schema) {
  return std::any_of(schema.arguments().begin(), schema.arguments().end(),
                     [](const auto& a) { return a.alias_info() != nullptr && a.alias_info()->isWrite(); });
}

// Overloads of one operator name, found once.
using Overloads = std::multimap<std::string, c10::OperatorName>;

class Registrar {
 public:
  Registrar(torch::Library& library, const Overloads& overloads) : library_(library), overloads_(overloads) {}

  void Register(const OpRow& row) {
    const std::string full(row.name);
    const size_t dot = full.find('.');
    const std::string base = "aten::" + full.substr(0, dot);
    const std::string overload = dot == std::string::npos ? "" : full.substr(dot + 1);
    const auto handle = c10::Dispatcher::singleton().findSchema({base, overload});
    if (!handle) {
      problems_.push_back(full + ": PyTorch has no such op");
      return;
    }
    const c10::FunctionSchema& schema = handle->schema();
    if (Writes(schema)) {
      problems_.push_back(full + ": rows are named by the functional schema");
      return;
    }
    const size_t before = registered_.size();
    Bind(row, *handle, BoundOp::Form::kFunctional);
    if (!(row.traits & kFunctionalOnly)) BindVariants(row, base, schema);
    if (registered_.size() == before)
      problems_.push_back(full + ": all its forms are composite in PyTorch or have another row");
  }

  std::vector<std::string>& problems() { return problems_; }
  std::vector<std::string>& registered() { return registered_; }

 private:
  void BindVariants(const OpRow& row, const std::string& base, const c10::FunctionSchema& schema) {
    const std::vector<std::string> types = ReadTypes(schema);
    // normal_functional stands for normal_: the plain name was taken by another op.
    const std::string plain = base.ends_with("_functional") ? base.substr(0, base.size() - 11)
                              : base == "aten::_conj_physical"
                                  ? "aten::conj_physical"  // composite, its variants are not
                                  : base;
    for (auto [it, end] = overloads_.equal_range(plain + "_"); it != end; ++it) {
      const auto inplace = c10::Dispatcher::singleton().findSchema(it->second);
      if (inplace && ReadTypes(inplace->schema()) == types && Writes(inplace->schema())) {
        Bind(row, *inplace, BoundOp::Form::kInplace);
      }
    }
    for (auto [it, end] = overloads_.equal_range(plain); it != end; ++it) {
      const auto out = c10::Dispatcher::singleton().findSchema(it->second);
      if (out && NumOut(out->schema()) == schema.returns().size() && ReadTypes(out->schema()) == types) {
        Bind(row, *out, BoundOp::Form::kOut);
      }
    }
  }

  void Bind(const OpRow& row, const c10::OperatorHandle& handle, BoundOp::Form form) {
    // A composite form is PyTorch's to take apart (its derivative is that of its parts); another form of the row serves
    // it.
    if (!(row.traits & kOwnDerivative) && handle.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd))
      return;
    const c10::OperatorName& name = handle.operator_name();
    std::string text = name.name.substr(6);
    if (!name.overload_name.empty()) text += "." + name.overload_name;
    if (std::find(registered_.begin(), registered_.end(), text) != registered_.end()) return;
    registered_.push_back(text);
    auto* op = new BoundOp(row, handle.schema(), form, handle);
    if (TakesIndexList(row)) {
      library_.impl(text.c_str(), torch::CppFunction::makeFromBoxedFunctor(std::make_unique<IndexKernel>(op)));
    } else {
      library_.impl(text.c_str(), torch::CppFunction::makeFromBoxedFunctor(std::make_unique<RowKernel>(op)));
    }
  }

  torch::Library& library_;
  const Overloads& overloads_;
  std::vector<std::string> problems_, registered_;
};

std::vector<std::string>& Problems() {
  static auto& problems = *new std::vector<std::string>;
  return problems;
}
std::vector<std::string>& Registered() {
  static auto& registered = *new std::vector<std::string>;
  return registered;
}

}  // namespace

void RegisterRows() {
  static std::once_flag once;
  std::call_once(once, [] {
    static auto& library =
        *new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
    Overloads overloads;
    for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames())
      overloads.emplace(name.name, name);
    Registrar registrar(library, overloads);
    for (const OpRow& row : AllRows()) {
      if (!(row.traits & kInternal)) registrar.Register(row);
    }
    Problems() = registrar.problems();
    Registered() = registrar.registered();
  });
}

const std::vector<std::string>& RegistrationProblems() { return Problems(); }
const std::vector<std::string>& RegisteredOps() { return Registered(); }

}  // namespace torch_tpu
