#include "dispatch/tape.h"

#include <ATen/SequenceNumber.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <unordered_set>

#include "base/error.h"
#include "device/context.h"
#include "device/queue.h"
#include "device/torch_error.h"
#include "dispatch/errors.h"
#include "dispatch/lower_options.h"
#include "dispatch/mode.h"
#include "lowering/table.h"
#include "program/graph.h"
#include "runtime/compiled.h"

namespace torch_tpu {
namespace {

// A tape ends by itself at this many steps, or when the values recorded on it may take this much memory.
constexpr size_t kMaxSteps = 4096;
constexpr int64_t kMaxBytes = int64_t{2} << 30;
// A loop is seen when the last kPattern steps stood near the tape's start, at least kMinPeriod steps before. Near,
// since the first turn of a loop may begin otherwise than the others (a view, another layout).
constexpr size_t kAnchors = 8;
constexpr size_t kPattern = 12;
constexpr size_t kMinPeriod = 192;
constexpr size_t kMaxRecords = 1000;
constexpr size_t kMaxPrograms = 4096;

constexpr DType kWordType[2] = {DType::kFloat64, DType::kInt64};
size_t KindOf(const TensorType& type) { return IsFloat(type.dtype) || IsComplex(type.dtype) ? 0 : 1; }

const OpRow& UnpackRow() {
  static const OpRow* row = FindRow("tpu::unpack");
  Check(row != nullptr, "tpu::unpack: expected a row of the lowering table");
  return *row;
}

// The value, of which the compiler does not know that it is the same, and which is there only once `after` is.
OpCall Barrier(int32_t value, int32_t after) {
  static const OpRow* row = FindRow("tpu::barrier");
  Check(row != nullptr, "tpu::barrier: expected a row of the lowering table");
  OpCall call;
  call.row = row;
  call.operands = {{value, false}, {after, false}};
  call.args.resize(2);
  for (int32_t i : {0, 1}) {
    call.args[i].kind = Arg::Kind::kTensor;
    call.args[i].first = i;
    call.args[i].count = 1;
  }
  return call;
}

// The host value of `type` that begins at `start` of the packed words `value`.
OpCall Unpack(int32_t value, int64_t start, const TensorType& type) {
  OpCall call;
  call.row = &UnpackRow();
  call.operands = {{value, false}};
  call.args.resize(4);
  call.args[0].kind = Arg::Kind::kTensor;
  call.args[0].count = 1;
  call.args[1].kind = Arg::Kind::kInt;
  call.args[1].ints = {start};
  call.args[2].kind = Arg::Kind::kDType;
  call.args[2].dtype = type.dtype;
  call.args[3].kind = Arg::Kind::kInts;
  call.args[3].ints = type.dims;
  return call;
}

int64_t MemoryOf(const Client& client, const Executable& executable) {
  try {
    const CompiledMemory memory = Compiled::Of(client, executable.raw()).memory();
    return memory.arguments + memory.outputs - memory.aliased + memory.temporaries;
  } catch (const Error&) {
    return 0;  // not every plugin says
  }
}

void AppendWord(std::string& key, int64_t word) { key.append(reinterpret_cast<const char*>(&word), sizeof(word)); }

}  // namespace

Tape& Tape::Of(int device) {
  static std::array<std::atomic<Tape*>, 128> tapes{};  // never freed: buffers must not outlive the client's exit
  std::atomic<Tape*>& place = tapes.at(static_cast<size_t>(device));
  if (Tape* tape = place.load(std::memory_order_acquire); tape != nullptr) [[likely]]
    return *tape;
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (place.load() == nullptr) {
    Tape* const tape = new Tape(device);
    Queue::Of(device).SetFlush([tape] { tape->Flush("synchronize"); });
    place = tape;
  }
  return *place.load();
}

Tape::Ref Tape::Input(const BufferPtr& buffer, bool shared) {
  if (shared) {
    const auto [place, fresh] = input_index_.try_emplace(buffer.get(), static_cast<int32_t>(inputs_.size()));
    if (!fresh) return ~place->second;
  }
  inputs_.push_back(buffer);
  input_types_.push_back(buffer->type());
  return ~static_cast<int32_t>(inputs_.size() - 1);
}

Tape::Ref Tape::Words(const TensorType& type, const uint64_t* words) {
  std::vector<uint64_t>& all = words_[KindOf(type)];
  const auto first = static_cast<Ref>(all.size());
  all.insert(all.end(), words, words + type.numel() * (IsComplex(type.dtype) ? 2 : 1));
  return kWords - first;
}

Tape::Ref Tape::Placeholder(const TensorType& type) {
  inputs_.push_back(nullptr);
  input_types_.push_back(type);
  return ~static_cast<int32_t>(inputs_.size() - 1);
}

// The line that this thread is at; in autograd's threads, which have none, that of the forward op whose gradient is
// being computed: a node of autograd has the number that was next when its op began.
int32_t Tape::Location() {
  const std::string site = CallSite();
  const size_t end = site.rfind(", in ");
  const size_t colon = site.rfind(':', end);
  if (end == std::string::npos || colon == std::string::npos || site.find_first_of("\"\\") != std::string::npos) {
    const auto node = torch::autograd::get_current_node();
    const auto found = !node ? location_of_.end() : location_of_.find(node->sequence_nr());
    return found == location_of_.end() ? -1 : found->second;
  }
  const std::string location = Cat('"', site.substr(0, colon), "\":", site.substr(colon + 1, end - colon - 1), ":0");
  if (locations_.empty() || locations_.back() != location) locations_.push_back(location);
  const auto index = static_cast<int32_t>(locations_.size()) - 1;
  if (c10::GradMode::is_enabled() && at::sequence_number::peek() > 0)
    location_of_[at::sequence_number::peek() - 1] = index;
  return index;
}

Tape::Values Tape::Add(const Entry& entry, c10::ArrayRef<Ref> refs, c10::ArrayRef<Ref> replaced) {
  const bool recomputed = torch::autograd::get_current_graph_task_id() != -1 && c10::GradMode::is_enabled();
  steps_.push_back({&entry, static_cast<int32_t>(refs_.size()), static_cast<int32_t>(values_.size()),
                    keep_locations_ ? Location() : -1, recomputed});
  refs_.insert(refs_.end(), refs.begin(), refs.end());
  Values outputs;
  for (size_t i = 0; i < entry.outputs.size(); ++i) {
    auto pending = std::make_shared<Pending>();
    pending->device = device_;
    pending->id = static_cast<int32_t>(values_.size());
    pending->type = &entry.outputs[i];
    pending->capture = capture_;
    if (capture_ != 0) {  // its entries may go before its tensors
      pending->own = entry.outputs[i];
      pending->type = &pending->own;
    }
    bytes_ += static_cast<int64_t>(pending->type->bytes());
    values_.push_back(pending);
    origins_.push_back(replaced[i]);
    outputs.push_back(std::move(pending));
  }
  return outputs;
}

void Tape::EndStep() {
  if (capture_ != 0) return;
  if (Repeats()) {
    Cut(steps_.size() - kPattern);
  } else if (steps_.size() >= kMaxSteps) {
    Flush("number of ops");
  } else if (bytes_ >= kMaxBytes) {
    Flush("memory");
  }
}

bool Tape::Repeats() const {
  const size_t n = steps_.size();
  for (size_t anchor = 0; anchor < kAnchors && n >= anchor + kPattern + kMinPeriod; ++anchor) {
    size_t same = 0;
    while (same < kPattern && steps_[n - 1 - same].entry == steps_[anchor + kPattern - 1 - same].entry) ++same;
    if (same == kPattern) return true;
  }
  return false;
}

int32_t Tape::OriginInput(int32_t id) const {
  Ref ref = origins_[id];
  while (ref >= 0) ref = origins_[ref];
  return ref <= kWords ? -1 : ~ref;
}

void Tape::Flush(const char* reason) {
  if (steps_.empty()) return;
  std::vector<Output> outputs;
  for (size_t id = 0; id < values_.size(); ++id) {
    if (auto pending = values_[id].lock()) outputs.push_back({static_cast<int32_t>(id), std::move(pending)});
  }
  try {
    if (!outputs.empty()) RunSteps(steps_.size(), outputs, reason);
  } catch (...) {
    Clear();
    throw;
  }
  Clear();
}

// Runs the first `steps` steps and begins the tape anew with the rest.
void Tape::Cut(size_t steps) {
  const Step& first = steps_[steps];
  std::vector<bool> needed(static_cast<size_t>(first.first_value), false);
  for (size_t r = static_cast<size_t>(first.first_ref); r < refs_.size(); ++r) {
    if (refs_[r] >= 0 && refs_[r] < first.first_value) needed[refs_[r]] = true;
  }
  std::vector<Output> outputs;
  for (int32_t id = 0; id < first.first_value; ++id) {
    auto pending = values_[id].lock();
    if (pending != nullptr || needed[id]) outputs.push_back({id, std::move(pending)});
  }
  // Buffers that the rest reads must not be given away by the first part: hold them.
  const std::vector<Step> rest(steps_.begin() + static_cast<int64_t>(steps), steps_.end());
  const std::vector<Ref> rest_refs(refs_.begin() + first.first_ref, refs_.end());
  const int32_t base = first.first_value;
  const std::vector<std::weak_ptr<Pending>> rest_values(values_.begin() + base, values_.end());
  const std::vector<Ref> rest_origins(origins_.begin() + base, origins_.end());
  std::unordered_map<int32_t, BufferPtr> held;
  for (Ref ref : rest_refs) {
    if (ref < 0 && ref > kWords) held[~ref] = inputs_[~ref];
  }
  std::vector<BufferPtr> results;
  try {
    if (!outputs.empty()) results = RunSteps(steps, outputs, "repeated pattern");
  } catch (...) {
    Clear();
    throw;
  }
  std::unordered_map<int32_t, BufferPtr> computed;
  for (size_t i = 0; i < outputs.size(); ++i) computed[outputs[i].id] = results[i];
  outputs.clear();
  const std::unordered_map<const Buffer*, int32_t> shared = input_index_;
  const int precision = precision_;
  const std::array<std::vector<uint64_t>, 2> words = words_;
  Clear();
  precision_ = precision;
  std::unordered_map<int32_t, Ref> moved_inputs;
  auto moved = [&](Ref ref) -> Ref {
    if (ref <= kWords) return kNone;
    if (ref >= base) return ref - base;
    if (ref >= 0) {
      const auto it = computed.find(ref);
      return it == computed.end() ? kNone : Input(it->second, true);
    }
    if (auto it = moved_inputs.find(ref); it != moved_inputs.end()) return it->second;
    const auto it = held.find(~ref);
    if (it == held.end()) return kNone;
    return moved_inputs[ref] = Input(it->second, shared.contains(it->second.get()));
  };
  const int32_t first_ref = rest.front().first_ref;
  for (const Step& step : rest) {
    for (size_t i = 0; i < step.entry->graph.inputs.size(); ++i) {
      const Ref ref = rest_refs[static_cast<size_t>(step.first_ref - first_ref) + i];
      const TensorType& type = step.entry->graph.inputs[i];
      refs_.push_back(ref <= kWords ? Words(type, words[KindOf(type)].data() + (kWords - ref)) : moved(ref));
    }
  }
  for (Ref ref : rest_origins) origins_.push_back(moved(ref));
  for (const Step& step : rest)
    steps_.push_back({step.entry, step.first_ref - first_ref, step.first_value - base, step.location, step.recomputed});
  values_ = rest_values;
  for (size_t i = 0; i < values_.size(); ++i) {
    if (auto pending = values_[i].lock()) {
      pending->id = static_cast<int32_t>(i);
      bytes_ += static_cast<int64_t>(pending->type->bytes());
    }
  }
}

std::vector<BufferPtr> Tape::RunSteps(size_t steps, const std::vector<Output>& outputs, const char* reason) {
  const auto start = std::chrono::steady_clock::now();
  FlushRecord record{reason, static_cast<int64_t>(steps), static_cast<int64_t>(inputs_.size()),
                     static_cast<int64_t>(outputs.size())};
  // Memory that nobody else holds goes to the value that replaced it.
  std::vector<std::pair<int32_t, int32_t>> aliases;
  std::vector<bool> given(inputs_.size(), false);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].pending == nullptr) continue;
    const int32_t input = OriginInput(outputs[i].id);
    if (input < 0 || given[input] || inputs_[input].use_count() > 1 ||
        inputs_[input]->type() != *outputs[i].pending->type)
      continue;
    given[input] = true;
    aliases.emplace_back(input, static_cast<int32_t>(i));
  }
  record.donated = static_cast<int64_t>(aliases.size());
  std::vector<BufferPtr> results;
  try {
    const Loaded& program = Program(steps, outputs, aliases, &record.compiled);
    record.memory = program.memory;
    std::vector<PJRT_Buffer*> raw;
    raw.reserve(inputs_.size());
    for (const BufferPtr& input : inputs_) raw.push_back(input->raw());
    for (size_t kind : {0, 1}) {
      if (!words_[kind].empty()) raw.push_back(Upload(kind)->raw());
    }
    program.executable->Execute(DeviceContext::Get().device(device_), raw.data(), raw.size(), nullptr, 0, &results);
  } catch (...) {
    for (const Output& output : outputs) {
      if (output.pending != nullptr) output.pending->error = std::current_exception();
    }
    throw;
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].pending != nullptr) outputs[i].pending->buffer = results[i];
  }
  Queue::Of(device_).Launched(results.back());
  record.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (records_.size() >= kMaxRecords) records_.erase(records_.begin(), records_.begin() + kMaxRecords / 2);
  records_.push_back(std::move(record));
  return results;
}

BufferPtr Tape::Upload(size_t kind) {
  if (uploads_[kind] == nullptr || uploaded_[kind] != words_[kind]) {
    uploaded_[kind] = words_[kind];
    DeviceContext& context = DeviceContext::Get();
    uploads_[kind] = context.client().FromHost(context.device(device_), words_[kind].data(),
                                               {kWordType[kind], {static_cast<int64_t>(words_[kind].size())}});
  }
  return uploads_[kind];
}

const Tape::Loaded& Tape::Program(size_t steps, const std::vector<Output>& outputs,
                                  const std::vector<std::pair<int32_t, int32_t>>& aliases, bool* compiled) {
  std::string key;
  const size_t num_refs = steps < steps_.size() ? static_cast<size_t>(steps_[steps].first_ref) : refs_.size();
  key.reserve(sizeof(int64_t) * (steps + outputs.size() + 2 * aliases.size() + 8) + num_refs * sizeof(Ref));
  AppendWord(key, precision_ << 1 | static_cast<int>(HostKernels()));
  AppendWord(key, static_cast<int64_t>(steps));
  // Entries are aligned: the lowest bit is free.
  for (size_t s = 0; s < steps; ++s) {
    AppendWord(key, reinterpret_cast<int64_t>(steps_[s].entry) | (steps_[s].recomputed ? 1 : 0));
  }
  key.append(reinterpret_cast<const char*>(refs_.data()), num_refs * sizeof(Ref));
  AppendWord(key, static_cast<int64_t>(inputs_.size()));
  for (const auto& words : words_) AppendWord(key, static_cast<int64_t>(words.size()));
  for (const Output& output : outputs) AppendWord(key, output.id);
  for (const auto& [input, output] : aliases) AppendWord(key, static_cast<int64_t>(input) << 32 | output);
  if (programs_.size() >= kMaxPrograms) programs_.clear();  // the compiler's cache still has them
  Loaded& loaded = programs_[key];
  if (loaded.executable != nullptr) return loaded;
  *compiled = true;

  std::vector<Ref> results;
  for (const Output& output : outputs) results.push_back(output.id);
  Graph graph = Join(steps, results, std::vector<bool>(inputs_.size(), true), {});
  graph.aliases.assign(aliases.begin(), aliases.end());
  DeviceContext& context = DeviceContext::Get();
  const torch_tpu::Program program = Lower(graph, OptionsFor(context.client(), static_cast<Precision>(precision())));
  loaded.executable = context.compiler().Compile(program, context.compiler().DefaultOptions(device_));
  loaded.executable->SetName(NameOf(steps));
  loaded.memory = MemoryOf(context.client(), *loaded.executable);
  return loaded;
}

// As errors call the program: its ops in the order in which they were recorded, each once.
std::string Tape::NameOf(size_t steps) const {
  constexpr size_t kNamed = 12;
  std::vector<std::string_view> names;
  for (size_t s = 0; s < steps && names.size() <= kNamed; ++s) {
    for (const Node& node : steps_[s].entry->graph.nodes) {
      const std::string_view name = node.call.row->name;
      if (!name.starts_with("tpu::") && std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
    }
  }
  std::string text = Cat("a fused program of ", steps, " ops (");
  for (size_t i = 0; i < names.size() && i < kNamed; ++i) text.append(i == 0 ? "" : ", ").append(names[i]);
  return text + (names.size() > kNamed ? ", ...)" : ")");
}

size_t Tape::StepOf(Ref value) const {
  const auto after = std::upper_bound(steps_.begin(), steps_.end(), value,
                                      [](Ref v, const Step& step) { return v < step.first_value; });
  return static_cast<size_t>(after - steps_.begin()) - 1;
}

const TensorType& Tape::TypeOf(Ref ref) const {
  if (ref < 0) return input_types_[~ref];
  const Step& step = steps_[StepOf(ref)];
  return step.entry->outputs[ref - step.first_value];
}

std::vector<bool> Tape::UsedInputs(const std::vector<Ref>& outputs) const {
  std::vector<bool> inputs(inputs_.size(), false), steps(steps_.size(), false);
  auto mark = [&](Ref ref) {
    if (ref < 0) {
      inputs[~ref] = true;
    } else {
      steps[StepOf(ref)] = true;
    }
  };
  for (Ref ref : outputs) mark(ref);
  for (size_t s = steps_.size(); s-- > 0;) {
    if (!steps[s]) continue;
    for (size_t i = 0; i < steps_[s].entry->graph.inputs.size(); ++i) mark(refs_[steps_[s].first_ref + i]);
  }
  return inputs;
}

std::vector<bool> Tape::Repeated(size_t steps) const {
  std::vector<bool> repeated(steps, false);
  std::unordered_set<std::string> said;
  for (size_t s = 0; s < steps; ++s) {
    std::string words;
    AppendWord(words, reinterpret_cast<int64_t>(steps_[s].entry));
    words.append(reinterpret_cast<const char*>(refs_.data() + steps_[s].first_ref),
                 steps_[s].entry->graph.inputs.size() * sizeof(Ref));
    repeated[s] = !said.insert(std::move(words)).second && steps_[s].recomputed;
  }
  return repeated;
}

Graph Tape::Join(size_t steps, const std::vector<Ref>& outputs, const std::vector<bool>& used,
                 const std::vector<std::optional<OpCall>>& literals) const {
  Graph graph;
  std::vector<int32_t> inputs(inputs_.size(), -1);  // tape input -> graph value
  auto is_literal = [&](size_t i) { return i < literals.size() && literals[i].has_value(); };
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!used[i] || is_literal(i)) continue;
    inputs[i] = static_cast<int32_t>(graph.inputs.size());
    graph.inputs.push_back(input_types_[i]);
  }
  int32_t packed[2] = {-1, -1};
  for (size_t kind : {0, 1}) {
    if (words_[kind].empty()) continue;
    packed[kind] = static_cast<int32_t>(graph.inputs.size());
    graph.inputs.push_back({kWordType[kind], {static_cast<int64_t>(words_[kind].size())}});
  }
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (used[i] && is_literal(i)) inputs[i] = graph.Add(*literals[i]);
  }
  std::vector<int32_t> global(values_.size(), -1);  // tape value -> graph value
  const std::vector<bool> repeated = Repeated(steps);
  int32_t before = -1;  // the last value that is no recomputation: the gradient that the next recomputation serves
  for (size_t s = 0; s < steps; ++s) {
    const Step& step = steps_[s];
    const Graph& part = step.entry->graph;
    std::vector<int32_t> local;  // the part's values -> the graph's
    bool dead = false;           // reads an input that no output depends on
    for (size_t i = 0; i < part.inputs.size(); ++i) {
      const Ref ref = refs_[static_cast<size_t>(step.first_ref) + i];
      if (ref <= kWords) {
        const TensorType& type = part.inputs[i];
        local.push_back(graph.Add(Unpack(packed[KindOf(type)], kWords - ref, type)));
      } else {
        local.push_back(ref < 0 ? inputs[~ref] : global[ref]);
      }
      dead |= local.back() < 0;
    }
    if (dead) continue;
    if (repeated[s]) {
      for (int32_t& value : local) value = graph.Add(Barrier(value, before < 0 ? value : before));
    }
    for (const Node& node : part.nodes) {
      OpCall call = node.call;
      for (Operand& operand : call.operands) {
        if (operand.value >= 0) operand.value = local.at(operand.value);
      }
      const int32_t first = graph.Add(std::move(call), node.num_results);
      if (step.location >= 0) graph.nodes.back().location = locations_[step.location];
      for (int32_t r = 0; r < node.num_results; ++r) local.push_back(first + r);
    }
    for (size_t i = 0; i < part.outputs.size(); ++i) {
      global[static_cast<size_t>(step.first_value) + i] = local.at(part.outputs[i]);
    }
    if (!step.recomputed && !part.outputs.empty()) before = local.at(part.outputs[0]);
  }
  for (Ref ref : outputs) graph.outputs.push_back(ref < 0 ? inputs[~ref] : global[ref]);
  return graph;
}

void Tape::SetPrecision(int precision) {
  if (precision_ != precision && precision_ >= 0 && !steps_.empty()) {
    Check(capture_ == 0, "precision: expected one matmul precision in a captured program, got a change");
    Flush("precision");
  }
  precision_ = precision;
}

void Tape::Clear() {
  steps_.clear();
  refs_.clear();
  inputs_.clear();
  input_types_.clear();
  input_index_.clear();
  values_.clear();
  origins_.clear();
  for (auto& words : words_) words.clear();
  bytes_ = 0;
  precision_ = -1;
}

std::vector<FlushRecord> Tape::TakeRecords() { return std::exchange(records_, {}); }

void Materialize(StorageContext& context, const char* reason) {
  Settle(context);
  if (context.pending == nullptr) return;
  const std::shared_ptr<Pending> pending = context.pending;
  if (pending->capture != 0) {
    Fail(Code::kFailedPrecondition, "expected a tensor with a value, got an abstract one (", pending->type->ToString(),
         "), whose value is not known while its program is made: ", reason);
  }
  if (pending->error == nullptr) Tape::Of(pending->device).Flush(reason);
  Settle(context);
  if (context.pending == nullptr) return;
  if (pending->error != nullptr) std::rethrow_exception(pending->error);
  Fail(Code::kInternal, "fused mode: expected a recorded value to be computed by its flush");
}

}  // namespace torch_tpu
