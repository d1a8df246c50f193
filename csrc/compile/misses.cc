#include "compile/misses.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "compile/hash.h"

namespace torch_tpu {
namespace {

constexpr size_t kMaxMisses = 1000;
constexpr size_t kLong = 400;

// Programs are long: their hash stands for them.
std::vector<KeyPart> Shortened(std::vector<KeyPart> parts) {
  for (auto& [name, value] : parts) {
    if (name == "program" || value.size() > kLong) value = "hash " + HexOf(Hash64(value));
  }
  return parts;
}

}  // namespace

std::string JoinParts(const std::vector<KeyPart>& parts) {
  // Lengths keep two lists of parts from running into the same text.
  std::string key;
  for (const auto& [name, value] : parts) key += name + " " + std::to_string(value.size()) + "\n" + value + "\n";
  return key;
}

std::vector<KeyPart> SplitParts(std::string_view key) {
  std::vector<KeyPart> parts;
  while (!key.empty()) {
    const size_t end = key.find('\n');
    const size_t space = key.substr(0, end).rfind(' ');
    if (end == std::string_view::npos || space == std::string_view::npos) return {};
    size_t size = 0;
    const auto [rest, error] = std::from_chars(key.data() + space + 1, key.data() + end, size);
    if (error != std::errc() || rest != key.data() + end || key.size() < end + 2 || size > key.size() - end - 2)
      return {};
    parts.emplace_back(key.substr(0, space), key.substr(end + 1, size));
    key.remove_prefix(end + 1 + size + 1);
  }
  return parts;
}

void MissLog::Note(const std::vector<KeyPart>& parts, std::string entry, double seconds) {
  Miss miss{Shortened(parts), std::move(entry), seconds};
  std::lock_guard lock(mutex_);
  if (misses_.size() >= kMaxMisses) misses_.pop_front();
  misses_.push_back(std::move(miss));
}

std::vector<MissExplanation> MissLog::Take(const DiskCache& disk) {
  std::deque<Miss> misses;
  {
    std::lock_guard lock(mutex_);
    misses.swap(misses_);
  }
  if (misses.empty()) return {};
  std::vector<std::pair<std::string, std::vector<KeyPart>>> entries;
  for (auto& [name, key] : disk.Keys()) entries.emplace_back(name, Shortened(SplitParts(key)));

  std::vector<MissExplanation> explanations;
  for (const Miss& miss : misses) {
    MissExplanation best{miss.entry, miss.seconds, false, {}};
    // An entry of the same program says most, then the one with the fewest differences.
    std::pair<bool, size_t> least{true, SIZE_MAX};
    for (const auto& [name, parts] : entries) {
      if (name == miss.entry || parts.size() != miss.parts.size()) continue;
      std::vector<MissExplanation::Difference> differences;
      bool other_program = false;
      for (size_t i = 0; i < parts.size(); ++i) {
        if (parts[i] == miss.parts[i]) continue;
        differences.push_back({miss.parts[i].first, miss.parts[i].second, parts[i].second});
        other_program |= miss.parts[i].first == "program";
      }
      const std::pair<bool, size_t> distance{other_program, differences.size()};
      if (distance >= least) continue;
      least = distance;
      best.any = true;
      best.differences = std::move(differences);
    }
    explanations.push_back(std::move(best));
  }
  return explanations;
}

}  // namespace torch_tpu
