// Why programs had to be compiled: which named parts of their keys no entry on disk shares.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "compile/disk_cache.h"

namespace torch_tpu {

using KeyPart = std::pair<std::string, std::string>;  // name, value

// Parts <-> the key of an entry.
std::string JoinParts(const std::vector<KeyPart>& parts);
// Empty for what is no key.
std::vector<KeyPart> SplitParts(std::string_view key);

// One compilation, against the entry on disk that is most like it.
struct MissExplanation {
  struct Difference {
    std::string part, here, there;  // values; those of long parts are their hashes
  };
  std::string entry;  // name of the file that the program went to
  double seconds = 0;
  bool any = false;  // there is another entry to compare with
  std::vector<Difference> differences;
};

// The last compilations of a process. Thread-safe; noting one costs a hash of its key, explaining reads the folder.
class MissLog {
 public:
  void Note(const std::vector<KeyPart>& parts, std::string entry, double seconds);
  // Explains what was noted since the last call.
  std::vector<MissExplanation> Take(const DiskCache& disk);

 private:
  struct Miss {
    std::vector<KeyPart> parts;
    std::string entry;
    double seconds;
  };
  std::mutex mutex_;
  std::deque<Miss> misses_;
};

}  // namespace torch_tpu
