#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "plugin/plugin.h"

namespace torch_tpu {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kVendor = "0x1ae0";
// The vendor also makes network cards: only these devices are TPUs (v2 and v3, an unnamed one, v4, v5p, v5e, v6e, 7x).
constexpr std::array<std::string_view, 7> kDevices = {"0x0027", "0x0056", "0x005e", "0x0062",
                                                      "0x0063", "0x006f", "0x0076"};

std::string FirstWord(const fs::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

bool IsNumber(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

template <class Predicate>
int CountEntries(const char* folder, Predicate predicate) {
  int count = 0;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (predicate(it->path())) ++count;
  }
  return count;
}

}  // namespace

int CountTpuChips() {
  const int on_bus = CountEntries("/sys/bus/pci/devices", [](const fs::path& device) {
    return FirstWord(device / "vendor") == kVendor &&
           std::find(kDevices.begin(), kDevices.end(), FirstWord(device / "device")) != kDevices.end();
  });
  if (on_bus > 0) return on_bus;
  // TPU drivers put /dev/accel0 at the top; the kernel's own accelerators sit in the folder /dev/accel.
  const int nodes = CountEntries("/dev", [](const fs::path& node) {
    const std::string name = node.filename().string();
    return name.starts_with("accel") && IsNumber(std::string_view(name).substr(5));
  });
  if (nodes > 0) return nodes;
  // A vfio group can belong to anything, so it only counts where a container hides the bus.
  std::error_code error;
  if (fs::exists("/sys/bus/pci/devices", error)) return 0;
  return CountEntries("/dev/vfio", [](const fs::path& node) { return IsNumber(node.filename().string()); });
}

}  // namespace torch_tpu
