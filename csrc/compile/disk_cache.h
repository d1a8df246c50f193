// A folder of artifacts, shared by any number of processes.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace torch_tpu {

// Damaged, foreign or unreadable entries are misses; writes go to a temporary file and are renamed; total size is
// bounded, the least recently used go first. Nothing throws: a cache that cannot be used is an empty one.
//
// An entry is one file, named by its key's hash: magic, format version, length of the key, the key, length of the
// payload, checksum of the payload, the payload.
class DiskCache {
 public:
  // Empty folder: off.
  DiskCache(std::string folder, int64_t max_bytes);
  // TORCH_TPU_CACHE_DIR, or torch_tpu in the user's cache folder; off with TORCH_TPU_CACHE=0. Throws Error on a bad
  // number.
  static DiskCache FromEnv();
  DiskCache(DiskCache&& other) noexcept;

  bool enabled() const { return !folder_.empty(); }
  const std::string& folder() const { return folder_; }
  bool Read(const std::string& key, std::string* bytes) const;
  void Write(const std::string& key, const std::string& bytes) const;
  void Remove(const std::string& key) const;
  std::string PathOf(const std::string& key) const;
  struct Usage {
    int64_t files = 0, bytes = 0;
  };
  Usage usage() const;
  int64_t Clear() const;  // number of files removed
  // The keys of all entries, by file name.
  std::vector<std::pair<std::string, std::string>> Keys() const;

  // Held by the process (and thread) that compiles what a key stands for; goes with its process, however that ends.
  class Lock {
   public:
    explicit Lock(int file = -1) : file_(file) {}
    Lock(Lock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
    Lock& operator=(Lock&&) = delete;
    ~Lock();
    bool held() const { return file_ >= 0; }

   private:
    int file_;
  };
  // Waits while another holds it, for some minutes at most. Where nothing can be locked nobody waits.
  Lock LockFor(const std::string& key) const;

 private:
  void Evict() const;
  std::string folder_;
  int64_t max_bytes_;
  // Starts at the bound, so that a process' first write looks at the folder.
  mutable std::atomic<int64_t> written_since_eviction_;
};

}  // namespace torch_tpu
