#include "compile/host_cpu.h"

#include <fstream>

#include "compile/hash.h"

namespace torch_tpu {
namespace {

std::string Describe() {
  // The first processor's block, up to the empty line: the others are the same. Lines that change (clock, ids) are left
  // out.
  std::ifstream file("/proc/cpuinfo");
  std::string line, name = "unknown", facts;
  while (std::getline(file, line) && !line.empty()) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string field = line.substr(0, line.find_first_of("\t:"));
    if (field == "model name" && colon + 2 <= line.size()) name = line.substr(colon + 2);
    for (const char* wanted :
         {"vendor_id", "cpu family", "model", "stepping", "flags", "Features", "CPU implementer", "CPU part"}) {
      if (field == wanted) facts += line + "\n";
    }
  }
  return name + " " + HexOf(Hash64(facts));
}

}  // namespace

const std::string& HostCpu() {
  static const std::string description = Describe();
  return description;
}

}  // namespace torch_tpu
