#include "dispatch/compiled_graph.h"

#include <ATen/EmptyTensor.h>
#include <c10/util/strides.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "device/context.h"
#include "device/generator.h"
#include "device/queue.h"
#include "dispatch/dtype_map.h"
#include "dispatch/errors.h"
#include "dispatch/host_values.h"
#include "dispatch/lower_options.h"
#include "dispatch/mode.h"
#include "dispatch/tensors.h"

namespace torch_tpu {
namespace {

bool Equal(c10::IntArrayRef a, const Dims& b) { return a == c10::IntArrayRef(b); }

// Caller holds the queue lock.
bool FitsLayout(const at::Tensor& tensor, const TensorLayout& layout) {
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (c10::typeMetaToScalarType(impl.dtype()) != layout.dtype || !Equal(impl.sizes(), layout.sizes) ||
      !Equal(impl.strides(), layout.strides) || impl.storage_offset() != layout.offset ||
      tensor.is_conj() != layout.conjugate || tensor.is_neg() != layout.negative)
    return false;
  const StorageContext& context = ContextOf(impl);
  if (context.nbytes != layout.nbytes) return false;
  const TensorType* base = BaseType(context);
  return base == nullptr ? !layout.base : layout.base && *base == *layout.base;
}

// Words and layouts are compared; what a storage holds is guarded by the queue lock.
BufferPtr Upload(const at::Tensor& host, int device) {
  const at::Tensor dense = host.contiguous();
  const TensorType type{CheckedDType(dense.scalar_type(), "compile"), Dims(dense.sizes().begin(), dense.sizes().end())};
  if (type.dims.empty()) return HostValue(device, type.dtype, dense.const_data_ptr(), dense.itemsize(), {});
  DeviceContext& context = DeviceContext::Get();
  return context.client().FromHost(context.device(device), dense.const_data_ptr(), type);
}

at::Tensor TensorOver(c10::Storage storage, const TensorLayout& layout) {
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(
      std::move(storage), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::scalarTypeToTypeMeta(layout.dtype));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(layout.sizes, layout.strides, layout.offset);
  if (layout.conjugate) tensor._set_conj(true);
  if (layout.negative) tensor._set_neg(true);
  return tensor;
}

}  // namespace

std::vector<TensorLayout> CompiledGraph::Layouts(std::span<const Argument> arguments) const {
  std::vector<TensorLayout> layouts;
  std::lock_guard lock(Queue::Of(device_).mutex());
  for (const Argument& argument : arguments) {
    TensorLayout& layout = layouts.emplace_back();
    if (argument.tensor == nullptr) continue;
    const at::Tensor& tensor = *argument.tensor;
    if (IsTpu(tensor)) {
      Check(tensor.device().index() == device_, name_, ": expected tensors on tpu:", device_, ", got one on ",
            tensor.device().str());
      layout = LayoutOf(tensor);
    } else {
      Check(tensor.is_cpu(), name_, ": expected tensors on tpu:", device_, " or cpu, got one on ",
            tensor.device().str());
      const Dims sizes(tensor.sizes().begin(), tensor.sizes().end());
      layout = LayoutFor(tensor.scalar_type(), sizes, ContiguousStrides(sizes));
    }
  }
  return layouts;
}

bool CompiledGraph::Fits(const Variant& variant, std::span<const Argument> arguments) const {
  if (variant.words.size() != arguments.size()) return false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const at::Tensor* tensor = arguments[i].tensor;
    if ((tensor != nullptr) != variant.is_tensor[i]) return false;
    if (tensor == nullptr) {
      if (arguments[i].word != variant.words[i]) return false;
    } else if (variant.on_host[i]) {
      const TensorLayout& layout = variant.graph.arguments[i];
      if (IsTpu(*tensor) || tensor->scalar_type() != layout.dtype || !Equal(tensor->sizes(), layout.sizes))
        return false;
    } else if (!IsTpu(*tensor) || tensor->device().index() != device_ ||
               !FitsLayout(*tensor, variant.graph.arguments[i])) {
      return false;
    }
  }
  return true;
}

const CompiledGraph::Variant* CompiledGraph::Find(std::span<const Argument> arguments) {
  std::lock_guard queue_lock(Queue::Of(device_).mutex());
  std::lock_guard lock(mutex_);
  if (last_ != nullptr && Fits(*last_, arguments)) return last_;
  for (const auto& variant : variants_) {
    if (variant.get() != last_ && Fits(*variant, arguments)) return last_ = variant.get();
  }
  return nullptr;
}

const CompiledGraph::Variant* CompiledGraph::Add(CapturedGraph graph, std::span<const Argument> arguments,
                                                 std::vector<bool> host_outputs) {
  auto variant = std::make_unique<Variant>();
  for (const Argument& argument : arguments) {
    variant->words.push_back(argument.word);
    variant->is_tensor.push_back(argument.tensor != nullptr);
    variant->on_host.push_back(argument.tensor != nullptr && !IsTpu(*argument.tensor));
  }
  variant->host_outputs = std::move(host_outputs);
  for (const auto& [input, output] : graph.graph.aliases) {
    variant->donations.emplace_back(input, graph.inputs[input].argument);
  }
  if (!graph.graph.outputs.empty()) {
    Translated(name_, [&] {
      DeviceContext& context = DeviceContext::Get();
      const Program program = Lower(graph.graph, OptionsFor(context.client(), graph.precision));
      variant->text = program.text;
      variant->executable = context.compiler().Compile(program, context.compiler().DefaultOptions(device_));
    });
  }
  variant->graph = std::move(graph);
  return Add(std::move(variant));
}

const CompiledGraph::Variant* CompiledGraph::Add(std::unique_ptr<Variant> variant) {
  std::lock_guard lock(mutex_);
  variant->id = static_cast<int64_t>(variants_.size());
  variants_.push_back(std::move(variant));
  return last_ = variants_.back().get();
}

std::vector<const CompiledGraph::Variant*> CompiledGraph::variants() const {
  std::lock_guard lock(mutex_);
  std::vector<const Variant*> all;
  for (const auto& variant : variants_) all.push_back(variant.get());
  return all;
}

double CompiledGraph::TimeLaunches(const Variant& variant, std::span<const Argument> arguments, int repeats) {
  std::vector<PJRT_Buffer*> raw;
  std::vector<int64_t> keep;
  for (const CapturedGraph::Input& input : variant.graph.inputs) {
    Check(input.random < 0 && (input.argument < 0 || !variant.on_host[input.argument]),
          "time_launches: expected a program of device tensors alone");
    keep.push_back(static_cast<int64_t>(raw.size()));
    raw.push_back(input.argument < 0
                      ? input.constant->raw()
                      : ContextOf(*arguments[input.argument].tensor->unsafeGetTensorImpl()).value->raw());
  }
  Device* device = DeviceContext::Get().device(device_);
  std::vector<BufferPtr> results;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < repeats; ++i) {
    variant.executable->Execute(device, raw.data(), raw.size(), keep.data(), keep.size(), &results);
  }
  results.back()->Await();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / repeats;
}

std::vector<at::Tensor> CompiledGraph::Run(const Variant& variant, std::span<const Argument> arguments) {
  const CapturedGraph& graph = variant.graph;
  std::vector<at::Tensor> outputs(graph.outputs.size());
  std::vector<BufferPtr> results, uploads(arguments.size());
  Translated(name_, [&] {
    DeviceContext& device = DeviceContext::Get();
    std::lock_guard lock(Queue::Of(device_).mutex());
    auto context_of = [&](int argument) -> StorageContext& {
      return ContextOf(*arguments[argument].tensor->unsafeGetTensorImpl());
    };
    auto old_value = [&](int argument) -> BufferPtr {
      if (variant.on_host[argument]) {
        if (uploads[argument] == nullptr) uploads[argument] = Upload(*arguments[argument].tensor, device_);
        return uploads[argument];
      }
      StorageContext& context = context_of(argument);
      if (context.pending != nullptr) [[unlikely]]
        Materialize(context, "compiled call");
      return context.value;
    };
    // What passes through is held first: it must not be donated.
    std::vector<BufferPtr> passed_stores(graph.stores.size()), passed_storages(graph.storages.size());
    for (size_t s = 0; s < graph.stores.size(); ++s) {
      if (graph.stores[s].value.argument >= 0) passed_stores[s] = old_value(graph.stores[s].value.argument);
    }
    for (size_t s = 0; s < graph.storages.size(); ++s) {
      if (graph.storages[s].value.argument >= 0) passed_storages[s] = old_value(graph.storages[s].value.argument);
    }
    if (variant.executable != nullptr) {
      c10::SmallVector<PJRT_Buffer*, 64> raw;
      std::vector<BufferPtr> kept;
      raw.reserve(graph.inputs.size());
      for (const CapturedGraph::Input& input : graph.inputs) {
        if (input.argument >= 0) {
          if (!variant.on_host[input.argument]) [[likely]] {
            StorageContext& context = context_of(input.argument);
            if (context.pending != nullptr) [[unlikely]]
              Materialize(context, "compiled call");
            raw.push_back(context.value->raw());
          } else {
            raw.push_back(old_value(input.argument)->raw());
          }
        } else if (input.constant != nullptr) {
          raw.push_back(input.constant->raw());
        } else {
          const CapturedGraph::RandomUse& use = graph.random[input.random];
          const auto state = GeneratorFor(use.generator, static_cast<c10::DeviceIndex>(device_)).Reserve(use.words);
          const uint64_t words[2] = {state.first, state.second};
          kept.push_back(device.client().FromHost(device.device(device_), words, TensorType{DType::kUInt64, {2}}));
          raw.push_back(kept.back()->raw());
        }
      }
      c10::SmallVector<int64_t, 16> keep;
      for (const auto& [input, argument] : variant.donations) {
        const bool ours = !variant.on_host[argument] && context_of(argument).value.use_count() == 1;
        if (!ours) keep.push_back(input);
      }
      std::sort(keep.begin(), keep.end());
      variant.executable->Execute(device.device(device_), raw.data(), raw.size(), keep.data(), keep.size(), &results);
      Queue::Of(device_).Launched(results.back());
    } else {
      for (const CapturedGraph::RandomUse& use : graph.random) {
        GeneratorFor(use.generator, static_cast<c10::DeviceIndex>(device_)).Reserve(use.words);
      }
    }
    auto value_of = [&](const CapturedGraph::Source& source, BufferPtr& passed) -> BufferPtr {
      if (source.output >= 0) return results[source.output];
      return source.argument >= 0 ? std::move(passed) : source.constant;
    };
    for (size_t s = 0; s < graph.stores.size(); ++s) {
      const CapturedGraph::Store& store = graph.stores[s];
      BufferPtr value = value_of(store.value, passed_stores[s]);
      if (!variant.on_host[store.argument]) {
        SetValue(context_of(store.argument), std::move(value));
      } else {
        TensorLayout layout = graph.arguments[store.argument];
        at::Tensor made = MakeTensor(layout.dtype, layout.sizes, static_cast<c10::DeviceIndex>(device_));
        SetValue(ContextOf(*made.unsafeGetTensorImpl()), std::move(value));
        at::Tensor host = *arguments[store.argument].tensor;
        host.copy_(made);
      }
    }
    std::vector<c10::Storage> storages(graph.storages.size());
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      const CapturedGraph::Output& output = graph.outputs[i];
      if (!output.defined) continue;
      if (output.argument >= 0) {
        if (variant.on_host[output.argument]) {
          outputs[i] = *arguments[output.argument].tensor;
        } else {
          outputs[i] = TensorOver(arguments[output.argument].tensor->storage(), output.layout);
        }
        continue;
      }
      c10::Storage& storage = storages[output.storage];
      if (!storage) {
        const CapturedGraph::Storage& made = graph.storages[output.storage];
        storage = c10::Storage(c10::make_intrusive<c10::StorageImpl>(
            c10::StorageImpl::use_byte_size_t(), made.nbytes,
            AllocateStorage(made.nbytes, static_cast<c10::DeviceIndex>(device_)), GetAllocator(), /*resizable=*/true));
        ContextOf(*storage.unsafeGetStorageImpl())->value = value_of(made.value, passed_storages[output.storage]);
      }
      outputs[i] = TensorOver(storage, output.layout);
    }
    if (CurrentMode() == EagerMode::kDebug) {
      for (const BufferPtr& value : results) AwaitInterruptibly(value->Ready());
    }
  });
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (i < variant.host_outputs.size() && variant.host_outputs[i] && outputs[i].defined())
      outputs[i] = outputs[i].to(at::kCPU);
  }
  return outputs;
}

}  // namespace torch_tpu
