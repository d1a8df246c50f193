#include "dispatch/replay.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "device/context.h"

namespace torch_tpu {
namespace {

struct Launch {
  std::shared_ptr<Executable> executable;
  std::vector<int> inputs, outputs;  // slots
  std::vector<int64_t> keep;
};

struct Recording {
  std::mutex mutex;
  std::vector<Launch> launches;
  std::vector<TensorType> external_types;  // of the slots that no launch makes
  std::vector<int> external_slots;
  std::vector<std::pair<int, int>> donated;  // (slot, the slot that took its memory), in order
  int slots = 0;
  // By address: a buffer that died may lend its address to a later one, which then has a newer slot.
  std::unordered_map<const Buffer*, int> slot_of;
};

Recording& TheRecording() {
  static Recording recording;
  return recording;
}

BufferPtr Zeros(const TensorType& type, int device) {
  DeviceContext& context = DeviceContext::Get();
  const std::vector<char> bytes(std::max<size_t>(type.bytes(), 1));
  return context.client().FromHost(context.device(device), bytes.data(), type);
}

}  // namespace

std::atomic<bool> LaunchLog::recording_{false};

void LaunchLog::Start() {
  Recording& log = TheRecording();
  std::lock_guard lock(log.mutex);
  log.launches.clear();
  log.external_types.clear();
  log.external_slots.clear();
  log.donated.clear();
  log.slot_of.clear();
  log.slots = 0;
  recording_ = true;
}

size_t LaunchLog::Stop() {
  recording_ = false;
  Recording& log = TheRecording();
  std::lock_guard lock(log.mutex);
  return log.launches.size();
}

void LaunchLog::Note(const Entry& entry, const std::vector<Buffer*>& inputs, const std::vector<int64_t>& keep,
                     const std::vector<BufferPtr>& results) {
  Recording& log = TheRecording();
  std::lock_guard lock(log.mutex);
  Launch launch{entry.executable, {}, {}, keep};
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto [it, is_new] = log.slot_of.try_emplace(inputs[i], log.slots);
    if (is_new) {
      ++log.slots;
      log.external_slots.push_back(it->second);
      log.external_types.push_back(inputs[i]->type());
    }
    launch.inputs.push_back(it->second);
  }
  for (const BufferPtr& result : results) {
    log.slot_of[result.get()] = log.slots;
    launch.outputs.push_back(log.slots++);
  }
  for (const auto& [input, store] : entry.aliases) {
    if (std::find(keep.begin(), keep.end(), input) == keep.end()) {
      log.donated.emplace_back(launch.inputs[input], launch.outputs[entry.stores[store].output]);
    }
  }
  log.launches.push_back(std::move(launch));
}

double LaunchLog::Replay(int device, int repeats) {
  Recording& log = TheRecording();
  std::lock_guard lock(log.mutex);
  Check(repeats > 0, "replay: expected a positive number of repetitions, got ", repeats);
  Check(!log.launches.empty(), "replay: expected a recording, got none");
  Device* where = DeviceContext::Get().device(device);
  std::vector<BufferPtr> slots(log.slots);
  for (size_t i = 0; i < log.external_slots.size(); ++i)
    slots[log.external_slots[i]] = Zeros(log.external_types[i], device);
  // What a donated input's memory has become by the end takes its place in the next repetition, as a weight's update
  // does.
  std::vector<std::pair<int, int>> successors;
  {
    std::unordered_map<int, int> next(log.donated.begin(), log.donated.end());
    for (int slot : log.external_slots) {
      int last = slot;
      while (next.count(last)) last = next[last];
      if (last != slot) successors.emplace_back(slot, last);
    }
  }
  std::vector<PJRT_Buffer*> raw;
  std::vector<BufferPtr> results;
  const auto begin = std::chrono::steady_clock::now();
  for (int repetition = 0; repetition < repeats; ++repetition) {
    for (const Launch& launch : log.launches) {
      raw.clear();
      for (int slot : launch.inputs) raw.push_back(slots[slot]->raw());
      results.clear();
      launch.executable->Execute(where, raw.data(), raw.size(), launch.keep.data(), launch.keep.size(), &results);
      for (size_t i = 0; i < results.size(); ++i) slots[launch.outputs[i]] = std::move(results[i]);
    }
    for (const auto& [slot, last] : successors) slots[slot] = slots[last];
  }
  for (const Launch& launch : log.launches) {
    for (int slot : launch.outputs) {
      if (slots[slot] != nullptr && !slots[slot]->IsDeleted()) slots[slot]->Await();
    }
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / repeats;
}

}  // namespace torch_tpu
